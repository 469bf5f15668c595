#include "shim.h"

#include <dlfcn.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string.h>

typedef struct {
	api_table (*get_api)(uint32_t version);
	const char *(*get_version)(void);
} api_base;

// CALL(slot, types...)(arguments...) calls a function of the table that returns an OrtStatus.
#define CALL(slot, ...) ((void *(*)(__VA_ARGS__))api[slot])

const char *api_open(const char *library, api_table *api, const char **version) {
	void *handle = dlopen(library, RTLD_LAZY);
	if (handle == NULL) return dlerror();
	const api_base *(*get_base)(void) = (const api_base *(*)(void))dlsym(handle, "OrtGetApiBase");
	if (get_base == NULL) {
		dlclose(handle);
		return "it is a library, but not ONNX Runtime (no symbol OrtGetApiBase)";
	}
	const api_base *base = get_base();
	*version = base->get_version();
	*api = base->get_api(API_VERSION);
	// The handle stays open until the process ends, since ONNX Runtime's threads and exit handlers run
	// code of the library.
	return *api == NULL ? "it is too old (1.24 or newer is needed)" : NULL;
}

int api_status_code(api_table api, void *status) {
	return ((int (*)(const void *))api[kGetErrorCode])(status);
}

const char *api_status_message(api_table api, void *status) {
	return ((const char *(*)(const void *))api[kGetErrorMessage])(status);
}

void api_status_end(api_table api, void *status) { api_release(api, kReleaseStatus, status); }

void api_release(api_table api, enum api_slot slot, void *object) {
	if (object != NULL) ((void (*)(void *))api[slot])(object);
}

static const int warning = 2;  // ORT_LOGGING_LEVEL_WARNING

void *api_env(api_table api, void **env) {
	return CALL(kCreateEnv, int, const char *, void **)(warning, "tuner", env);
}

void *api_env_with_pools(api_table api, int intra_op, int inter_op, void **env) {
	void *threads = NULL;
	void *status = CALL(kCreateThreadingOptions, void **)(&threads);
	if (status == NULL) status = CALL(kSetGlobalIntraOpNumThreads, void *, int)(threads, intra_op);
	if (status == NULL) status = CALL(kSetGlobalInterOpNumThreads, void *, int)(threads, inter_op);
	if (status == NULL) status = CALL(kCreateEnvWithGlobalThreadPools, int, const char *, void *, void **)(warning, "tuner", threads, env);
	api_release(api, kReleaseThreadingOptions, threads);
	return status;
}

void *api_use_global_pools(api_table api, void *options) { return CALL(kDisablePerSessionThreads, void *)(options); }

void *api_cpu_memory(api_table api, void **memory) {
	const int arena_allocator = 1, default_memory = 0;
	return CALL(kCreateCpuMemoryInfo, int, int, void **)(arena_allocator, default_memory, memory);
}

void *api_providers(api_table api, char ***names, int *count) {
	return CALL(kGetAvailableProviders, char ***, int *)(names, count);
}

void api_providers_end(api_table api, char **names, int count) {
	void *status = CALL(kReleaseAvailableProviders, char **, int)(names, count);
	api_status_end(api, status);
}

void *api_session(api_table api, void *env, const char *model, void *options, void **session) {
	return CALL(kCreateSession, void *, const char *, void *, void **)(env, model, options, session);
}

// The functions for each side of a session.
static const enum api_slot count_of[SIDES] = {kSessionGetInputCount, kSessionGetOutputCount, kSessionGetOverridableInitializerCount};
static const enum api_slot type_of[SIDES] = {kSessionGetInputTypeInfo, kSessionGetOutputTypeInfo, kSessionGetOverridableInitializerTypeInfo};
static const enum api_slot name_of[SIDES] = {kSessionGetInputName, kSessionGetOutputName, kSessionGetOverridableInitializerName};

void *api_session_counts(api_table api, void *session, size_t *counts) {
	void *status = NULL;
	for (int side = 0; status == NULL && side < SIDES; side++) status = CALL(count_of[side], void *, size_t *)(session, &counts[side]);
	return status;
}

// Reads element type and shape from an OrtTensorTypeAndShapeInfo.
static void *read_shape(api_table api, void *info, tensor_view *view) {
	void *status = CALL(kGetTensorElementType, void *, int *)(info, &view->type);
	if (status != NULL) return status;
	status = CALL(kGetDimensionsCount, void *, size_t *)(info, &view->rank);
	if (status != NULL) return status;
	size_t rank = view->rank < MAX_RANK ? view->rank : MAX_RANK;
	return CALL(kGetDimensions, void *, int64_t *, size_t)(info, view->dims, rank);
}

static const int dense_tensor = 1;  // ONNX_TYPE_TENSOR
static const int strings = 8;       // ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING

