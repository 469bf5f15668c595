// The smallest library with an execution provider: it adds tensors of int32. With NO_DEVICE it offers no
// device.
#include <stdlib.h>
#include <string.h>

#include "onnxruntime_c_api.h"

static const OrtApi *api;
static const OrtEpApi *ep_api;

static const char *ORT_API_CALL factory_name(const OrtEpFactory *factory) { return "ExampleExecutionProvider"; }
static const char *ORT_API_CALL factory_vendor(const OrtEpFactory *factory) { return "tuner"; }
static uint32_t ORT_API_CALL factory_vendor_id(const OrtEpFactory *factory) { return 0; }
static const char *ORT_API_CALL factory_version(const OrtEpFactory *factory) { return "1.0.0"; }

static bool ORT_API_CALL stream_aware(const OrtEpFactory *factory) { return false; }
static OrtStatus *ORT_API_CALL data_transfer(OrtEpFactory *factory, OrtDataTransferImpl **transfer) {
	*transfer = NULL;
	return NULL;
}
static OrtStatus *ORT_API_CALL allocator(OrtEpFactory *factory, const OrtMemoryInfo *memory, const OrtKeyValuePairs *options, OrtAllocator **made) {
	*made = NULL;
	return NULL;
}
static void ORT_API_CALL release_allocator(OrtEpFactory *factory, OrtAllocator *made) {}

static OrtStatus *ORT_API_CALL supported(OrtEpFactory *factory, const OrtHardwareDevice *const *devices, size_t count,
	OrtEpDevice **offered, size_t most, size_t *offered_count) {
	*offered_count = 0;
#ifndef NO_DEVICE
	for (size_t i = 0; i < count && *offered_count < most; i++) {
		if (api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
		OrtStatus *status = ep_api->CreateEpDevice(factory, devices[i], NULL, NULL, &offered[*offered_count]);
		if (status != NULL) return status;
		++*offered_count;
	}
#endif
	return NULL;
}

// Parts: each is one addition.

static OrtStatus *ORT_API_CALL create_state(OrtNodeComputeInfo *info, OrtNodeComputeContext *context, void **state) {
	*state = NULL;
	return NULL;
}
static void ORT_API_CALL release_state(OrtNodeComputeInfo *info, void *state) {}

static OrtStatus *ORT_API_CALL compute(OrtNodeComputeInfo *info, void *state, OrtKernelContext *context) {
	const OrtValue *in[2];
	OrtValue *out;
	OrtTensorTypeAndShapeInfo *shape;
	int32_t *x[2], *y;
	int64_t dims[8];
	size_t rank = 0, n = 0;
	OrtStatus *status = NULL;
	for (int i = 0; status == NULL && i < 2; i++) {
		status = api->KernelContext_GetInput(context, i, &in[i]);
		if (status == NULL) status = api->GetTensorMutableData((OrtValue *)in[i], (void **)&x[i]);
	}
	if (status != NULL) return status;
	if ((status = api->GetTensorTypeAndShape(in[0], &shape)) != NULL) return status;
	status = api->GetDimensionsCount(shape, &rank);
	if (status == NULL && rank <= 8) status = api->GetDimensions(shape, dims, rank);
	if (status == NULL) status = api->GetTensorShapeElementCount(shape, &n);
	api->ReleaseTensorTypeAndShapeInfo(shape);
	if (status == NULL) status = api->KernelContext_GetOutput(context, 0, dims, rank, &out);
	if (status == NULL) status = api->GetTensorMutableData(out, (void **)&y);
	for (size_t i = 0; status == NULL && i < n; i++) y[i] = x[0][i] + x[1][i];
	return status;
}

static const char *ORT_API_CALL ep_name(const OrtEp *ep) { return "ExampleExecutionProvider"; }

static OrtStatus *ORT_API_CALL capability(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
	size_t count = 0;
	OrtStatus *status = api->Graph_GetNumNodes(graph, &count);
	const OrtNode **nodes = calloc(count + 1, sizeof *nodes);
	if (status == NULL) status = api->Graph_GetNodes(graph, nodes, count);
	for (size_t i = 0; status == NULL && i < count; i++) {
		const char *op = NULL;
		status = api->Node_GetOperatorType(nodes[i], &op);
		if (status == NULL && strcmp(op, "Add") == 0)
			status = ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &nodes[i], 1, NULL);
	}
	free(nodes);
	return status;
}

static OrtStatus *ORT_API_CALL compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **nodes, size_t count,
	OrtNodeComputeInfo **infos, OrtNode **contexts) {
	for (size_t i = 0; i < count; i++) {
		infos[i] = calloc(1, sizeof *infos[i]);
		infos[i]->ort_version_supported = ORT_API_VERSION;
		infos[i]->CreateState = create_state;
		infos[i]->Compute = compute;
		infos[i]->ReleaseState = release_state;
	}
	return NULL;
}

static void ORT_API_CALL release_infos(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count) {
	for (size_t i = 0; i < count; i++) free(infos[i]);
}

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
	const OrtKeyValuePairs *const *metadata, size_t count, const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **made) {
	OrtEp *ep = calloc(1, sizeof *ep);
	ep->ort_version_supported = ORT_API_VERSION;
	ep->GetName = ep_name;
	ep->GetCapability = capability;
	ep->Compile = compile;
	ep->ReleaseNodeComputeInfos = release_infos;
	*made = ep;
	return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory *factory, OrtEp *ep) { free(ep); }

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger, OrtEpFactory **factories,
	size_t most, size_t *count) {
	api = base->GetApi(ORT_API_VERSION);
	ep_api = api->GetEpApi();
	OrtEpFactory *factory = calloc(1, sizeof *factory);
	factory->ort_version_supported = ORT_API_VERSION;
	factory->GetName = factory_name;
	factory->GetVendor = factory_vendor;
	factory->GetVendorId = factory_vendor_id;
	factory->GetVersion = factory_version;
	factory->GetSupportedDevices = supported;
	factory->CreateEp = create_ep;
	factory->ReleaseEp = release_ep;
	factory->CreateAllocator = allocator;
	factory->ReleaseAllocator = release_allocator;
	factory->CreateDataTransfer = data_transfer;
	factory->IsStreamAware = stream_aware;
	factories[0] = factory;
	*count = 1;
	return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) {
	free(factory);
	return NULL;
}
