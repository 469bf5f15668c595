//go:build linux && !noengine

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/exit"
	"tuner/ort/ortlib"
	"tuner/profile/journal"
	"tuner/search"
)

// installed finds an ONNX Runtime build in the user's cache. It skips the test without one.
func installed(t *testing.T, flavour string) ortlib.Build {
	t.Helper()
	store, err := ortlib.UserStore()
	if err != nil {
		t.Fatal(err)
	}
	build, err := store.Find(flavour)
	if err != nil {
		t.Skipf("%v: 'make test' installs it", err)
	}
	return build
}

// One campaign has two builds and two execution providers. Each place is judged and measured
// without a failure. The results have the number of the model's nodes that OpenVINO took.
func TestOpenVINOInACampaign(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	cpu, openvino := installed(t, "cpu"), installed(t, "openvino")
	// The builds come from the user's cache. Results of the comparison are stored elsewhere.
	cache := filepath.Join(w.dir, "cache")
	if err := os.Mkdir(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	runtimes := filepath.Join(cpu.Dir, "..", "..", "..") // runtimes/cpu@1.31.1/onnxruntime/capi
	if err := os.Symlink(runtimes, filepath.Join(cache, "runtimes")); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"TUNER_CACHE=" + cache}
	// It leaves out the parameter for threads, which is not OpenVINO's.
	w.write("waits.pbtxt", "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 10000 }\n")
	w.write("openvino.yaml", fmt.Sprintf(`model: %q
config: waits.pbtxt
output: %q
deploy_target: tuner
search: {strategy: grid, budget: {time: 2m, trials: 8}, window: 100ms}
space: {runtime: [cpu, openvino], execution_provider: [cpu, openvino], instance_count: [1]}
load: {concurrency: [2]}
constraints: {accuracy: {metric: cosine, min: 0.99}}
`, filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx"), w.output))
	w.run(exit.OK, "profile", "-f", "openvino.yaml")

	if failures := failed(w.trials()); len(failures) > 0 {
		t.Errorf("failed: %+v", failures)
	}
	want := []search.Place{
		{Provider: "cpu", Runtime: cpu.Name()}, {Provider: "cpu", Runtime: openvino.Name()}, {Provider: "openvino", Runtime: openvino.Name()},
	}
	if diff := cmp.Diff(want, measuredPlaces(w.trials())); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
	header, _, err := journal.Read(w.output)
	if err != nil {
		t.Fatal(err)
	}
	if len(header.Variants) != 1 || len(header.Variants[0].Rejected) != 0 || len(header.Variants[0].Accuracy) != 2 {
		t.Fatalf("compared: %+v; want the original, accepted in two places", header.Variants)
	}
	for _, place := range want[1:] { // all others are compared with the first
		if report, ok := header.Variants[0].Accuracy[place.String()]; !ok || report.Rows == 0 {
			t.Errorf("the original was not compared on %s", place)
		}
	}
	p := w.analyze()
	if !regexp.MustCompile(`openvino took all [0-9]+ nodes\.`).Match(p.stdout.Bytes()) {
		t.Errorf("the nodes that OpenVINO took are missing in\n%s", p.stdout.String())
	}
}

// measuredPlaces lists the places of the candidates without the default, each once, in order.
func measuredPlaces(events []search.Event) []search.Place {
	var places []search.Place
	for _, e := range events {
		provider, _ := e.Trial.Candidate.Get(search.KnobExecutionProvider)
		runtime, _ := e.Trial.Candidate.Get(search.KnobRuntime)
		place := search.Place{Provider: string(provider), Runtime: string(runtime)}
		if e.Trial.Phase == search.PhaseSearch && !e.Trial.Candidate.IsDefault() && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}
