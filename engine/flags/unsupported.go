package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// unsupported is an option of tritonserver that this engine does not have.
type unsupported struct {
	name string
	// lack names the function that a client or an operator would miss. "" if the option only
	// concerns resources or parts that do not exist here: then it is ignored with a warning.
	lack string
	idle []string // values, in lower case, that need no missing function
}

// unsupportedFlags lists these options. One that would change the service is refused, since a
// warning would be read too late.
func unsupportedFlags() []unsupported {
	off := []string{"false", "off", "0"}
	list := []unsupported{
		{"allow-sagemaker", "there is no SageMaker front end", off},
		{"allow-vertex-ai", "there is no Vertex AI front end", off},
	}
	for _, name := range []string{
		"backend-directory", "repoagent-directory", "cache-directory", "pinned-memory-pool-byte-size",
		"cuda-memory-pool-byte-size", "cuda-virtual-address-size", "min-supported-compute-capability", "buffer-manager-thread-count",
		"model-load-gpu-limit", "enable-peer-access", "reuse-http-port", "http-thread-count", "reuse-grpc-port",
		"grpc-infer-thread-count", "grpc-infer-allocation-pool-size", "grpc-max-response-pool-size",
		"grpc-http2-max-pings-without-data", "grpc-http2-max-ping-strikes",
		"sagemaker-port", "sagemaker-safe-port-range", "sagemaker-thread-count", "vertex-ai-port", "vertex-ai-thread-count",
		"vertex-ai-default-model", "http-header-forward-pattern", "grpc-header-forward-pattern",
	} {
		list = append(list, unsupported{name: name})
	}
	return list
}

// unsupportedValues are the values of unsupported options. Most of these may be repeated.
type unsupportedValues map[string]*[]string

func (u unsupportedValues) flags(flags *pflag.FlagSet) {
	for _, f := range unsupportedFlags() {
		u[f.name] = flags.StringArray(f.name, nil, "not supported")
		_ = flags.MarkHidden(f.name) // fails only for an undefined name
	}
}

// refused lists the values that would change the service.
func (u unsupportedValues) refused() (problems []string) {
	for _, f := range unsupportedFlags() {
		for _, value := range *u[f.name] {
			if f.lack != "" && !slices.Contains(f.idle, strings.ToLower(value)) {
				problems = append(problems, "--"+f.name+"="+value+" is not supported: "+f.lack+"; leave the option out")
			}
		}
	}
	return problems
}

// ignored lists the options without a meaning here.
func (u unsupportedValues) ignored() (names []string) {
	for _, f := range unsupportedFlags() {
		if f.lack == "" && len(*u[f.name]) > 0 {
			names = append(names, "--"+f.name)
		}
	}
	return names
}
