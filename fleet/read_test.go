package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/spec/document"
)

const digestText = "669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1"

// example has every field.
const example = `name: q3
models:
  minilm: {profile: minilm.yaml, from: pvc://models/minilm/model.onnx, sha256: ` + digestText + `}
  resnet: {profile: sub/resnet.yaml, from: "oci://registry.example.com/resnet@sha256:` + digestText + `#model.onnx"}
machines:
  c7i: {select: {node.kubernetes.io/instance-type: c7i.2xlarge}, cpus: 7, memory: 12Gi, price: {per_hour: 0.4}}
  l4: {select: {nvidia.com/gpu.product: NVIDIA-L4}, cpus: 6, memory: 24Gi, gpus: 1, share: 1/4, price: {per_hour: 2.8}}
constraints: {latency_p99: {max: 30ms}}
objective: throughput
search: {budget: 4m, machines: 2}
cluster:
  context: prod
  namespace: tuning
  image: registry.example.com/tuner:1.4@sha256:` + digestText + `
  exclusive: cores
  queue: tuning-queue
  priority_class: low
  service_account: profiler
  tolerations: [{key: tuning, operator: Exists}]
deadline: 3h
output: out/here
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse("dir/fleet.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := Fleet{
		Path: "dir/fleet.yaml", Name: "q3", Budget: 4 * time.Minute, Repeats: 2, Deadline: 3 * time.Hour, Output: "dir/out/here",
		Models: []Model{
			{"minilm", "dir/minilm.yaml", Source{SourceClaim, "models", "minilm/model.onnx"}, digestText},
			{"resnet", "dir/sub/resnet.yaml", Source{SourceImage, "registry.example.com/resnet@sha256:" + digestText, "model.onnx"}, ""},
		},
		Machines: []Machine{
			{"c7i", map[string]string{"node.kubernetes.io/instance-type": "c7i.2xlarge"}, 7, "12Gi", 0, 1, 0.4},
			{"l4", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"}, 6, "24Gi", 1, 0.25, 2.8},
		},
		Shared: map[string]string{"constraints": "{latency_p99: {max: 30ms}}\n", "objective": "throughput\n"},
		Cluster: Cluster{Context: "prod", Namespace: "tuning", Image: "registry.example.com/tuner:1.4@sha256:" + digestText, Exclusive: ExclusiveCores,
			Queue: "tuning-queue", Priority: "low", Account: "profiler", Toleration: []Toleration{{Key: "tuning", Operator: "Exists"}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	// 2.8 for the node, of which a pod takes a quarter.
	if got.Machines[1].Hourly() != 0.7 || got.Models[0].In() != "/models/minilm/minilm/model.onnx" {
		t.Errorf("%v, %s", got.Machines[1].Hourly(), got.Models[0].In())
	}
}

// Every mistake names its line, its place and a remedy or what is allowed.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for change, want := range map[[2]string]string{
		{"name: q3", "name: Q3"}:                                      "fleet.yaml:1: name: cannot be part of the name of an object",
		{"name: q3\n", ""}:                                            "name: is required",
		{"pvc://models", "nfs://models"}:                              "models.minilm.from: is not a place from which pods can get a model (value \"nfs://models/minilm/model.onnx\"); allowed: pvc://CLAIM/PATH",
		{"pvc://models/minilm", "pvc://models/../minilm"}:             "models.minilm.from: is not a place",
		{"resnet@sha256:" + digestText, "resnet:1"}:                   "models.resnet.from: does not name the content of an image",
		{"profile: minilm.yaml, ", ""}:                                "models.minilm.profile: is required",
		{"sha256: " + digestText, "sha256: 66"}:                       "models.minilm.sha256: is not a SHA-256",
		{"memory: 12Gi", "memory: much"}:                              "machines.c7i.memory: is not a size of memory (value \"much\")",
		{"cpus: 7", "cpus: 3.5"}:                                      "machines.c7i.cpus: must be",
		{"share: 1/4", "share: 5/4"}:                                  "machines.l4.share: is not a part of a machine",
		{"select: {nvidia.com/gpu.product: NVIDIA-L4}", "select: {}"}: "machines.l4.select: must have labels of nodes",
		{"tuner:1.4@sha256:" + digestText, "tuner:1.4"}:               "cluster.image: does not name the content of an image",
		{"exclusive: cores", "exclusive: core"}:                       "cluster.exclusive: is not known (value \"core\"); allowed: node, cores, shared\n    hint: did you mean \"cores\"?",
		{"deadline: 3h", "deadline: 2m"}:                              "deadline: is shorter than one pod may take, which is 13m0s",
		{"machines: 2}", "machines: 0}"}:                              "search.machines: is out of range",
		{"search: {budget: 4m", "search: {budge: 4m"}:                 "search.budge: unknown field",
		{"budget: 4m,", "budget: 4m, first: 4m,"}:                     "search: has a first part of 4m0s, which is not shorter than the budget of 4m0s",
		{"deadline: 3h", "confirm: {machines: 1}"}:                    "confirm.machines: is out of range",
		{"deadline: 3h", "capacity: {trace: a.csv}"}:                  "capacity: is not supported by this version",
		{"operator: Exists", "operator: Is"}:                          "cluster.tolerations[0].operator: is not known",
	} {
		text := strings.Replace(example, change[0], change[1], 1)
		_, err := Parse("fleet.yaml", []byte(text))
		var all document.Errors
		if !errors.As(err, &all) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q in place of %q:\n got %v\nwant %s", change[1], change[0], err, want)
		}
	}
	if _, err := Parse("fleet.yaml", []byte("models: {}\nmachines: 3\n")); err == nil || len(strings.Split(err.Error(), "fleet.yaml:")) < 5 {
		t.Errorf("want all mistakes together, got %v", err)
	}
}

// The cluster ends the pods of a stage at the deadline, also at the default one. A pod takes up to
// twice its budget and five minutes.
func TestDeadlinesOfStages(t *testing.T) {
	t.Parallel()
	var types strings.Builder
	for i := range 10 {
		fmt.Fprintf(&types, "  t%d: {select: {type: t%d}, cpus: 1, memory: 1Gi}\n", i, i)
	}
	const deadline = "deadline: 3h\n"
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"the default one":              {[]string{deadline, "", "budget: 4m", "budget: 8h"}, "search: has a budget with which one pod may take 16h5m0s, and the deadline is 6h0m0s"},
		"a second stage":               {[]string{deadline, "deadline: 30m\nconfirm: {budget: 30m}\n"}, "deadline: is shorter than one pod may take, which is 1h5m0s (value \"30m\")\n    hint: raise it, or lower confirm.budget"},
		"a second stage, default":      {[]string{deadline, "confirm: {budget: 8h}\n"}, "confirm: has a budget with which one pod may take 16h5m0s"},
		"campaigns of a second stage":  {[]string{"machines:\n", "machines:\n" + types.String(), deadline, "confirm: {machines: 50}\n"}, "models: make 1200 campaigns with the machines and confirm.machines"},
		"nothing against its defaults": {[]string{deadline, "confirm: {}\n"}, ""},
	} {
		_, err := Parse("fleet.yaml", []byte(strings.NewReplacer(c.change...).Replace(example)))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}

// A fleet that is read has what the plan needs; one that is not says why.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	for _, text := range []string{"", "~", "name: a\nmodels: &x {a: *x}", "machines: {a: {select: {b: c}, share: 1/0}}", "cluster: {tolerations: {}}", "\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		got, err := Parse("f.yaml", text)
		if err != nil {
			var es document.Errors
			if !errors.As(err, &es) || len(es) == 0 {
				t.Fatalf("error is %T: %v", err, err)
			}
			return
		}
		if got.Name == "" || len(got.Models) == 0 || len(got.Machines) == 0 || got.Cluster.Image == "" || got.Output == "" {
			t.Errorf("incomplete: %+v", got)
		}
		for _, m := range got.Models {
			if m.Profile == "" || m.From.File == "" || strings.Contains(m.From.File, "..") {
				t.Errorf("%+v", m)
			}
		}
		for _, m := range got.Machines {
			if m.CPUs < 1 || m.Memory == "" || len(m.Select) == 0 || m.Share <= 0 || m.Share > 1 {
				t.Errorf("%+v", m)
			}
		}
	})
}
