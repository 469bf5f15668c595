package cli

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"tuner/export/verify"
	"tuner/precision"
	"tuner/precision/accuracy"
)

// The output that agrees least counts, one without a cosine does not, and a thousandth is what other builds may round otherwise.
func TestSameAccuracy(t *testing.T) {
	t.Parallel()
	v := precision.Variant{Accuracy: map[string]accuracy.Report{"cpu": {Rows: 64, Outputs: map[string]accuracy.Figures{
		"a": {CosineMean: 0.999}, "b": {CosineMean: 0.9951}, "c": {CosineMean: math.NaN()}}}}}
	for _, tt := range []struct {
		provider string
		reported float64
		status   verify.Status
		text     string
	}{
		{"cpu", 0.9951, verify.Passed, "cosine 0.9951 with the original on 64 rows; reported 0.9951"},
		{"cpu", 0.9942, verify.Passed, "cosine 0.9951 with the original on 64 rows; reported 0.9942"},
		{"cpu", 0.9970, verify.Failed, "cosine 0.9951 with the original on 64 rows; reported 0.997"},
		{"cpu", 0.9930, verify.Failed, "cosine 0.9951 with the original on 64 rows; reported 0.993"},
		{"openvino", 0.9951, verify.Skipped, "the model on this provider is what all others are compared with"},
	} {
		status, text, err := sameAccuracy(v, tt.provider, tt.reported)
		if status != tt.status || text != tt.text || err != nil {
			t.Errorf("%s, reported %g: %s, %q, %v; want %s, %q", tt.provider, tt.reported, status, text, err, tt.status, tt.text)
		}
	}
}

// A model is served by the build that it was tuned on where that is installed, by what the user names before, and else by the usual one. A file
// of the tuned build's name is not run.
func TestExportBuild(t *testing.T) {
	cache := t.TempDir()
	install := func(name string) string {
		library := filepath.Join(cache, "runtimes", name, "onnxruntime", "capi", "libonnxruntime.so.1.2.3")
		if err := errors.Join(os.MkdirAll(filepath.Dir(library), 0o755), os.WriteFile(library, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		return library
	}
	cpu, openvino := install("cpu@1.2.3"), install("openvino@1.2.3")
	t.Setenv("TUNER_CACHE", cache)
	t.Setenv("TUNER_ORT_LIBRARY", "")
	check := func(named, tuned, want string) {
		t.Helper()
		build, err := exportBuild(named, tuned)
		if err != nil || build.Library != want {
			t.Errorf("%q named, tuned on %q: %q, %v; want %q", named, tuned, build.Library, err, want)
		}
	}
	check("", "openvino@1.2.3", openvino)
	check("cpu", "openvino@1.2.3", cpu)
	check("", "openvino@9.9.9", cpu)
	check("", "", cpu)
	check("", openvino, cpu)
	t.Setenv("TUNER_ORT_LIBRARY", openvino)
	check("", "cpu@1.2.3", cpu)
	check("", "cuda@1.2.3", openvino)
}
