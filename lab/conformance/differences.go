package conformance

import (
	"path"
	"slices"
)

// Difference is a known difference between the answers of the engine and of Triton.
type Difference struct {
	ID     string
	Reason string   // the same text is in docs/reference/conformance.md
	Cases  []string // patterns of path.Match for the names of cases
	// Fails means that the engine may answer with status 500 if Triton does not. It is Triton's
	// status for all other models that it does not find.
	Fails bool
}

// Differences are all known differences. testdata/differences.json lists the matching cases that do
// differ, with the engine's answers. The suite fails for a case that differs and is not in the
// file. It fails for a case in the file that does not differ, and for another answer than the one
// in the file.
var Differences = []Difference{
	{
		ID:     "numbers",
		Reason: "Numbers are read exactly, and one that does not fit its type is refused. Triton wraps it, and reads some fractions wrong in the last bit.",
		Cases: []string{
			"05-infer-types/u*int*, too large",
			"05-infer-types/int*, too *",
			"05-infer-types/double, denormal",
			"15-generate/too large, int8",
			"24-grpc-types/*int8, too large",
			"14-logging/level, too large",
			"27-grpc-logging/level, too large",
		},
	},
	{
		ID:     "nul",
		Reason: "A NUL is a byte like any other. Triton with an ONNX model takes it for the end of a JSON text, and of a string.",
		Cases: []string{
			"05-infer-types/a NUL",
			"09-infer-binary/strings with control characters with JSON out",
			"24-grpc-types/bytes",
		},
	},
	{
		ID:     "nesting",
		Reason: "JSON may be nested a hundred deep, as newer Tritons have it.",
		Cases: []string{
			"06-errors-json/nesting of 200",
			"06-errors-json/nesting of 100000",
		},
	},
	{
		ID:     "overflow",
		Reason: "A shape whose number of elements does not fit 63 bits is refused as such, before anything else that is wrong with the request. Over gRPC the two servers name another of its mistakes each.",
		Cases: []string{
			"07-errors-inputs/shape product*",
			"25-grpc-errors/shape product overflows",
		},
	},
	{
		ID:     "paths",
		Reason: "No name leaves the repository: Triton takes default_model_filename and model names with .. and / in them.",
		Fails:  true,
		Cases: []string{
			"load/bad_filename_outside/*",
			"3*-repository/*load dots",
			"30-repository/*load a name with dots",
		},
	},
	{
		ID:     "bf16",
		Reason: "BF16 is a datatype, as in the backend of newer Tritons.",
		Cases: []string{
			"load/bad_input_type_bf16/load",
			"load/bad_input_type_bf16/index",
			"load/bad_type_bf16_model/*",
		},
	},
	{
		ID:     "header",
		Reason: "Headers and body must agree: Inference-Header-Content-Length must be a number, and a compressed body one complete stream. Triton reads 12 from 12x, 0 from text, and takes as much as it could decompress.",
		Cases: []string{
			"10-errors-binary/header not a number",
			"10-errors-binary/header with text behind",
			"10-errors-binary/header empty",
			"60-sagemaker/binary, size no number",
			"61-vertexai/binary, size no number",
			"13-compression/not compressed",
		},
	},
	{
		ID:     "generate",
		Reason: "A generate request whose model fails is answered with the status of any other inference. Triton reads it from memory that it has freed, and answers 400.",
		Fails:  true,
		Cases:  []string{"15-generate/a model that fails*"},
	},
	{
		ID:     "twice",
		Reason: "A configuration that names an input twice is refused, and so is a request that names an output twice, as in newer Tritons.",
		Cases: []string{
			"04-infer-json/an output twice",
			"23-grpc-infer/an output twice",
			"load/bad_input_twice/*",
		},
	},
	{
		ID:     "override",
		Reason: "An empty text as the configuration of a load request is none, and a file that is no base64 is refused as such. Triton 24.10 refuses the first with status 500, and takes the second for an empty file.",
		Cases: []string{
			"30-repository/configuration, empty text",
			"30-repository/file that is no base64",
		},
	},
	{
		ID:     "identity",
		Reason: "The control for a sequence's identity gets a text as it is, and an identity of the other type is refused, as in newer Tritons. Triton 24.10 cannot pass a text to an ONNX model, and passes the first bytes of one on as a number.",
		Cases: []string{
			"50-sequences/text, *",
			"50-sequences/text for a number*",
			"50-sequences/number for a text",
			"50-sequences/UTF-8",
			"51-grpc-sequences/text, *",
			"51-grpc-sequences/text for a number",
			"51-grpc-sequences/a stream, text",
		},
	},
	{
		ID:     "required",
		Reason: "A request that lacks a required input is refused before it runs, also if it has optional inputs in its place. Triton counts them alone, and ONNX Runtime fails.",
		Cases: []string{
			"13-infer-optional/without x",
			"13-infer-optional/without x, with both",
			"13-infer-optional/without x over gRPC",
		},
	},
	{
		ID:     "vertexai",
		Reason: "Vertex AI's header asks for no call with effects, as in newer Tritons.",
		Cases: []string{
			"61-vertexai/redirect to *register*",
			"61-vertexai/redirect to *load*",
		},
	},
	{
		ID:     "ensembles",
		Reason: "A request to an ensemble that fails counts as one failure; Triton counts two. An ensemble that did not fit its models is loaded again with a model that fits.",
		Cases: []string{
			"50-ensembles/fails, statistics",
			"50-ensembles/any_size, statistics",
			"55-steps/*, statistics",
			"load/ens_circular_b/load",
		},
	},
	{
		ID:     "cache",
		Reason: "The response cache keeps neither failures nor answers for other outputs. Triton answers a request that failed with success and no outputs when it comes again, and a request for one output with all outputs of an earlier answer.",
		Fails:  true,
		Cases: []string{
			"41-cache-differs/a run that fails again",
			"41-cache-differs/statistics of the model that fails",
			"41-cache-differs/one output of an answer in the cache",
		},
	},
}

// MaxDifferences is the largest allowed number of differences.
const MaxDifferences = 15

// knownDifference returns the ID of the difference that the named case may show, "" without one.
func knownDifference(name string) (id string) {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	for _, d := range Differences {
		if slices.ContainsFunc(d.Cases, matches) {
			return d.ID
		}
	}
	return ""
}
