package conformance

import "path"

// Difference is a way in which the engine knowingly answers otherwise than Triton.
type Difference struct {
	ID     string
	Reason string   // docs/conformance.md has the same
	Cases  []string // patterns of path.Match for the names of cases
}

// Differences are all that there are. The suite fails for one that is not among them, and for one of them that is gone.
var Differences = []Difference{
	{
		ID:     "later",
		Reason: "Shared memory, trace and log settings, classification, generate and compression are not there yet; the list of extensions says so.",
		Cases: []string{
			"90-later/*",
			"01-server/metadata, plain",
			"01-server/metadata, with *",
			"20-grpc-server/ServerMetadata*",
		},
	},
	{
		ID:     "numbers",
		Reason: "Numbers are read exactly, and one that does not fit its type is refused. Triton wraps it, and reads some fractions wrong in the last bit.",
		Cases: []string{
			"05-infer-types/u*int*, too large",
			"05-infer-types/int*, too *",
			"05-infer-types/double, denormal",
			"24-grpc-types/*int8, too large",
		},
	},
	{
		ID:     "nul",
		Reason: "A NUL is a byte like any other. Triton takes it for the end of a JSON text, and of a string in JSON or in typed contents.",
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
		Reason: "A shape whose number of elements does not fit 63 bits is refused as such, before anything else is checked.",
		Cases: []string{
			"07-errors-inputs/shape product*",
			"25-grpc-errors/shape product overflows",
		},
	},
	{
		ID:     "paths",
		Reason: "No name leaves the repository: Triton takes default_model_filename and model names with .. and / in them.",
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
		Reason: "Inference-Header-Content-Length must be a number. Triton reads 12 from 12x, and 0 from text.",
		Cases: []string{
			"10-errors-binary/header not a number",
			"10-errors-binary/header with text behind",
			"10-errors-binary/header empty",
		},
	},
	{
		ID:     "twice",
		Reason: "A configuration that names an input twice is refused.",
		Cases: []string{
			"load/bad_input_twice/*",
		},
	},
	{
		ID:     "override",
		Reason: "What is wrong with the configuration or the files of a load request is said, with status 400, as newer Tritons do. Triton 24.10 answers 500 and keeps the reason for its log, or takes bad base64 for an empty file.",
		Cases: []string{
			"30-repository/configuration, *",
			"30-repository/file that is no base64",
		},
	},
}

// MaxDifferences is how many differences there may be at most.
const MaxDifferences = 10

// knownDifference returns the pattern that explains the named case, with the ID of its difference before it; "" for none.
func knownDifference(name string) string {
	for _, d := range Differences {
		for _, pattern := range d.Cases {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				return d.ID + ": " + pattern
			}
		}
	}
	return ""
}
