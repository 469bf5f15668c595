package knobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// parse returns a profile without errors.
func parse(t *testing.T, text string) spec.Profile {
	t.Helper()
	p, err := spec.ParseProfile("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The values of repeated fields, of maps and of nested fields are in protobuf's text form.
func TestCompositeValues(t *testing.T) {
	t.Parallel()
	check := func(space, knob string, want ...search.Value) {
		t.Run(space, func(t *testing.T) {
			t.Parallel()
			p := parse(t, "model: a\nspace:\n  "+space)
			if len(p.Knobs) != 1 || p.Knobs[0].Name != knob || p.Knobs[0].Scope != search.ScopePool {
				t.Fatalf("knobs are %+v, want %s", p.Knobs, knob)
			}
			if diff := cmp.Diff(want, p.Knobs[0].Values); diff != "" {
				t.Error(diff)
			}
		})
	}
	check(`instance_group: [{kind: KIND_CPU, count: 2}]`, "instance_group", `[{kind:KIND_CPU,count:2}]`)
	check(`instance_group: [[{count: 1, kind: KIND_CPU}], [{kind: KIND_CPU, count: 2}, {kind: KIND_GPU, count: 1, gpus: [0, 1]}]]`, "instance_group",
		`[{kind:KIND_CPU,count:1}]`, `[{kind:KIND_CPU,count:2},{kind:KIND_GPU,count:1,gpus:[0,1]}]`)
	// A list in place of a scalar is swept, as in Model Analyzer. All combinations are values.
	check(`instance_group: [{kind: [KIND_CPU, KIND_GPU], count: [1, 2]}]`, "instance_group",
		`[{kind:KIND_CPU,count:1}]`, `[{kind:KIND_CPU,count:2}]`, `[{kind:KIND_GPU,count:1}]`, `[{kind:KIND_GPU,count:2}]`)
	check(`instance_group: [{kind: KIND_GPU, count: 1, gpus: [[0], [0, 1]]}]`, "instance_group",
		`[{kind:KIND_GPU,count:1,gpus:[0]}]`, `[{kind:KIND_GPU,count:1,gpus:[0,1]}]`)
	check(`optimization: {execution_accelerators: {cpu_execution_accelerator: [[], [{name: openvino, parameters: {num_streams: 2, num_of_threads: [1, 2]}}]]}}`,
		"optimization.execution_accelerators.cpu_execution_accelerator", `[]`,
		`[{name:"openvino",parameters:[{key:"num_of_threads",value:"1"},{key:"num_streams",value:"2"}]}]`,
		`[{name:"openvino",parameters:[{key:"num_of_threads",value:"2"},{key:"num_streams",value:"2"}]}]`)
	check(`dynamic_batching: {priority_queue_policy: [{1: {max_queue_size: 10}}, {1: {max_queue_size: 20}, 2: {timeout_action: DELAY}}]}`,
		"dynamic_batching.priority_queue_policy", `[{key:1,value:{max_queue_size:10}}]`,
		`[{key:1,value:{max_queue_size:20}},{key:2,value:{timeout_action:DELAY}}]`)
	check("response_cache: {enable: [true, false]}\nrunner: {mode: local}", "response_cache.enable", "true", "false")
	check("metric_tags: {team: [a, 'b \"c\"']}\nrunner: {mode: local}", "metric_tags", `[{key:"team",value:"a"}]`, `[{key:"team",value:"b \"c\""}]`)
}

// A swept value replaces base's value in the deployed configuration.
func TestApplyComposite(t *testing.T) {
	t.Parallel()
	check := func(space string, index int, want ...string) {
		t.Run(space, func(t *testing.T) {
			t.Parallel()
			p := parse(t, "model: a\ndeploy_target: tuner\nspace:\n  "+space)
			candidates := p.Space(search.Facts{Batching: true}).Candidates().All()
			got, err := knobs.Apply(parseConfig(t, base), candidates[index])
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(formatConfig(t, got)), " ")
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s gives\n%s\nwithout %s", candidates[index], text, w)
				}
			}
			if name := candidates[index].Describe(); !strings.Contains(name, string(p.Knobs[0].Values[index])) {
				t.Errorf("%q does not name the value %s", name, p.Knobs[0].Values[index])
			}
		})
	}
	check(`instance_group: [[{kind: KIND_CPU, count: 1}], [{kind: KIND_CPU, count: 3, host_policy: a}, {kind: KIND_CPU, count: 2, name: n}]]`, 1,
		`instance_group { name: "m_0" kind: KIND_CPU count: 3 host_policy: "a" } instance_group { name: "n" kind: KIND_CPU count: 2 }`)
	check(`optimization: {execution_accelerators: {cpu_execution_accelerator: [[], [{name: openvino, parameters: {num_of_threads: 2}}]]}}`, 1,
		`cpu_execution_accelerator { name: "openvino" parameters { key: "num_of_threads" value: "2" } }`)
	check(`dynamic_batching: {priority_levels: [2, 3], default_priority_level: [1]}`, 1, "priority_levels: 3")
	check(`dynamic_batching: {preserve_ordering: [false, true]}`, 1, "preserve_ordering: true")
	check(`parameters: {mine: [a, b]}`, 1, `key: "mine" value { string_value: "b" }`)
}

// Instances of groups count like those of instance_count: for the loads, the knee and the rule on
// threads.
func TestInstanceGroupsCount(t *testing.T) {
	t.Parallel()
	s := parse(t, "model: a\nspace:\n  intra_op_threads: [2]\n  instance_group: [[{kind: KIND_CPU, count: 1}], [{kind: KIND_CPU, count: 2}, {kind: KIND_GPU, count: 30, gpus: [0, 1]}]]").
		Space(search.Facts{Cores: 2, Batching: true})
	all := s.Candidates().All()
	if len(all) != 1 || s.Facts.Instances(all[0]) != 1 || s.Knee(all[0]) != 8 { // 2 × batch 4 × 1 instance
		t.Errorf("candidates %v, knee %v", all, s.Knee(all[0]))
	}
	if folds := fmt.Sprint(s.Candidates().Folds()); !strings.Contains(folds, "oversubscribed: intra_op_threads × the instances of instance_group") {
		t.Errorf("folds are %s, want 62 instances of 2 threads left out on 2 cores", folds)
	}
	// 4 × batch 4 × 62 instances = 992; the next power of two
	if last := s.Load.Levels[len(s.Load.Levels)-1]; last != 1024 {
		t.Errorf("the loads end at %v", last)
	}
}

// A group on GPUs without a list has its count on each GPU.
func TestGroupInstancesOnGPUs(t *testing.T) {
	t.Parallel()
	for text, want := range map[search.Value]int{
		`[{kind:KIND_GPU,count:2}]`:                 8,
		`[{kind:KIND_GPU,count:2,gpus:[0,1]}]`:      4,
		`[{kind:KIND_CPU,count:2}]`:                 2,
		`[{kind:KIND_CPU,count:1},{kind:KIND_GPU}]`: 1,
	} {
		if got := knobs.GroupInstances(text, 4); got != want {
			t.Errorf("%s: %d instances, want %d", text, got, want)
		}
	}
}
