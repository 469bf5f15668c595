//go:build linux && !noengine

package cli

import (
	"path/filepath"
	"testing"

	"tuner/internal/exit"
	"tuner/internal/orttest"
	"tuner/model/onnx/build"
)

// The execution provider of a library goes from init to a measured candidate. Without the library the
// profile is refused. With a library that offers no device, the candidates are left out with that
// reason. The provider of the test computes sums.
func TestProviderOfALibrary(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	library, idle := orttest.PlugInLibrary(t, true), orttest.PlugInLibrary(t, false)
	model := filepath.Join(w.dir, "sums.onnx")
	if err := build.Simple().Write(model, 0); err != nil {
		t.Fatal(err)
	}

	w.run(exit.OK, "init", model, "--ep-library", library, "-o", "first")
	expect(t, w.read("first/profile.yaml"), "ep_library: "+library+"\n", "deploy_target: tuner\n", "\n  execution_provider: [cpu, plugin]")

	const space = "deploy_target: tuner\nspace: {execution_provider: [cpu, plugin]}\nload: {request_rate: 50}\nsearch: {budget: {time: 30s, trials: 6}, window: 100ms, strategy: grid}\n"
	w.write("none.yaml", "model: "+model+"\n"+space)
	p := w.run(exit.Usage, "profile", "-f", "none.yaml")
	expect(t, p.stderr.String(), "plugin is the execution provider of a library, and the file names none", "write ep_library: LIBRARY")

	w.write("idle.yaml", "model: "+model+"\nep_library: "+idle+"\n"+space)
	p = w.run(exit.OK, "profile", "-f", "idle.yaml", "--dry-run")
	expect(t, p.stdout.String(), "offers no device here")

	w.write("profile.yaml", "model: "+model+"\nep_library: "+library+"\noutput: out\n"+space)
	w.run(exit.OK, "profile", "-f", "profile.yaml")
	w.run(exit.OK, "analyze", "out")
	expect(t, w.read("out/result.json"), `"provider_library"`, library, `"execution_provider": "plugin"`)
}
