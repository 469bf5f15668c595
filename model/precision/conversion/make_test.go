package conversion

import (
	"bytes"
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/programtest"
	"tuner/model/dataset"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/ort/ortlib"
	"tuner/ort/provider/probe"
)

// A provider that leaves all nodes to cpu is rejected, for all figures. The nodes of the others are
// reported.
func TestAssign(t *testing.T) {
	t.Parallel()
	script := `#!/bin/sh
case "$5" in
openvino) echo '{"assigned": [{"provider": "openvino", "nodes": 1, "ops": {"Add": 1}}, {"provider": "cpu", "nodes": 2, "ops": {"Loop": 2}}]}' ;;
dnnl) echo '{"assigned": [{"provider": "dnnl", "nodes": 0}, {"provider": "cpu", "nodes": 3, "ops": {"Add": 1, "Loop": 2}}]}' ;;
esac
`
	providers := []string{"cpu", "openvino", "dnnl"}
	c := converter{
		prober: probe.Prober{Program: filepath.Join(t.TempDir(), "tuner"), Name: "tuner", Timeout: time.Minute},
		builds: func(string) ortlib.Build { return ortlib.Build{} },
	}
	programtest.Write(t, c.prober.Program, script)
	report := accuracy.Report{Rows: 1, Outputs: map[string]accuracy.Figures{"y": {CosineMean: 1}}}
	v := Variant{Precision: "int8", made: precision.Variant{
		Path: "m.onnx", Rejected: map[string]string{},
		Accuracy: map[string]accuracy.Report{"cpu": report, "openvino": report, "dnnl": report},
	}}
	if err := c.assign(t.Context(), &v, providers); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"openvino": "1 of 3 nodes; cpu runs 2 (Loop × 2)"}, v.Assigned); diff != "" {
		t.Errorf("assigned (-want +got):\n%s", diff)
	}
	const none = "it takes none of the model's 3 nodes; cpu runs 3 (Loop × 2, Add)"
	if diff := cmp.Diff(map[string]string{"dnnl": none}, v.made.Rejected); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}

	v.Rejected, v.Accuracy = v.made.Rejected, v.made.Accuracy // as export does
	var out bytes.Buffer
	r := Result{Request: Request{Model: "m", Providers: providers}, Variants: []Variant{v}}
	r.Settings.Data = dataset.Dataset{Name: "rows.npz", Rows: 1}
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"on 1 row of rows.npz\n", "int8 on openvino runs 1 of 3 nodes", "int8 on dnnl is rejected: " + none} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.assign(ended, &v, providers); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestWobbleText(t *testing.T) {
	t.Parallel()
	for difference, want := range map[float64]string{0: "", 0.0125: "they differ by up to 0.0125", math.Inf(1): "a whole number changes, or a value is NaN or infinite in one run alone"} {
		if got := wobbleText(difference); got != want {
			t.Errorf("%v: %q, want %q", difference, got, want)
		}
	}
}