static void *read_type(api_table api, void *info, tensor_view *view) {
	void *status = CALL(kGetOnnxTypeFromTypeInfo, void *, int *)(info, &view->kind);
	if (status != NULL || view->kind != dense_tensor) return status;
	void *shape = NULL;  // belongs to info
	status = CALL(kCastTypeInfoToTensorInfo, void *, void **)(info, &shape);
	if (status != NULL) return status;
	return read_shape(api, shape, view);
}

static void *default_allocator(api_table api, void **allocator) {
	return CALL(kGetAllocatorWithDefaultOptions, void **)(allocator);
}

void *api_session_io(api_table api, void *session, enum session_side side, size_t index, char **name, tensor_view *view) {
	void *info = NULL, *allocator = NULL;
	void *status = CALL(type_of[side], void *, size_t, void **)(session, index, &info);
	if (status != NULL) return status;
	status = read_type(api, info, view);
	api_release(api, kReleaseTypeInfo, info);
	if (status != NULL) return status;
	status = default_allocator(api, &allocator);
	if (status != NULL) return status;
	return CALL(name_of[side], void *, size_t, void *, char **)(session, index, allocator, name);
}

void *api_free(api_table api, void *memory) {
	void *allocator = NULL;
	void *status = default_allocator(api, &allocator);
	if (status != NULL) return status;
	return CALL(kAllocatorFree, void *, void *)(allocator, memory);
}

void *api_op_library(api_table api, void *options, const char *path) {
	return CALL(kRegisterCustomOpsLibrary_V2, void *, const char *)(options, path);
}

void *api_append_dnnl(api_table api, void *options, const char *const *keys, const char *const *values, size_t count) {
	void *dnnl = NULL;
	void *status = CALL(kCreateDnnlProviderOptions, void **)(&dnnl);
	if (status == NULL && count > 0)
		status = CALL(kUpdateDnnlProviderOptions, void *, const char *const *, const char *const *, size_t)(dnnl, keys, values, count);
	if (status == NULL) status = CALL(kSessionOptionsAppendExecutionProvider_Dnnl, void *, const void *)(options, dnnl);
	api_release(api, kReleaseDnnlProviderOptions, dnnl);
	return status;
}

void *api_plug_in(api_table api, void *env, const char *name, const char *path) {
	return CALL(kRegisterExecutionProviderLibrary, void *, const char *, const char *)(env, name, path);
}

void *api_devices(api_table api, void *env, void *const **devices, size_t *count) {
	return CALL(kGetEpDevices, void *, void *const **, size_t *)(env, devices, count);
}

const char *api_device_provider(api_table api, void *device) {
	return ((const char *(*)(const void *))api[kEpDevice_EpName])(device);
}

int api_device_type(api_table api, void *device) {
	const void *hardware = ((const void *(*)(const void *))api[kEpDevice_Device])(device);
	return ((int (*)(const void *))api[kHardwareDevice_Type])(hardware);
}

void *api_append_device(api_table api, void *options, void *env, void *device, const char *const *keys,
	const char *const *values, size_t count) {
	return CALL(kSessionOptionsAppendExecutionProvider_V2, void *, void *, void *const *, size_t, const char *const *, const char *const *, size_t)(
		options, env, &device, 1, keys, values, count);
}

void *api_subgraphs(api_table api, void *session, void *const **subgraphs, size_t *count) {
	return CALL(kSession_GetEpGraphAssignmentInfo, const void *, void *const **, size_t *)(session, subgraphs, count);
}

void *api_subgraph(api_table api, void *subgraph, const char **provider, void *const **nodes, size_t *count) {
	void *status = CALL(kEpAssignedSubgraph_GetEpName, const void *, const char **)(subgraph, provider);
	if (status != NULL) return status;
	return CALL(kEpAssignedSubgraph_GetNodes, const void *, void *const **, size_t *)(subgraph, nodes, count);
}

void *api_node(api_table api, void *node, const char **domain, const char **operator_type) {
	void *status = CALL(kEpAssignedNode_GetDomain, const void *, const char **)(node, domain);
	if (status != NULL) return status;
	return CALL(kEpAssignedNode_GetOperatorType, const void *, const char **)(node, operator_type);
}

void *api_run_options(api_table api, void **options) { return CALL(kCreateRunOptions, void **)(options); }

void *api_run_options_entry(api_table api, void *options, const char *key, const char *value) {
	return CALL(kAddRunConfigEntry, void *, const char *, const char *)(options, key, value);
}

void *api_terminate(api_table api, void *options) { return CALL(kRunOptionsSetTerminate, void *)(options); }

void *api_run(api_table api, void *session, void *options, const char *const *input_names, void *const *inputs,
	size_t input_count, const char *const *output_names, size_t output_count, void **outputs) {
	return CALL(kRun, void *, void *, const char *const *, void *const *, size_t, const char *const *, size_t, void **)(
		session, options, input_names, inputs, input_count, output_names, output_count, outputs);
}

