//go:build linux && !noengine

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/internal/orttest"
)

// A model with an operator of a library is refused without the library. With it, the model goes from
// init to a verified export. Every step opens only libraries that the command line or the profile
// names.
func TestOperatorsOfALibrary(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	library, model := orttest.TwiceLibrary(t), orttest.TwiceModel(t)
	run := []string{"run", model, "--precision", "fp32", "--budget", "3s", "-o", "out"}
	p := w.run(exit.Usage, run...)
	expect(t, p.stderr.String(), "it uses the operator test:Twice (node ", "hint: name the library with that operator with --op-library or in op_libraries")

	w.run(exit.OK, "init", model, "--op-library", library, "-o", "first")
	for name, want := range map[string]string{"profile.yaml": "op_libraries:\n  - " + library + "\n", "config.pbtxt": `op_library_filename: ["` + library + `"]`} {
		expect(t, w.read(filepath.Join("first", name)), want)
	}

	w.run(exit.OK, append(run, "--op-library", library)...)
	expect(t, w.read("out/repository/twice/config.pbtxt"), `op_library_filename: ["`+library+`"]`)
	expect(t, w.read("out/result.json"), `"operators"`, library)
	w.run(exit.OK, "ortsweep", model, "--op-library", library, "--knob", "intra_op_threads=1", "--budget", "3s", "-o", "sweep", "--quiet")
	expect(t, w.read("sweep/winner.py"), "options.register_custom_ops_library("+`"`+library+`"`)
	w.write("gate.yaml", "candidate: "+model+"\nop_libraries: ["+library+"]\nlimits: {latency_p99: {max: 10s}}\nload: {request_rate: 50}\nwindow: 50ms\noutput: gate\n")
	w.run(exit.OK, "gate", "-f", "gate.yaml", "--quiet")

	w.run(exit.OK, "export", "compose", "--input", "out", "-o", "deploy")
	const carried = "deploy/model_repository/twice/operators/libtwice.so"
	expect(t, w.read("deploy/model_repository/twice/config.pbtxt"), `op_library_filename: ["/models/twice/operators/libtwice.so"]`)
	w.reported(throughputOf(1))
	p = w.run(exit.Usage, "export", "verify", "deploy")
	expect(t, p.stderr.String(), "allow them with --op-library "+carried)
	p = w.run(exit.OK, "export", "verify", "deploy", "--op-library", carried)
	expect(t, p.stdout.String(), "passed  twice: inference: ", "passed  twice: throughput: ")

	p = w.run(exit.Usage, "export", "kubernetes", "--input", "out", "--storage", "s3://models", "-o", "elsewhere")
	expect(t, p.stderr.String(), `it needs the library "`+library+`"`, "name a claim with --storage pvc://CLAIM")
	if err := os.WriteFile(library, append([]byte(w.read(carried)), 0), 0o600); err != nil {
		t.Fatal(err)
	}
	p = w.run(exit.Usage, "export", "triton", "--input", "out", "-o", "changed")
	expect(t, p.stderr.String(), "changed since it was measured")
}

// read returns the text of a file of the workplace.
func (w workplace) read(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
