package provider

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxThreads bounds the number of threads. ONNX Runtime creates the threads at once, and ends the
// process if the system has too few.
const MaxThreads = 1024

// Option is an option of a provider. Its name is that of the accelerator's parameter.
type Option struct {
	Name string
	Form Form
	// Lowers reports whether a value makes the provider compute with fewer bits than the model
	// specifies.
	Lowers func(value string) bool
	// Opens reports whether a value makes the provider read or write a file other than a cache
	// below the working folder.
	Opens func(value string) bool
	// Native translates name and value to ONNX Runtime's, if Triton's differ.
	Native func(value string) (name, native string)
	// Parameter is true if Triton's backend reads the option from the model's parameters, and
	// always sets it. If the parameter is missing, it sets the default (Provider.Defaults).
	Parameter bool
	// Coded is true if a parameter is written as the index of its word (Form.Words).
	Coded bool
}

// Form describes the valid values of an option.
type Form struct {
	Holds    func(value string) bool
	Expected string   // the allowed values, for people
	Words    []string // the allowed values, if they are few
	// Refusal is the error of Triton's backend for an option that it parses. %s stands for the
	// value.
	Refusal string
}

// whole is a whole number from least to most.
func whole(least, most int64) Form {
	return Form{
		Holds: func(value string) bool {
			n, err := strconv.ParseInt(value, 10, 64)
			return err == nil && least <= n && n <= most
		},
		Expected: fmt.Sprintf("a whole number from %d to %d", least, most),
		Refusal:  "failed to convert '%s' to integral number",
	}
}

// size is in bytes.
func size() Form {
	return Form{
		Holds: func(value string) bool {
			_, err := strconv.ParseUint(value, 10, 64)
			return err == nil
		},
		Expected: "a number of bytes",
		Refusal:  "failed to convert '%s' to unsigned long long integral number",
	}
}

// toggle is a boolean. words are the values that the provider's own parser accepts.
func toggle(words ...string) Form {
	form := word(words...)
	form.Refusal = "failed to convert '%s' to boolean"
	return form
}

// word is one of a few words.
func word(words ...string) Form {
	return Form{
		Holds:    func(value string) bool { return slices.Contains(words, value) },
		Expected: "one of " + strings.Join(words, ", "),
		Words:    words,
	}
}

// text is any text, such as a path, a device, or shapes.
func text() Form { return Form{Holds: func(string) bool { return true }} }

// openVINODevice is the name of an OpenVINO device. OpenVINO accepts any name. If it has no such
// device, it leaves the model to ONNX Runtime's CPU provider.
func openVINODevice() Form {
	names := regexp.MustCompile(`^(AUTO|((CPU|GPU|NPU)(\.\d+)?)|(AUTO|HETERO|MULTI):(CPU|GPU|NPU)(\.\d+)?(,(CPU|GPU|NPU)(\.\d+)?)*)$`)
	return Form{Holds: names.MatchString, Expected: "CPU, GPU, NPU, GPU.1, AUTO, or a list such as HETERO:GPU,CPU"}
}

// openVINOProperties is OpenVINO's load_config: properties by device. Configurations come over the
// wire too. So the list has no property that names a file, and none that a newer OpenVINO may add.
func openVINOProperties() Form {
	known := strings.Fields(`NUM_STREAMS INFERENCE_NUM_THREADS INFERENCE_PRECISION_HINT EXECUTION_MODE_HINT PERFORMANCE_HINT
		PERFORMANCE_HINT_NUM_REQUESTS SCHEDULING_CORE_TYPE MODEL_DISTRIBUTION_POLICY ENABLE_HYPER_THREADING ENABLE_CPU_PINNING
		ENABLE_CPU_RESERVATION DYNAMIC_QUANTIZATION_GROUP_SIZE KV_CACHE_PRECISION CPU_DENORMALS_OPTIMIZATION
		CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE`)
	return Form{
		Holds: func(value string) bool {
			var devices map[string]map[string]any
			if json.Unmarshal([]byte(value), &devices) != nil {
				return false
			}
			for _, properties := range devices {
				for name := range properties {
					if !slices.Contains(known, name) {
						return false
					}
				}
			}
			return true
		},
		Expected: `a JSON object such as {"CPU": {"ENABLE_CPU_PINNING": "NO"}}, of the properties ` + strings.Join(known, ", "),
	}
}

// lowersOpenVINO searches a load_config for the properties that choose the type to compute with.
// ONNX Runtime's provider sets float32 unless a property sets another type.
func lowersOpenVINO(config string) bool {
	var devices map[string]map[string]any
	if json.Unmarshal([]byte(config), &devices) != nil {
		return false
	}
	lowers := false
	for _, properties := range devices {
		for name, value := range properties {
			switch name {
			case "INFERENCE_PRECISION_HINT":
				lowers = lowers || value != "f32"
			case "EXECUTION_MODE_HINT":
				lowers = lowers || value != "ACCURACY"
			case "DYNAMIC_QUANTIZATION_GROUP_SIZE", "KV_CACHE_PRECISION":
				lowers = true
			}
		}
	}
	return lowers
}

// is and isNot are values of Option.Lowers.
func is(word string) func(string) bool { return func(value string) bool { return value == word } }

func isNot(word string) func(string) bool { return func(value string) bool { return value != word } }

// outside is the Option.Opens of a cache's path, which must lie below the working folder.
func outside(path string) bool { return path != "" && !filepath.IsLocal(path) }

// always is the Option.Opens of an option that no configuration may set.
func always(string) bool { return true }
