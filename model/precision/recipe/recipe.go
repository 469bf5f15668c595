// Package recipe holds the precisions of a model. Each has one row in table.go: its name, how the
// model is rewritten for it, what the rewrite needs, and the processors on which it pays. All other
// code that depends on a precision asks its row: profiles, the search, the making of variants, the
// command line, the reference.
//
// The package is a table and its look-ups. It stands between onnx/rewrite, which changes models, and
// everything that names a precision. It runs no model, judges none, and reads no files.
// docs/how-to/add-a-precision.md says how to add a row.
package recipe

import (
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/quantization"
)

// The precisions that code outside of this package names.
const (
	Original = "fp32" // the model as given
	Int8     = "int8" // the counterpart of other programs' dynamic quantization
)

// Recipe is one row of the table.
type Recipe struct {
	Name  string // in YAML, in flags and in names of files: int8_static
	About string // what follows the name in a sentence of the reference
	// Lossy is true if outputs may differ from the original's.
	Lossy bool
	// PaysOnCPU and PaysOnGPU are true if the precision is usually faster on such processors.
	PaysOnCPU, PaysOnGPU bool

	// These say which settings change the result. The others are not set for the rewrite.

	Calibrated bool // Settings.Ranges
	HasBits    bool // Settings.Bits
	KeepsIO    bool // Settings.KeepIO

	// Convert rewrites a model, except the nodes in Settings.Keep. It does not change its argument.
	// Equal arguments give equal models.
	Convert func(m *onnx.Model, s Settings) (*onnx.Model, rewrite.Summary, error)
	// Probe makes a model that measures the error of each node's conversion. outputs has by node the
	// additional output with its error. nil: there is no such measurement, and no node can be kept.
	Probe func(m *onnx.Model, s Settings) (probe *onnx.Model, outputs map[string]string, err error)
	// Layers names the nodes that Convert would convert, in a fraction of its time. Its errors are
	// Convert's. nil: the precision changes the model as a whole.
	Layers func(m *onnx.Model) ([]string, error)
}

// Settings configure a rewrite.
type Settings struct {
	Keep   []string                      // nodes that stay in fp32
	KeepIO bool                          // the types of inputs and outputs stay
	Bits   int                           // of a weight: 8 or 7
	Ranges map[string]quantization.Range // of activations, by value
}

// Names lists the precisions, the original first.
func Names() []string { return names(func(Recipe) bool { return true }) }

// Made lists the precisions that tuner makes of the original.
func Made() []string { return Names()[1:] }

// Find returns the row of a name. It returns false if the table has none.
func Find(name string) (Recipe, bool) {
	i := slices.IndexFunc(table, func(r Recipe) bool { return r.Name == name })
	if i < 0 {
		return Recipe{}, false
	}
	return table[i], true
}

// IsLossy reports whether outputs of a precision may differ from the original's. Those of a user's
// own file may.
func IsLossy(name string) bool {
	r, known := Find(name)
	return !known || r.Lossy
}

// Usual lists the precisions that pay on GPUs or on CPUs for some model, the original first. Choose
// decides for one model.
func Usual(onGPU bool) []string { return names(func(r Recipe) bool { return r.pays(onGPU) }) }

// pays reports whether the precision pays on GPUs or on CPUs.
func (r Recipe) pays(onGPU bool) bool {
	if onGPU {
		return r.PaysOnGPU
	}
	return r.PaysOnCPU
}

func names(isWanted func(Recipe) bool) []string {
	var names []string
	for _, r := range table {
		if isWanted(r) {
			names = append(names, r.Name)
		}
	}
	return names
}

// Sentences describes the precisions, one sentence each. quote surrounds their names.
func Sentences(quote string) []string {
	var sentences []string
	for _, r := range table {
		sentences = append(sentences, quote+r.Name+quote+" "+r.About+".")
	}
	return sentences
}
