package spec

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/provider"
	"tuner/search"
	"tuner/spec/knobs"
)

func valuesOf(s search.Space) map[string][]search.Value {
	values := map[string][]search.Value{}
	for _, k := range s.Knobs {
		values[k.Name] = k.Values
	}
	return values
}

func TestDefaultSpace(t *testing.T) {
	t.Parallel()
	check := func(name string, facts search.Facts, want map[string][]search.Value) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, "model: a.onnx").Space(facts)
			if diff := cmp.Diff(want, valuesOf(s)); diff != "" {
				t.Error(diff)
			}
			if !s.Facts.TritonOnly || !cmp.Equal(s.Facts.Precisions, []string{"fp32"}) || s.Facts.Cores != facts.Cores {
				t.Errorf("facts %+v", s.Facts)
			}
		})
	}
	// Powers of two up to the 6 cores, and the cores themselves; instances up to min(4, cores).
	check("6 cores", search.Facts{Cores: 6, Batching: true}, map[string][]search.Value{
		"intra_op_threads": {"1", "2", "4", "6"},
		"instance_count":   {"1", "2", "3", "4"},
		"max_batch_size":   {"1", "2", "4", "8", "16", "32"},
		"max_queue_delay":  {"0us"},
	})
	check("no batch dimension", search.Facts{Cores: 2}, map[string][]search.Value{
		"intra_op_threads": {"1", "2"}, "instance_count": {"1", "2"},
	})
	check("cores unknown", search.Facts{}, map[string][]search.Value{"intra_op_threads": {"1"}, "instance_count": {"1"}})
}

func TestAutoProviders(t *testing.T) {
	t.Parallel()
	check := func(text string, want ...search.Value) {
		p := parse(t, "model: a\n"+text)
		if diff := cmp.Diff(want, valuesOf(p.Space(search.Facts{Cores: 1}))[search.KnobExecutionProvider]); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if k, _ := p.knob(search.KnobExecutionProvider); k.Values[len(k.Values)-1] != knobs.Auto {
			t.Errorf("%s: Space changed the profile: %v", text, k.Values)
		}
	}
	values := func(names []string) []search.Value {
		return mapped(names, func(name string) search.Value { return search.Value(name) })
	}
	stock := values(provider.OfTriton())
	check("space: {execution_provider: auto}", stock...)
	others := slices.DeleteFunc(slices.Clone(stock), func(v search.Value) bool { return v == "openvino" })
	check("space: {execution_provider: [openvino, auto]}", append([]search.Value{"openvino"}, others...)...)
	all := values(provider.Names())
	check("ep_library: p.so\ndeploy_target: tuner\nspace: {execution_provider: auto}", all...)
	check("deploy_target: tuner\nspace: {execution_provider: auto}", slices.DeleteFunc(slices.Clone(all), func(v search.Value) bool { return v == provider.PlugIn })...)
}

func TestLoadAxis(t *testing.T) {
	t.Parallel()
	check := func(text string, want search.LoadAxis) {
		s := parse(t, "model: a\n"+text).Space(search.Facts{Cores: 2, Batching: true})
		if diff := cmp.Diff(want, s.Load); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("load: {concurrency: [8, 1]}", search.LoadAxis{Levels: []float64{1, 8}, BatchSize: 1})
	check("load: {concurrency: {min: 10, max: 30, step: 10}}",
		search.LoadAxis{Levels: []float64{10, 20, 30}, Any: true, BatchSize: 1})
	// 4 · batch 2 · 2 instances = 16, and twice that for the default. The minimum is 64.
	auto64 := search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32, 64}, Any: true, BatchSize: 1}
	check("space: {max_batch_size: 2, instance_count: 2}", auto64)
	check("space: {max_batch_size: 2}\nload: {concurrency: auto}", auto64)
	// 4 · 32 · 3 / 2 per request = 192. The next power of two is 256.
	check("space: {max_batch_size: 32, instance_count: 3}\nload: {client_batch_size: 2}",
		search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}, Any: true, BatchSize: 2})
	// The default configuration supplies values outside the space: 4 · 64 · 4 = 1024, 4 · 64 · 1,
	// and 4 · 8 · 4. The default itself also counts: 4 · 64 · 4. A model that does not batch has 4
	// · 4, and the minimum is 64.
	base := search.Facts{Cores: 8, Batching: true, BaseMaxBatchSize: 64, BaseInstances: 4}
	last := func(text string, facts search.Facts, want float64) {
		t.Helper()
		levels := parse(t, "model: a\n"+text).Space(facts).Load.Levels
		if got := levels[len(levels)-1]; got != want {
			t.Errorf("%s: the loads end at %v, want %v", text, got, want)
		}
	}
	last("space: {intra_op_threads: [1, 2]}", base, 1024)
	last("space: {intra_op_threads: [1, 2]}", search.Facts{Batching: true, BaseMaxBatchSize: 64, BaseInstances: 1}, 256)
	last("space: {max_batch_size: 8}", search.Facts{Batching: true, BaseMaxBatchSize: 1, BaseInstances: 4}, 128)
	last("space: {max_batch_size: [1, 2], instance_count: [1, 2]}", base, 1024)
	last("space: {intra_op_threads: [1, 2]}", search.Facts{BaseMaxBatchSize: 64, BaseInstances: 4}, 64)
	// The maximum is 1024 for every space.
	check("space: {max_batch_size: 2000000000, instance_count: 2000000000}",
		search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}, Any: true, BatchSize: 1})
}

func TestSettings(t *testing.T) {
	t.Parallel()
	p := parse(t, "model: a\nsearch: {budget: 1m, seed: 5, window: 2s, confidence: 0.9, until: 2%}\nobjective: latency_p99")
	facts := search.Facts{Cores: 2, Batching: true}
	want := search.Settings{
		Space: p.Space(facts), Goal: p.Goal, Budget: search.Budget{Time: time.Minute}, Seed: 5, Window: 2 * time.Second, Confidence: 0.9, Until: 0.02, Turns: true,
	}
	if diff := cmp.Diff(want, p.Settings(facts)); diff != "" {
		t.Error(diff)
	}
}

// This program cannot pause a server that was running already. The server of the finals counts.
func TestWhichServersTakeTurns(t *testing.T) {
	t.Parallel()
	check := func(servers string, want bool) {
		t.Helper()
		if s := parse(t, "model: a\n"+servers).Settings(search.Facts{}); s.Turns != want {
			t.Errorf("%s: turns: %t", servers, s.Turns)
		}
	}
	check("", true)
	check("runner: {mode: local, server: tritonserver}", true)
	check("runner: {mode: remote, url: gpu7}", false)
	check("finals: {runner: {mode: remote, url: gpu7}}", false)
	check("runner: {mode: remote, url: gpu7}\nfinals: {runner: {mode: bundled}}", true)
	check("constraints: {gpu_memory: {max: 8GB}}", false)
	check("objective: gpu_memory", false)
	check("constraints: {gpu_utilization: {max: 80%}}", true)
}
