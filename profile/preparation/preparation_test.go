package preparation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// A stock Triton has one runtime, so the journal and its reports name that one.
func TestRuntimesOfTheSetupAreMeasured(t *testing.T) {
	t.Parallel()
	builds := []ortlib.Build{{Flavour: "cpu", Version: "1"}, {Flavour: "openvino", Version: "2"}}
	for target, want := range map[string]int{spec.TargetTriton: 1, spec.TargetTuner: 2} {
		p, err := spec.ParseProfile("p.yaml", []byte("model: m.onnx\ndeploy_target: "+target+"\nspace: {runtime: [cpu, openvino]}"))
		if err != nil {
			t.Fatal(err)
		}
		setup, err := Options{}.Setup(p, profile.Subject{}, search.Facts{}, builds, hostinfo.Host{})
		if err != nil {
			t.Fatal(err)
		}
		if len(setup.Runtimes) != want || setup.Runtimes[0].Name() != "cpu@1" {
			t.Errorf("%s: runtimes %v, want %d", target, setup.Runtimes, want)
		}
	}
}

// Another library may replace one that the user named. A library that tuner installed is identified
// by its name.
func TestLibrariesOfTheUserAreToldApart(t *testing.T) {
	t.Parallel()
	library := filepath.Join(t.TempDir(), "libonnxruntime.so")
	if err := os.WriteFile(library, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	infos, err := runtimeInfos([]ortlib.Build{{Flavour: ortlib.External, Version: "1", Library: library}, {Flavour: "cpu", Version: "1", Library: library}})
	want := []journal.RuntimeInfo{
		// the example in FIPS 180-4
		{Flavour: "external", Version: "1", Library: library, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{Flavour: "cpu", Version: "1", Library: library},
	}
	if diff := cmp.Diff(want, infos); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if _, err := runtimeInfos([]ortlib.Build{{Flavour: ortlib.External, Library: library + ".gone"}}); err == nil {
		t.Error("a library that is not there has a content")
	}
}
