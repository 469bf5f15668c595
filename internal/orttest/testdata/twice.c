// A library with one operator, test.Twice of int32.
#include "onnxruntime_c_api.h"

static const OrtApi *api;

static void *create(const OrtCustomOp *op, const OrtApi *a, const OrtKernelInfo *info) { return (void *)&api; }
static const char *name(const OrtCustomOp *op) { return "Twice"; }
static const char *provider(const OrtCustomOp *op) { return NULL; }
static ONNXTensorElementDataType type(const OrtCustomOp *op, size_t i) { return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32; }
static size_t count(const OrtCustomOp *op) { return 1; }
static OrtCustomOpInputOutputCharacteristic required(const OrtCustomOp *op, size_t i) { return INPUT_OUTPUT_REQUIRED; }
static void destroy(void *kernel) {}

static void compute(void *kernel, OrtKernelContext *context) {
	const OrtValue *in;
	OrtValue *out;
	OrtTensorTypeAndShapeInfo *info;
	const int32_t *x;
	int32_t *y;
	int64_t dims[8];
	size_t rank, n;
	api->KernelContext_GetInput(context, 0, &in);
	api->GetTensorTypeAndShape(in, &info);
	api->GetDimensionsCount(info, &rank);
	api->GetDimensions(info, dims, rank);
	api->GetTensorShapeElementCount(info, &n);
	api->ReleaseTensorTypeAndShapeInfo(info);
	api->KernelContext_GetOutput(context, 0, dims, rank, &out);
	api->GetTensorMutableData((OrtValue *)in, (void **)&x);
	api->GetTensorMutableData(out, (void **)&y);
	for (size_t i = 0; i < n; i++) y[i] = 2 * x[i];
}

static const OrtCustomOp twice = {
	.version = 8, .CreateKernel = create, .GetName = name, .GetExecutionProviderType = provider,
	.GetInputType = type, .GetInputTypeCount = count, .GetOutputType = type, .GetOutputTypeCount = count,
	.KernelCompute = compute, .KernelDestroy = destroy,
	.GetInputCharacteristic = required, .GetOutputCharacteristic = required,
};

OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
	OrtCustomOpDomain *domain;
	api = base->GetApi(ORT_API_VERSION);
	OrtStatus *status = api->CreateCustomOpDomain("test", &domain);
	if (status == NULL) status = api->CustomOpDomain_Add(domain, &twice);
	if (status == NULL) status = api->AddCustomOpDomain(options, domain);
	return status;
}
