// A backend for a real Triton whose every execution takes 100 ms, whatever its size, and no processor's time: the batches
// that Triton's scheduler forms do not depend on how busy the machine is. It answers INPUT FP32[rows, 1] with as many zeros.
// The few functions of Triton's backend interface that it calls are declared by hand; they resolve from the server.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

typedef void Handle; // every object of the server's is opaque
enum { FP32 = 11, RELEASE_ALL = 1, FINAL = 1 };

Handle* TRITONBACKEND_RequestInput(Handle* request, const char* name, Handle** input);
Handle* TRITONBACKEND_InputProperties(Handle* input, const char** name, int* type, const int64_t** shape, uint32_t* dims, uint64_t* size, uint32_t* buffers);
Handle* TRITONBACKEND_ResponseNew(Handle** response, Handle* request);
Handle* TRITONBACKEND_ResponseOutput(Handle* response, Handle** output, const char* name, int type, const int64_t* shape, uint32_t dims);
Handle* TRITONBACKEND_OutputBuffer(Handle* output, void** data, uint64_t size, int* memory, int64_t* id);
Handle* TRITONBACKEND_ResponseSend(Handle* response, uint32_t flags, Handle* error);
Handle* TRITONBACKEND_RequestRelease(Handle* request, uint32_t flags);
Handle* TRITONBACKEND_ModelInstanceReportStatistics(Handle* instance, Handle* request, _Bool ok, uint64_t begin, uint64_t from, uint64_t to, uint64_t end);
Handle* TRITONBACKEND_ModelInstanceReportBatchStatistics(Handle* instance, uint64_t size, uint64_t begin, uint64_t from, uint64_t to, uint64_t end);

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int64_t rows(Handle* request) {
  Handle* input;
  const char* name;
  const int64_t* shape;
  uint64_t size;
  uint32_t dims, buffers;
  int type;
  if (TRITONBACKEND_RequestInput(request, "INPUT", &input)) return 0;
  return TRITONBACKEND_InputProperties(input, &name, &type, &shape, &dims, &size, &buffers) ? 0 : shape[0];
}

static void answer(Handle* request) {
  const int64_t shape[] = {rows(request), 1};
  Handle *response, *output;
  void* data;
  int memory = 0;
  int64_t id = 0;
  if (TRITONBACKEND_ResponseNew(&response, request)) return;
  if (!TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT", FP32, shape, 2) &&
      !TRITONBACKEND_OutputBuffer(output, &data, 4 * shape[0], &memory, &id) && memory == 0)
    memset(data, 0, 4 * shape[0]);
  TRITONBACKEND_ResponseSend(response, FINAL, NULL);
}

Handle* TRITONBACKEND_ModelInstanceExecute(Handle* instance, Handle** requests, uint32_t count) {
  const struct timespec execution = {0, 100000000};
  uint64_t begin = now(), size = 0;
  for (uint32_t i = 0; i < count; i++) size += rows(requests[i]);
  nanosleep(&execution, NULL);
  uint64_t end = now();
  for (uint32_t i = 0; i < count; i++) {
    answer(requests[i]);
    TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], 1, begin, begin, end, end);
    TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL);
  }
  TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, size, begin, begin, end, end);
  return NULL;
}
