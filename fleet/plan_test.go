package fleet

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
)

// files reads profiles from memory.
func files(texts map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		text, ok := texts[path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}
}

func parsed(t *testing.T) Fleet {
	t.Helper()
	f, err := Parse("dir/fleet.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const minilm = "# mine\nmodel: local/minilm.onnx\nsearch: {budget: 1m, seed: 7}\nconstraints: {latency_p99: {max: 5ms}}\n"

func TestPlan(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"dir/minilm.yaml": minilm, "dir/sub/resnet.yaml": "model: r.onnx\nprice: {per_hour: 9}\n"}
	p, err := NewPlan(parsed(t), files(texts))
	if err != nil {
		t.Fatal(err)
	}
	// Two models on two machines: the first machine measures all models before the second one.
	items := []Item{{"minilm", 1}, {"resnet", 1}, {"minilm", 2}, {"resnet", 2}}
	for _, part := range p.Parts {
		if d := cmp.Diff(items, part.Items); d != "" || part.Run != p.Run || part.Exclusive != ExclusiveCores {
			t.Errorf("%s: %s", part.Machine, d)
		}
	}
	// The profile's own fields stay: the limit, and the seed. The fleet's are the rest.
	want := "# mine\nmodel: /models/minilm/minilm/model.onnx\nsearch: {budget: 4m0s, seed: 7}\nconstraints: {latency_p99: {max: 5ms}}\noutput: /work/out\nname: minilm\nprice:\n  per_hour: 0.4\nobjective: throughput\n"
	if d := cmp.Diff(want, p.Parts[0].Models[0].Profile); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	resnet := p.Parts[1].Models[1].Profile
	if !strings.Contains(resnet, "per_hour: 0.7\n") || !strings.Contains(resnet, "constraints: {latency_p99: {max: 30ms}}") {
		t.Errorf("the price of the pod and the shared limit are not there:\n%s", resnet)
	}
	// Four pods of each type, of 4 minutes. A pod hangs after 2 × 4 + 5 minutes, and there are three attempts.
	costs := []Cost{{"c7i", 4, 16 * time.Minute, 156 * time.Minute, 0.4}, {"l4", 4, 16 * time.Minute, 156 * time.Minute, 0.7}}
	if d := cmp.Diff(costs, p.Costs()); d != "" || costs[0].Price(time.Hour) != 0.4 {
		t.Error(d)
	}
	text, err := p.Parts[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParsePart("plan.json", text)
	if d := cmp.Diff(p.Parts[0], again); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// The second stage measures some types and models, with the values of knobs that are left, on more
// machines. It is another run in another folder.
func TestConfirmPlan(t *testing.T) {
	t.Parallel()
	text := strings.Replace(example, "deadline: 3h", "confirm: {machines: 3, top: 2}\ndeadline: 3h", 1)
	f, err := Parse("dir/fleet.yaml", []byte(text))
	if err != nil || *f.Confirm != (Confirm{3, 2, 4 * time.Minute}) {
		t.Fatalf("%+v, %v", f.Confirm, err)
	}
	read := files(map[string]string{"dir/minilm.yaml": minilm, "dir/sub/resnet.yaml": "model: r.onnx\nspace: {instance_count: [1, 2, 3]}\n"})
	first, err := NewPlan(f, read)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ConfirmPlan(f, read, func(machine, model string) (Space, bool) {
		return Space{"instance_count": {"2"}, "max_queue_delay": {"0us", "100us"}, "precision": {"int8"}}, machine == "l4" && model == "resnet"
	})
	if err != nil || len(second.Parts) != 1 || second.Run == first.Run || second.Fleet.Output != "dir/out/here/confirm" || second.Fleet.PodDeadline() != 13*time.Minute {
		t.Fatalf("%+v, %v", second, err)
	}
	if d := cmp.Diff([]Item{{"resnet", 1}, {"resnet", 2}, {"resnet", 3}}, second.Parts[0].Items); d != "" || second.Fleet.Machines[0].Name != "l4" {
		t.Error(d)
	}
	if p := second.Parts[0].Models[0].Profile; !strings.Contains(p, "space:\n  instance_count: [2]\n  max_queue_delay: [0us, 100us]\n  precision: [int8]\n") {
		t.Errorf("%s", p)
	}
}

// Further campaigns of a stage have the next numbers, on other machines, in a run and a folder of their own. Their jobs end
// soon if there is no machine.
func TestMorePlan(t *testing.T) {
	t.Parallel()
	first, err := NewPlan(parsed(t), files(map[string]string{"dir/minilm.yaml": minilm, "dir/sub/resnet.yaml": "model: r.onnx\n"}))
	if err != nil {
		t.Fatal(err)
	}
	list := []More{{"l4", "resnet", 2, []string{"n2", "n1"}}, {"l4", "minilm", 1, []string{"n1"}}}
	more, err := first.More(list)
	if err != nil || len(more.Parts) != 1 || more.Run == first.Run || more.Parts[0].Run != more.Run || more.Fleet.Output != "dir/out/here/more" || len(more.Fleet.Machines) != 1 {
		t.Fatalf("%+v, %v", more, err)
	}
	part := more.Parts[0]
	if d := cmp.Diff([]Item{{"resnet", 3}, {"resnet", 4}, {"minilm", 3}}, part.Items); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"n1", "n2"}, part.Avoid); d != "" || part.Models[1].Profile != first.Parts[1].Models[1].Profile {
		t.Error(d)
	}
	// Ten minutes to find a machine, and a pod of 2 × 4 + 5 minutes.
	if more.Fleet.Deadline != 23*time.Minute {
		t.Errorf("the deadline is %s", more.Fleet.Deadline)
	}
	if again, err := first.More(list); err != nil || again.Run != more.Run || first.Parts[1].Avoid != nil || len(first.Parts[1].Items) != 4 {
		t.Errorf("%s, %v; %+v", again.Run, err, first.Parts[1])
	}
	// The plan is the same from its parts alone, as the cluster has them.
	found, err := first.Further(more.Parts)
	if d := cmp.Diff(more, found); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	foreign := part
	foreign.Machine = "none"
	other := part
	other.Run = "another"
	for name, parts := range map[string][]Part{"none": nil, "another type": {foreign}, "two runs": {part, other}} {
		if _, err := first.Further(parts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The journals of a run must leave the cluster's etcd room. Two models on two types, two machines of each, are 8 campaigns, of
// 28 kB a minute: 0.9 MB for four minutes each.
func TestJournalBytes(t *testing.T) {
	t.Parallel()
	read := files(map[string]string{"dir/minilm.yaml": minilm, "dir/sub/resnet.yaml": "model: r.onnx\n"})
	f := parsed(t)
	if p, err := NewPlan(f, read); err != nil || p.JournalBytes() != 8*4*28_000 {
		t.Errorf("%d, %v", p.JournalBytes(), err)
	}
	// 8 · 24 h · 60 · 28 kB are 323 MB, and with four machines of each twice that.
	f.Budget, f.Deadline = longestBudget, longestDeadline
	if _, err := NewPlan(f, read); err != nil {
		t.Error(err)
	}
	f.Repeats = 4
	if _, err := NewPlan(f, read); err == nil || !strings.Contains(err.Error(), "would take about 645 MB in the cluster's etcd, and 536 MB are allowed; lower search.budget") {
		t.Error(err)
	}
	// A second stage of 2 models on 2 types, 50 machines of each, is 200 campaigns: 8 GB.
	f.Repeats, f.Confirm = 2, &Confirm{Machines: mostRepeats, Top: 1, Budget: longestBudget}
	if _, err := NewPlan(f, read); err == nil || !strings.Contains(err.Error(), "the second stage, with all types of machines: dir/fleet.yaml: the journals of these campaigns would take about 8064 MB") {
		t.Error(err)
	}
}

// The name of a run changes with all that is measured, and with nothing else.
func TestRunName(t *testing.T) {
	t.Parallel()
	name := func(profile string, change func(*Fleet)) string {
		f := parsed(t)
		change(&f)
		p, err := NewPlan(f, files(map[string]string{"dir/minilm.yaml": profile, "dir/sub/resnet.yaml": "model: r.onnx\n"}))
		if err != nil {
			t.Fatal(err)
		}
		return p.Run
	}
	first := name(minilm, func(*Fleet) {})
	if again := name(minilm, func(f *Fleet) { f.Output, f.Deadline = "elsewhere", time.Hour }); again != first {
		t.Errorf("%s became %s", first, again)
	}
	for what, other := range map[string]string{
		"profile": name(minilm+"mode: online\n", func(*Fleet) {}),
		"budget":  name(minilm, func(f *Fleet) { f.Budget = time.Minute }),
		"image":   name(minilm, func(f *Fleet) { f.Cluster.Image += "0" }),
		"machine": name(minilm, func(f *Fleet) { f.Machines[0].Memory = "13Gi" }),
	} {
		if other == first || !strings.HasPrefix(other, "q3-") {
			t.Errorf("another %s: %s", what, other)
		}
	}
}

// What a pod could not do is said before there is one.
func TestPlanErrors(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]string{
		"": "dir/minilm.yaml:1: the file is empty",
		"model: a.onnx\nspace: {instance_counts: 2}\n":                             "dir/minilm.yaml:2: space.instance_counts",
		"model: a.onnx\nconfig: mine.pbtxt\n":                                      "dir/minilm.yaml: config: a pod has only the files beside the model; put it there, and write /models/minilm/… for its place",
		"model: a.onnx\nrunner: {mode: local}\n":                                   "runner: a fleet measures the bundled engine",
		"model: a.onnx\nsearch: {earlier: [out/a]}\n":                              "search.earlier: a pod has no earlier campaigns",
		"model: a.onnx\nload: {inputs: {data: rows.npz}}\n":                        "load.inputs.data: a pod has only the files beside the model",
		"model: a.onnx\nload: {inputs: {mix: {dimension: n, histogram: n.csv}}}\n": "load.inputs.mix.histogram: a pod has only the files beside the model",
		"model: a.onnx\nop_libraries: [ops.so]\n":                                  "op_libraries: a pod has only the files beside the model",
	} {
		_, err := NewPlan(parsed(t), files(map[string]string{"dir/minilm.yaml": profile, "dir/sub/resnet.yaml": "model: r.onnx\n"}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", profile, err, want)
		}
	}
	_, err := NewPlan(parsed(t), files(nil))
	if err == nil || !strings.Contains(err.Error(), `models.minilm.profile: cannot read "dir/minilm.yaml"`) || !strings.Contains(err.Error(), "models.resnet.profile") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without profiles: %v", err)
	}
	beside := "model: a.onnx\nconfig: /models/minilm/config.pbtxt\n"
	if _, err := NewPlan(parsed(t), files(map[string]string{"dir/minilm.yaml": beside, "dir/sub/resnet.yaml": "model: r.onnx\n"})); err != nil {
		t.Errorf("a file beside the model: %v", err)
	}
}

func FuzzParsePart(f *testing.F) {
	f.Add([]byte(`{"format":1,"run":"q3-1","machine":"c7i","cpus":7,"models":[{"model":"a","file":"/models/a/m.onnx","profile":"model: a"}],"items":[{"model":"a","repeat":1}]}`))
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		p, err := ParsePart("plan.json", text)
		if err != nil {
			return
		}
		for _, i := range p.Items {
			if _, ok := p.Of(i); !ok {
				t.Errorf("no campaign for %+v", i)
			}
		}
	})
}
