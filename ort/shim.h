// The calls of ONNX Runtime's C API that the Go binding lacks: error codes, outputs viewed where ONNX Runtime allocated
// them, strings that may hold any byte, empty tensors, scalars, run options entries, the oneDNN provider, which provider
// runs which node.
//
// ONNX Runtime hands out its C API as a table of functions. A function never changes its place or its signature once
// released, so the few needed here are called by place (api_slot) and no copy of the 8,000-line header is kept. A unit test
// compares the places with the header that comes with the Go binding.
#ifndef TUNER_ORT_SHIM_H
#define TUNER_ORT_SHIM_H

#include <stddef.h>
#include <stdint.h>

// Places in the function table, named as in ONNX Runtime's header.
enum api_slot {
	kGetErrorCode = 1,
	kGetErrorMessage = 2,
	kCreateEnv = 3,
	kCreateSession = 7,
	kRun = 9,
	kSessionGetInputCount = 30,
	kSessionGetOutputCount = 31,
	kSessionGetInputTypeInfo = 33,
	kSessionGetOutputTypeInfo = 34,
	kSessionGetInputName = 36,
	kSessionGetOutputName = 37,
	kCreateRunOptions = 39,
	kRunOptionsSetTerminate = 46,
	kCreateTensorAsOrtValue = 48,
	kCreateTensorWithDataAsOrtValue = 49,
	kGetTensorMutableData = 51,
	kGetStringTensorDataLength = 53,
	kGetStringTensorContent = 54,
	kCastTypeInfoToTensorInfo = 55,
	kGetOnnxTypeFromTypeInfo = 56,
	kGetTensorElementType = 60,
	kGetDimensionsCount = 61,
	kGetDimensions = 62,
	kGetTensorTypeAndShape = 65,
	kCreateCpuMemoryInfo = 69,
	kAllocatorFree = 76,
	kGetAllocatorWithDefaultOptions = 78,
	kReleaseEnv = 92,
	kReleaseStatus = 93,
	kReleaseMemoryInfo = 94,
	kReleaseSession = 95,
	kReleaseValue = 96,
	kReleaseRunOptions = 97,
	kReleaseTypeInfo = 98,
	kReleaseTensorTypeAndShapeInfo = 99,
	kGetAvailableProviders = 125,
	kReleaseAvailableProviders = 126,
	kAddRunConfigEntry = 165,
	kSessionOptionsAppendExecutionProvider_Dnnl = 239,
	kCreateDnnlProviderOptions = 240,
	kUpdateDnnlProviderOptions = 241,
	kReleaseDnnlProviderOptions = 243,
	kGetResizedStringTensorElementBuffer = 252,
	kSession_GetEpGraphAssignmentInfo = 407,
	kEpAssignedSubgraph_GetEpName = 408,
	kEpAssignedSubgraph_GetNodes = 409,
	kEpAssignedNode_GetDomain = 411,
	kEpAssignedNode_GetOperatorType = 412,
};

typedef const void *const *api_table;

// The version of the table that the Go binding asks for; an ONNX Runtime that is too old has none of that version.
enum { API_VERSION = 24 };

enum { MAX_RANK = 32 };

// What ONNX Runtime knows of an input, an output or a value.
typedef struct {
	int kind;  // ONNXType: 1 is a dense tensor; the fields below are set for that only
	int type;  // ONNXTensorElementDataType
	size_t rank;  // dims holds min(rank, MAX_RANK) of them
	int64_t dims[MAX_RANK];
	void *data;  // of a value only; NULL for strings
} tensor_view;

// All functions that return void* return an OrtStatus, NULL for success; the caller ends it with api_status_end.

// Opens the library a second time (the binding's handle isn't reachable) and finds its table. Returns NULL for success or
// what is wrong; `version` is that of the library if it has got so far.
const char *api_open(const char *library, api_table *api, const char **version);

int api_status_code(api_table api, void *status);
const char *api_status_message(api_table api, void *status);
void api_status_end(api_table api, void *status);

void *api_env(api_table api, void **env);
void *api_cpu_memory(api_table api, void **memory);
void *api_providers(api_table api, char ***names, int *count);
void api_providers_end(api_table api, char **names, int count);
// Calls one of the kRelease functions.
void api_release(api_table api, enum api_slot slot, void *object);

void *api_session(api_table api, void *env, const char *model, void *options, void **session);
void *api_session_counts(api_table api, void *session, size_t *inputs, size_t *outputs);
// Describes an input or output. The name belongs to ONNX Runtime's allocator: api_free.
void *api_session_io(api_table api, void *session, int is_output, size_t index, char **name, tensor_view *view);
void *api_free(api_table api, void *memory);

// Puts the oneDNN provider at the end of the options' order of preference.
void *api_append_dnnl(api_table api, void *options, const char *const *keys, const char *const *values, size_t count);

// The parts of the graph that were assigned to a provider, the nodes of one, and the operator of a node. Nothing of it is the
// caller's; it lives as long as the session.
void *api_subgraphs(api_table api, void *session, void *const **subgraphs, size_t *count);
void *api_subgraph(api_table api, void *subgraph, const char **provider, void *const **nodes, size_t *count);
void *api_node(api_table api, void *node, const char **domain, const char **operator_type);

void *api_run_options(api_table api, void **options);
void *api_run_options_entry(api_table api, void *options, const char *key, const char *value);
void *api_terminate(api_table api, void *options);
void *api_run(api_table api, void *session, void *options, const char *const *input_names, void *const *inputs,
	size_t input_count, const char *const *output_names, size_t output_count, void **outputs);

// An input of a plan.
typedef struct {
	void *value;  // an OrtValue, which stays the caller's; NULL: the run makes one of the fields below
	void *data;
	size_t size;
	int type;
	size_t rank;
	int64_t dims[MAX_RANK];
} plan_input;

// A run that is made again and again. It lives in C's memory, so that one call needs nothing of Go's.
typedef struct {
	void *options;
	size_t input_count, output_count;
	const char **input_names, **output_names;
	plan_input *inputs;
	void **values;       // scratch: those of the inputs
	void **outputs;      // of the last run; they are the caller's
	tensor_view *views;  // of the outputs
} run_plan;

// NULL when there is no memory.
run_plan *plan_new(size_t inputs, size_t outputs);
void plan_free(run_plan *plan);
// Makes the inputs' values, runs the session, describes the outputs and ends the inputs' values.
void *api_run_plan(api_table api, void *session, void *memory, run_plan *plan);

// A tensor over memory that stays the caller's.
void *api_tensor(api_table api, void *memory, void *data, size_t size, const int64_t *dims, size_t rank, int type, void **value);
// A tensor of empty strings.
void *api_string_tensor(api_table api, const int64_t *dims, size_t rank, void **value);
// Sets the strings from *next on, of count, to those in bytes: each a length in 32 bits and its characters. *next becomes that of
// the first one that is not set; SIZE_MAX if bytes ends within a string, or has more of them than the tensor.
void *api_set_strings(api_table api, void *value, const char *bytes, size_t size, size_t count, size_t *next);
void *api_value_view(api_table api, void *value, tensor_view *view);
void *api_strings_length(api_table api, void *value, size_t *size);
void *api_strings(api_table api, void *value, void *bytes, size_t size, size_t *offsets, size_t count);

// size bytes, aligned to 64; NULL when there is no memory.
void *aligned_buffer(size_t size);

// Gives free memory back to the system, where the C library keeps it: what a closed session used is many times what the
// next one may need, and a server's memory is a figure that users set limits on.
void return_free_memory(void);

#endif
