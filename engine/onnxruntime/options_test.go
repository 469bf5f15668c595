package onnxruntime

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/hostpolicy"
	"tuner/model/modelconfig"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

// Every setting of a configuration that Triton's backend reads reaches ONNX Runtime.
func TestOptions(t *testing.T) {
	t.Parallel()
	parameter := func(key, value string) string {
		return `parameters { key: "` + key + `" value { string_value: "` + value + `" } }`
	}
	level := func(n string) string { return `optimization { graph { level: ` + n + ` } }` }
	set := func(name, value string) ort.SessionOptions {
		return ort.SessionOptions{Settings: sessionoption.Settings{name: value}}
	}
	entries := func(key, value string) map[string]string { return map[string]string{key: value} }
	for text, want := range map[string]ort.SessionOptions{
		"":                                       {},
		parameter("intra_op_thread_count", "3"):  set(sessionoption.IntraOpThreads, "3"),
		parameter("intra_op_thread_count", "-3"): {},
		parameter("inter_op_thread_count", "2"):  set(sessionoption.InterOpThreads, "2"),
		parameter("execution_mode", "0"):         {},
		parameter("execution_mode", "1"):         set(sessionoption.ExecutionMode, sessionoption.Parallel),
		parameter("enable_mem_arena", "0"):       set(sessionoption.MemoryArena, sessionoption.Off),
		parameter("enable_mem_arena", "true"):    set(sessionoption.MemoryArena, sessionoption.On),
		parameter("enable_mem_pattern", "false"): set(sessionoption.MemoryPattern, sessionoption.Off),
		parameter("enable_mem_pattern", "1"):     set(sessionoption.MemoryPattern, sessionoption.On),
		parameter("memory.enable_memory_arena_shrinkage", "cpu:0"): {
			RunEntries: entries("memory.enable_memory_arena_shrinkage", "cpu:0")},
		parameter("session.use_device_allocator_for_initializers", "1"): {
			Entries: entries("session.use_device_allocator_for_initializers", "1")},
		parameter("session.intra_op.allow_spinning", "0"): {Entries: entries("session.intra_op.allow_spinning", "0")},
		parameter("of_no_meaning", "1"):                   {},
		level("-1"):                                       set(sessionoption.GraphOptimization, "basic"),
		level("0"):                                        {},
		level("1"):                                        set(sessionoption.GraphOptimization, "extended"),
		level("2"):                                        set(sessionoption.GraphOptimization, sessionoption.Disabled),
		level("7"):                                        {},
		// An accelerator for GPUs has no effect on an instance on a CPU.
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

// Under a policy, thread numbers that the configuration leaves open equal the number of cores.
func TestOptionsUnderAPolicy(t *testing.T) {
	t.Parallel()
	cores := strconv.Itoa(hostpolicy.Cores())
	for text, want := range map[string]ort.SessionOptions{
		"": {Settings: sessionoption.Settings{sessionoption.IntraOpThreads: cores, sessionoption.InterOpThreads: cores}},
		`parameters { key: "intra_op_thread_count" value { string_value: "7" } }`: {
			Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "7", sessionoption.InterOpThreads: cores}},
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
