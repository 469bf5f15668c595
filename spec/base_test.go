package spec

import (
	"testing"

	"tuner/ort/sessionoption"
	"tuner/search"
)

// Threads spin by default. If only one of two pools spins, the knob has no such value. XNNPACK has
// another default.
func TestBaseKnowsSpinning(t *testing.T) {
	t.Parallel()
	const (
		head    = `name: "m" backend: "onnxruntime" `
		intra   = `parameters { key: "session.intra_op.allow_spinning" value { string_value: "0" } } `
		inter   = `parameters { key: "session.inter_op.allow_spinning" value { string_value: "0" } } `
		xnnpack = `optimization { execution_accelerators { cpu_execution_accelerator { name: "xnnpack" } } } `
	)
	for text, want := range map[string]search.Value{
		"": "true", intra + inter: "false", intra: "", inter: "", xnnpack: "", xnnpack + intra: "", xnnpack + intra + inter: "false",
	} {
		if got := Base(parseConfig(t, head+text))[sessionoption.AllowSpinning]; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
