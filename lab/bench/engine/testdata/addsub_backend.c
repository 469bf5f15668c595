// A backend for a real Triton that adds and subtracts two INT32[16] tensors and does nothing else, so that the front ends
// are what a benchmark measures. The few functions of Triton's backend interface that it calls are declared by hand; they
// resolve from the server that loads it. Requests are answered one by one, from the buffers that they came in.
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef void Handle; // every object of the server's is opaque
enum { INT32 = 8, ELEMENTS = 16, BYTES = 4 * ELEMENTS, RELEASE_ALL = 1, FINAL = 1 };

Handle* TRITONBACKEND_RequestInput(Handle* request, const char* name, Handle** input);
Handle* TRITONBACKEND_InputBuffer(Handle* input, uint32_t index, const void** data, uint64_t* size, int* memory, int64_t* id);
Handle* TRITONBACKEND_ResponseNew(Handle** response, Handle* request);
Handle* TRITONBACKEND_ResponseOutput(Handle* response, Handle** output, const char* name, int type, const int64_t* shape, uint32_t dims);
Handle* TRITONBACKEND_OutputBuffer(Handle* output, void** data, uint64_t size, int* memory, int64_t* id);
Handle* TRITONBACKEND_ResponseSend(Handle* response, uint32_t flags, Handle* error);
Handle* TRITONBACKEND_RequestRelease(Handle* request, uint32_t flags);
Handle* TRITONBACKEND_ModelInstanceReportStatistics(Handle* instance, Handle* request, _Bool ok, uint64_t begin, uint64_t from, uint64_t to, uint64_t end);
Handle* TRITONBACKEND_ModelInstanceReportBatchStatistics(Handle* instance, uint64_t size, uint64_t begin, uint64_t from, uint64_t to, uint64_t end);
Handle* TRITONSERVER_ErrorNew(int code, const char* text);

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const int32_t* input(Handle* request, const char* name) {
  Handle* in;
  const void* data;
  uint64_t size;
  int memory = 0;
  int64_t id = 0;
  if (TRITONBACKEND_RequestInput(request, name, &in) || TRITONBACKEND_InputBuffer(in, 0, &data, &size, &memory, &id)) return NULL;
  return memory == 0 && size == BYTES ? data : NULL;
}

static int32_t* output(Handle* response, const char* name) {
  static const int64_t shape[] = {1, ELEMENTS};
  Handle* out;
  void* data;
  int memory = 0;
  int64_t id = 0;
  if (TRITONBACKEND_ResponseOutput(response, &out, name, INT32, shape, 2)) return NULL;
  return TRITONBACKEND_OutputBuffer(out, &data, BYTES, &memory, &id) || memory != 0 ? NULL : data;
}

static _Bool answer(Handle* request) {
  Handle* response;
  if (TRITONBACKEND_ResponseNew(&response, request)) return 0;
  const int32_t *a = input(request, "INPUT0"), *b = input(request, "INPUT1");
  int32_t *sum = a && b ? output(response, "OUTPUT0") : NULL, *difference = sum ? output(response, "OUTPUT1") : NULL;
  for (int i = 0; difference && i < ELEMENTS; i++) {
    sum[i] = a[i] + b[i];
    difference[i] = a[i] - b[i];
  }
  // 3: invalid argument
  Handle* error = difference ? NULL : TRITONSERVER_ErrorNew(3, "the inputs are not INT32[1,16] in one buffer of main memory");
  TRITONBACKEND_ResponseSend(response, FINAL, error);
  return difference != NULL;
}

Handle* TRITONBACKEND_ModelInstanceExecute(Handle* instance, Handle** requests, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t begin = now();
    _Bool ok = answer(requests[i]);
    uint64_t end = now();
    TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], ok, begin, begin, end, end);
    TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, begin, begin, end, end);
    TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL);
  }
  return NULL;
}
