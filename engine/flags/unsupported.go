package flags

import "github.com/spf13/pflag"

// unsupportedFlags lists the options of tritonserver that only concern resources or parts that do not
// exist here. They are ignored with a warning. An option that would change the service is refused
// where it is read, since a warning would be read too late.
func unsupportedFlags() []string {
	return []string{
		"backend-directory", "repoagent-directory", "cache-directory", "pinned-memory-pool-byte-size",
		"cuda-memory-pool-byte-size", "cuda-virtual-address-size", "min-supported-compute-capability", "buffer-manager-thread-count",
		"model-load-gpu-limit", "enable-peer-access", "reuse-http-port", "http-thread-count", "reuse-grpc-port",
		"grpc-infer-thread-count", "grpc-infer-allocation-pool-size", "grpc-max-response-pool-size",
		"grpc-http2-max-pings-without-data", "grpc-http2-max-ping-strikes",
		"sagemaker-thread-count", "vertex-ai-thread-count", "http-header-forward-pattern", "grpc-header-forward-pattern",
	}
}

// unsupportedValues are the values of unsupported options. Most of these may be repeated.
type unsupportedValues map[string]*[]string

func (u unsupportedValues) flags(flags *pflag.FlagSet) {
	for _, name := range unsupportedFlags() {
		u[name] = flags.StringArray(name, nil, "not supported")
		_ = flags.MarkHidden(name) // fails only for an undefined name
	}
}

// ignored lists the options without a meaning here.
func (u unsupportedValues) ignored() (names []string) {
	for _, name := range unsupportedFlags() {
		if len(*u[name]) > 0 {
			names = append(names, "--"+name)
		}
	}
	return names
}
