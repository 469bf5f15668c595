//go:build linux && !noengine

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/internal/memgroup"
	"tuner/measure"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// limitMemory makes tuner, and all that it starts, run in a control group of its own. The kernel
// kills the largest process of the group when memory runs out there. It skips the test if no group
// can be made, or if the kernel does not charge memory to it.
func (w *workplace) limitMemory(mebibytes int) {
	w.t.Helper()
	group, err := memgroup.New("tuner-test", int64(mebibytes)<<20)
	if err != nil {
		w.t.Skipf("needs control groups: %v", err)
	}
	w.t.Cleanup(func() { // engines of a killed tuner may need a moment to end
		eventually(w.t, "an empty control group", func() bool { return group.Close() == nil })
	})
	w.prefix = []string{"/bin/sh", "-c", group.Enter() + ` && exec "$@"`, "sh"}
	probe := exec.Command(w.prefix[0], append(w.prefix[1:], "/bin/sh", "-c", "head -c 2G /dev/zero | tail >/dev/null")...)
	if err := probe.Run(); err == nil {
		w.t.Skip("the kernel does not charge memory to a control group here")
	}
}

// greedy writes a model of a few bytes. Each of its instances takes 256 to 512 MiB while it computes,
// since ONNX Runtime's arena grows in large steps.
func (w workplace) greedy(name string) {
	w.t.Helper()
	const elements = 64 << 20
	g := build.NewGraph("greedy")
	x := g.Input("x", onnx.Float, onnx.Fixed(1))
	large := g.Node("Expand", []string{x, g.Int64s("shape", []int64{elements}, 1)})
	g.OutputAs("y", g.Node("Gather", []string{large, g.Int64s("last", []int64{elements - 1}, 1)}), onnx.Float, onnx.Fixed(1))
	writeModel(w.t, filepath.Join(w.dir, name), g.Model())
}

// Engines that the kernel kills for memory are failed trials. The journal says why. The campaign
// continues with smaller configurations, and has an answer.
func TestEngineKilledForMemory(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.greedy("greedy.onnx")
	w.write("profile.yaml", fmt.Sprintf(`model: greedy.onnx
output: %q
search: {strategy: grid, budget: {time: 2m, trials: 4}, window: 100ms}
space: {instance_count: [1], intra_op_threads: [1]}
load: {concurrency: [2]}
`, w.output))
	w.limitMemory(900)
	p := w.run(exit.OK, "profile", "-f", "profile.yaml")
	kills := 0
	for _, f := range failed(w.trials()) {
		if f.Stage != measure.StageMemory {
			t.Errorf("failure %q (%s), want it for memory", f.Stage, f.Reason)
		}
		kills++
	}
	if kills == 0 || kills == len(w.trials()) {
		t.Errorf("%d of %d trials failed; want those of the default, which has 2 instances; stderr:\n%s", kills, len(w.trials()), p.stderr.String())
	}
	w.analyze()
}

// Where the engine is the process that is killed, convert says so; where it is tuner itself, its
// shell sees 137. Either way no incomplete file is left.
func TestConversionKilledForMemory(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.greedy("greedy.onnx")
	w.limitMemory(120)
	p := w.start("convert", "greedy.onnx", "--precision", "fp16", "-o", "made")
	if code := p.exit(); code == exit.OK || code != -1 && !strings.Contains(p.stderr.String(), "memory") {
		t.Errorf("exit code %d; stderr:\n%s", code, p.stderr.String())
	}
	if entries, err := os.ReadDir(filepath.Join(w.dir, "made")); err == nil && len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// A server that runs out of memory while it loads its models is killed, and its parent sees the
// signal.
func TestServerKilledForMemory(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.greedy(filepath.Join("repository", "greedy", "1", "model.onnx"))
	input := `inputs { key: "x" value { data_type: TYPE_FP32 dims: [1] zero_data: true } }`
	w.write(filepath.Join("repository", "greedy", "config.pbtxt"), "max_batch_size: 0\nmodel_warmup [{ name: \"w\" batch_size: 1 "+input+" }]\n")
	w.limitMemory(100)
	p := w.start("serve", "--model-repository=repository", "--http-port=0", "--grpc-port=0", "--metrics-port=0")
	if code := p.exit(); code != -1 || strings.Contains(p.stderr.String(), "Started HTTPService") {
		t.Errorf("exit code %d, want the kernel's kill before the server has started; stderr:\n%s", code, p.stderr.String())
	}
}
