package ortlib

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The build that the user names serves a model, else the installed build on which it was tuned,
// else the usual one. A library file in place of the tuned build's name is not run.
func TestResolveTuned(t *testing.T) {
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
		build, err := ResolveTuned(named, tuned)
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
