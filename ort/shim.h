// Calls of ONNX Runtime's C API that the Go binding lacks: error codes, outputs in ONNX Runtime's own
// memory, strings with any byte, empty tensors, scalars, entries of run options, the oneDNN provider,
// and the assignment of nodes to providers.
//
// ONNX Runtime's C API is a table of functions. A released function never changes its place or its
// signature. So the few functions needed here are called by place (api_slot), without a copy of the
// 8,000-line header. A unit test compares the places with the header of the Go binding.
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
	kSessionGetOverridableInitializerCount = 32,
	kSessionGetInputTypeInfo = 33,
	kSessionGetOutputTypeInfo = 34,
	kSessionGetOverridableInitializerTypeInfo = 35,
	kSessionGetInputName = 36,
	kSessionGetOutputName = 37,
	kSessionGetOverridableInitializerName = 38,
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
	kCreateEnvWithGlobalThreadPools = 119,
	kDisablePerSessionThreads = 120,
	kCreateThreadingOptions = 121,
	kReleaseThreadingOptions = 122,
	kGetAvailableProviders = 125,
	kReleaseAvailableProviders = 126,
	kSetGlobalIntraOpNumThreads = 147,
	kSetGlobalInterOpNumThreads = 148,
	kAddRunConfigEntry = 165,
	kRegisterCustomOpsLibrary_V2 = 228,
	kSessionOptionsAppendExecutionProvider_Dnnl = 239,
	kCreateDnnlProviderOptions = 240,
	kUpdateDnnlProviderOptions = 241,
	kReleaseDnnlProviderOptions = 243,
	kGetResizedStringTensorElementBuffer = 252,
	kRegisterExecutionProviderLibrary = 301,
	kGetEpDevices = 303,
	kSessionOptionsAppendExecutionProvider_V2 = 304,
	kHardwareDevice_Type = 307,
	kEpDevice_EpName = 312,
	kEpDevice_Device = 316,
	kSession_GetEpGraphAssignmentInfo = 407,
	kEpAssignedSubgraph_GetEpName = 408,
	kEpAssignedSubgraph_GetNodes = 409,
	kEpAssignedNode_GetDomain = 411,
	kEpAssignedNode_GetOperatorType = 412,
};

typedef const void *const *api_table;

// The version of the table that the Go binding uses. An older ONNX Runtime has no such table.
enum { API_VERSION = 24 };

enum { MAX_RANK = 32 };

// ONNX Runtime's description of an input, an output or a value.
typedef struct {
	int kind;  // ONNXType: 1 is a dense tensor; only then are the fields below set
	int type;  // ONNXTensorElementDataType
	size_t rank;  // dims holds the first min(rank, MAX_RANK) dimensions
	int64_t dims[MAX_RANK];
	void *data;  // only for a value; NULL for strings
} tensor_view;

// All functions that return void* return an OrtStatus, which is NULL on success. The caller frees it
// with api_status_end.

// Opens the library a second time, since the binding does not export its handle, and finds its table.
// Returns NULL on success, or an error message. `version` is the library's, if it could be read.
const char *api_open(const char *library, api_table *api, const char **version);

int api_status_code(api_table api, void *status);
const char *api_status_message(api_table api, void *status);
void api_status_end(api_table api, void *status);

void *api_env(api_table api, void **env);
// Makes the environment with thread pools for all sessions. 0 threads: one for each core.
void *api_env_with_pools(api_table api, int intra_op, int inter_op, void **env);
// Lets a session run on the environment's thread pools.
void *api_use_global_pools(api_table api, void *options);
void *api_cpu_memory(api_table api, void **memory);
void *api_providers(api_table api, char ***names, int *count);
void api_providers_end(api_table api, char **names, int count);
// Calls one of the kRelease functions.
void api_release(api_table api, enum api_slot slot, void *object);

void *api_session(api_table api, void *env, const char *model, void *options, void **session);

// What a session describes: its inputs, its outputs, and the constants that a run may replace.
enum session_side { kInputs, kOutputs, kConstants, SIDES };

// counts has a place for each side.
void *api_session_counts(api_table api, void *session, size_t *counts);
// Describes one of a side. The caller frees the name with api_free.
void *api_session_io(api_table api, void *session, enum session_side side, size_t index, char **name, tensor_view *view);
void *api_free(api_table api, void *memory);

// Opens a library with operators, for the session that is made with the options.
void *api_op_library(api_table api, void *options, const char *path);

// Appends the oneDNN provider to the options' order of preference.
void *api_append_dnnl(api_table api, void *options, const char *const *keys, const char *const *values, size_t count);

// Opens a library with an execution provider, under a name for the environment.
void *api_plug_in(api_table api, void *env, const char *name, const char *path);
// The devices that execution providers offer. ONNX Runtime owns them and the list, which the next call
// for a library may move.
void *api_devices(api_table api, void *env, void *const **devices, size_t *count);
const char *api_device_provider(api_table api, void *device);
int api_device_type(api_table api, void *device);  // OrtHardwareDeviceType
// Appends the provider of a device to the options' order of preference.
void *api_append_device(api_table api, void *options, void *env, void *device, const char *const *keys,
	const char *const *values, size_t count);

// The parts of the graph that were assigned to a provider, the nodes of a part, and the operator of a
// node. The session owns them.
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
	void *value;  // an OrtValue, owned by the caller; NULL: the run makes one from the fields below
	void *data;
	size_t size;
	int type;
	size_t rank;
	int64_t dims[MAX_RANK];
} plan_input;

// A run that is repeated. It is in C's memory, so that one call needs no memory of Go.
typedef struct {
	void *options;
	size_t input_count, output_count;
	const char **input_names, **output_names;
	plan_input *inputs;
	void **values;       // scratch memory for the values of the inputs
	void **outputs;      // of the last run, owned by the caller
	tensor_view *views;  // of the outputs
} run_plan;

// Returns NULL if there is no memory.
run_plan *plan_new(size_t inputs, size_t outputs);
void plan_free(run_plan *plan);
// Makes the values of the inputs, runs the session, describes the outputs, and frees the values of the
// inputs.
void *api_run_plan(api_table api, void *session, void *memory, run_plan *plan);

// Makes a tensor over memory that the caller owns.
void *api_tensor(api_table api, void *memory, void *data, size_t size, const int64_t *dims, size_t rank, int type, void **value);
// Makes a tensor of empty strings.
void *api_string_tensor(api_table api, const int64_t *dims, size_t rank, void **value);
// Sets strings of the tensor, from index *next on, to those in bytes. Each is a length in 32 bits and
// its characters. count is the number of strings in the tensor. *next becomes the index of the first
// string that is not set, or SIZE_MAX if bytes ends within a string or has too many strings.
void *api_set_strings(api_table api, void *value, const char *bytes, size_t size, size_t count, size_t *next);
void *api_value_view(api_table api, void *value, tensor_view *view);
void *api_strings_length(api_table api, void *value, size_t *size);
void *api_strings(api_table api, void *value, void *bytes, size_t size, size_t *offsets, size_t count);

// Allocates size bytes, aligned to 64. Returns NULL if there is no memory.
void *aligned_buffer(size_t size);

// Returns free memory that the C library keeps to the system. A load, or a closed session, may have used
// many times the memory that is needed next, and users set limits on a server's memory.
void return_free_memory(void);

#endif
