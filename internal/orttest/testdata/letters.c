// A library with one operator, test.Letters: of each text the first 16 bytes as numbers of int64, and zeros behind
// a shorter one. It stands for a tokenizer.
#include <stdlib.h>

#include "onnxruntime_c_api.h"

#define MOST 16

static const OrtApi *api;

static void *create(const OrtCustomOp *op, const OrtApi *a, const OrtKernelInfo *info) { return (void *)&api; }
static const char *name(const OrtCustomOp *op) { return "Letters"; }
static const char *provider(const OrtCustomOp *op) { return NULL; }
static ONNXTensorElementDataType input(const OrtCustomOp *op, size_t i) { return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING; }
static ONNXTensorElementDataType output(const OrtCustomOp *op, size_t i) { return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64; }
static size_t count(const OrtCustomOp *op) { return 1; }
static OrtCustomOpInputOutputCharacteristic required(const OrtCustomOp *op, size_t i) { return INPUT_OUTPUT_REQUIRED; }
static void destroy(void *kernel) {}

static void compute(void *kernel, OrtKernelContext *context) {
	const OrtValue *in;
	OrtValue *out;
	OrtTensorTypeAndShapeInfo *info;
	int64_t *y;
	size_t n, bytes;
	api->KernelContext_GetInput(context, 0, &in);
	api->GetTensorTypeAndShape(in, &info);
	api->GetTensorShapeElementCount(info, &n);
	api->ReleaseTensorTypeAndShapeInfo(info);
	api->GetStringTensorDataLength(in, &bytes);
	char *text = malloc(bytes + 1);
	size_t *begin = malloc((n + 1) * sizeof *begin);
	api->GetStringTensorContent(in, text, bytes, begin, n);
	begin[n] = bytes;
	int64_t dims[2] = {(int64_t)n, MOST};
	api->KernelContext_GetOutput(context, 0, dims, 2, &out);
	api->GetTensorMutableData(out, (void **)&y);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < MOST; k++) y[i * MOST + k] = begin[i] + k < begin[i + 1] ? (unsigned char)text[begin[i] + k] : 0;
	free(begin);
	free(text);
}

static const OrtCustomOp letters = {
	.version = 8, .CreateKernel = create, .GetName = name, .GetExecutionProviderType = provider,
	.GetInputType = input, .GetInputTypeCount = count, .GetOutputType = output, .GetOutputTypeCount = count,
	.KernelCompute = compute, .KernelDestroy = destroy,
	.GetInputCharacteristic = required, .GetOutputCharacteristic = required,
};

OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
	OrtCustomOpDomain *domain;
	api = base->GetApi(ORT_API_VERSION);
	OrtStatus *status = api->CreateCustomOpDomain("test", &domain);
	if (status == NULL) status = api->CustomOpDomain_Add(domain, &letters);
	if (status == NULL) status = api->AddCustomOpDomain(options, domain);
	return status;
}