void *api_tensor(api_table api, void *memory, void *data, size_t size, const int64_t *dims, size_t rank, int type, void **value) {
	return CALL(kCreateTensorWithDataAsOrtValue, void *, void *, size_t, const int64_t *, size_t, int, void **)(
		memory, data, size, dims, rank, type, value);
}

void *api_string_tensor(api_table api, const int64_t *dims, size_t rank, void **value) {
	void *allocator = NULL;
	void *status = default_allocator(api, &allocator);
	if (status != NULL) return status;
	return CALL(kCreateTensorAsOrtValue, void *, const int64_t *, size_t, int, void **)(allocator, dims, rank, strings, value);
}

void *api_set_strings(api_table api, void *value, const char *bytes, size_t size, size_t count, size_t *next) {
	while (size > 0) {
		uint32_t length = 0;
		if (*next == count || size < sizeof length) return *next = SIZE_MAX, NULL;
		memcpy(&length, bytes, sizeof length);
		bytes += sizeof length, size -= sizeof length;
		if (length > size) return *next = SIZE_MAX, NULL;
		if (length > 0) {
			char *element = NULL;
			void *status = CALL(kGetResizedStringTensorElementBuffer, void *, size_t, size_t, char **)(value, *next, length, &element);
			if (status != NULL) return status;
			memcpy(element, bytes, length);
		}
		bytes += length, size -= length;
		++*next;
	}
	return NULL;
}

void *api_value_view(api_table api, void *value, tensor_view *view) {
	void *info = NULL;
	void *status = CALL(kGetTensorTypeAndShape, void *, void **)(value, &info);
	if (status != NULL) return status;
	view->kind = dense_tensor;
	status = read_shape(api, info, view);
	api_release(api, kReleaseTensorTypeAndShapeInfo, info);
	if (status != NULL || view->type == strings) return status;
	return CALL(kGetTensorMutableData, void *, void **)(value, &view->data);
}

void *api_strings_length(api_table api, void *value, size_t *size) {
	return CALL(kGetStringTensorDataLength, void *, size_t *)(value, size);
}

void *api_strings(api_table api, void *value, void *bytes, size_t size, size_t *offsets, size_t count) {
	return CALL(kGetStringTensorContent, void *, void *, size_t, size_t *, size_t)(value, bytes, size, offsets, count);
}

run_plan *plan_new(size_t inputs, size_t outputs) {
	run_plan *plan = calloc(1, sizeof *plan);
	if (plan == NULL) return NULL;
	plan->input_count = inputs;
	plan->output_count = outputs;
	plan->input_names = calloc(inputs + 1, sizeof *plan->input_names);
	plan->output_names = calloc(outputs + 1, sizeof *plan->output_names);
	plan->inputs = calloc(inputs + 1, sizeof *plan->inputs);
	plan->values = calloc(inputs + 1, sizeof *plan->values);
	plan->outputs = calloc(outputs + 1, sizeof *plan->outputs);
	plan->views = calloc(outputs + 1, sizeof *plan->views);
	if (plan->input_names && plan->output_names && plan->inputs && plan->values && plan->outputs && plan->views) return plan;
	plan_free(plan);
	return NULL;
}

void plan_free(run_plan *plan) {
	if (plan == NULL) return;
	free(plan->input_names);
	free(plan->output_names);
	free(plan->inputs);
	free(plan->values);
	free(plan->outputs);
	free(plan->views);
	free(plan);
}

void *api_run_plan(api_table api, void *session, void *memory, run_plan *plan) {
	void *status = NULL;
	size_t made = 0;
	for (; status == NULL && made < plan->input_count; made++) {
		plan_input *in = &plan->inputs[made];
		plan->values[made] = in->value;
		if (in->value == NULL)
			status = api_tensor(api, memory, in->data, in->size, in->dims, in->rank, in->type, &plan->values[made]);
	}
	memset(plan->outputs, 0, plan->output_count * sizeof *plan->outputs);
	if (status == NULL)
		status = api_run(api, session, plan->options, plan->input_names, plan->values, plan->input_count,
			plan->output_names, plan->output_count, plan->outputs);
	for (size_t i = 0; status == NULL && i < plan->output_count; i++)
		status = api_value_view(api, plan->outputs[i], &plan->views[i]);
	for (size_t i = 0; status != NULL && i < plan->output_count; i++) api_release(api, kReleaseValue, plan->outputs[i]);
	for (size_t i = 0; i < made; i++)
		if (plan->inputs[i].value == NULL) api_release(api, kReleaseValue, plan->values[i]);
	return status;
}

void *aligned_buffer(size_t size) {
	void *memory = NULL;
	return posix_memalign(&memory, 64, size) == 0 ? memory : NULL;
}

void return_free_memory(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
