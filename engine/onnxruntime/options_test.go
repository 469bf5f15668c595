package onnxruntime

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/hostpolicy"
	"tuner/model/modelconfig"
	"tuner/ort"
)

// Every setting of a configuration that Triton's backend reads reaches ONNX Runtime.
func TestOptions(t *testing.T) {
	t.Parallel()
	parameter := func(key, value string) string {
		return `parameters { key: "` + key + `" value { string_value: "` + value + `" } }`
	}
	level := func(n string) string { return `optimization { graph { level: ` + n + ` } }` }
	entries := func(key, value string) map[string]string { return map[string]string{key: value} }
	for text, want := range map[string]ort.SessionOptions{
		"":                                       {},
		parameter("intra_op_thread_count", "3"):  {IntraOpThreads: 3},
		parameter("intra_op_thread_count", "-3"): {},
		parameter("inter_op_thread_count", "2"):  {InterOpThreads: 2},
		parameter("execution_mode", "0"):         {ExecutionMode: ort.Sequential},
		parameter("execution_mode", "1"):         {ExecutionMode: ort.Parallel},
		parameter("enable_mem_arena", "0"):       {MemoryArena: ort.Off},
		parameter("enable_mem_arena", "true"):    {MemoryArena: ort.On},
		parameter("enable_mem_pattern", "false"): {MemoryPattern: ort.Off},
		parameter("enable_mem_pattern", "1"):     {MemoryPattern: ort.On},
		parameter("memory.enable_memory_arena_shrinkage", "cpu:0"): {
			RunEntries: entries("memory.enable_memory_arena_shrinkage", "cpu:0")},
		parameter("session.use_device_allocator_for_initializers", "1"): {
			Entries: entries("session.use_device_allocator_for_initializers", "1")},
		parameter("session.intra_op.allow_spinning", "0"): {Entries: entries("session.intra_op.allow_spinning", "0")},
		parameter("of_no_meaning", "1"):                   {},
		level("-1"):                                       {GraphOptimization: ort.OptimizeBasic},
		level("0"):                                        {GraphOptimization: ort.OptimizeAll},
		level("1"):                                        {GraphOptimization: ort.OptimizeExtended},
		level("2"):                                        {GraphOptimization: ort.OptimizeNothing},
		level("7"):                                        {GraphOptimization: ort.OptimizeAll},
		// an accelerator for GPUs means nothing to an instance on a CPU
		`optimization { execution_accelerators { gpu_execution_accelerator { name: "nope" } } }`: {},
	} {
		c, err := modelconfig.Parse("config.pbtxt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&Backend{}).options(c, engine.Instance{Policy: hostpolicy.Any()})
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, d)
		}
	}
}

// Under a policy the threads that the configuration leaves open are as many as the cores.
func TestOptionsUnderAPolicy(t *testing.T) {
	t.Parallel()
	n := hostpolicy.Cores()
	for text, want := range map[string]ort.SessionOptions{
		"": {IntraOpThreads: n, InterOpThreads: n},
		`parameters { key: "intra_op_thread_count" value { string_value: "7" } }`: {IntraOpThreads: 7, InterOpThreads: n},
	} {
		c, err := modelconfig.Parse("config.pbtxt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&Backend{}).options(c, engine.Instance{Policy: hostpolicy.Policy{Node: 0}})
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, d)
		}
	}
}
