package modelconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"tuner/ort/sessionoption"
)

func TestORTOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     Options
	}{
		{"none", ``, Options{}},
		{
			"all", `
			parameters { key: "intra_op_thread_count" value { string_value: "3" } }
			parameters { key: "inter_op_thread_count" value { string_value: "2" } }
			parameters { key: "execution_mode" value { string_value: "1" } }
			parameters { key: "enable_mem_arena" value { string_value: "0" } }
			parameters { key: "enable_mem_pattern" value { string_value: "1" } }
			parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "cpu:0" } }
			parameters { key: "session.intra_op.allow_spinning" value { string_value: "0" } }
			parameters { key: "gpu_mem_limit" value { string_value: "1024" } }
			parameters { key: "another" value { string_value: "kept" } }
			optimization { graph { level: 1 } execution_accelerators {
				cpu_execution_accelerator { name: "openvino" }
				gpu_execution_accelerator { name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } }
				gpu_execution_accelerator { name: "cuda" } } }`,
			Options{
				Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "3", sessionoption.InterOpThreads: "2", sessionoption.ExecutionMode: sessionoption.Parallel, sessionoption.MemoryArena: sessionoption.Off, sessionoption.MemoryPattern: sessionoption.On, sessionoption.GraphOptimization: "extended"}, ArenaShrinkage: "cpu:0", Session: map[string]string{"session.intra_op.allow_spinning": "0"},
				CUDA:            map[string]string{"gpu_mem_limit": "1024"},
				GPUAccelerators: []Accelerator{{Name: "tensorrt", Parameters: map[string]string{"precision_mode": "FP16"}}, {Name: "cuda"}},
				CPUAccelerators: []Accelerator{{Name: "openvino"}},
			},
		},
		{"graph basic", `optimization { graph { level: -1 } }`, Options{Settings: sessionoption.Settings{sessionoption.GraphOptimization: "basic"}}},
		{"graph off", `optimization { graph { level: 2 } }`, Options{Settings: sessionoption.Settings{sessionoption.GraphOptimization: sessionoption.Disabled}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			in := mustParse(t, []byte(test.in))
			got, err := ORTOptions(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(in, SetORTOptions(in, got), protocmp.Transform()); diff != "" {
				t.Errorf("set again: -want +got:\n%s", diff)
			}
			// Replacing all settings by none leaves only what is not a setting.
			bare := SetORTOptions(in, Options{})
			if left, err := ORTOptions(bare); err != nil || !cmp.Equal(left, Options{}) {
				t.Errorf("after clearing: %+v, %v", left, err)
			}
			if bare.GetParameters()["another"].GetStringValue() != in.GetParameters()["another"].GetStringValue() {
				t.Error("clearing lost a parameter that is not a setting")
			}
		})
	}
}

// The other spellings that the backend accepts.
func TestORTOptionsForms(t *testing.T) {
	t.Parallel()
	got, err := ORTOptions(mustParse(t, []byte(`
		parameters { key: "intra_op_thread_count" value { string_value: "-4" } }
		parameters { key: "execution_mode" value { string_value: "0" } }
		parameters { key: "enable_mem_arena" value { string_value: "True" } }
		parameters { key: "enable_mem_pattern" value { string_value: "false" } }`)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Options{Settings: sessionoption.Settings{sessionoption.MemoryArena: sessionoption.On, sessionoption.MemoryPattern: sessionoption.Off}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The spellings are those of ParseBoolValue in Triton's backend repository, in any case.
func TestORTOptionsBooleans(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1": "true", "true": "true", "TRUE": "true", "on": "true", "On": "true", "0": "false", "false": "false", "off": "false", "OFF": "false",
	} {
		got, err := ORTOptions(mustParse(t, []byte(`parameters { key: "enable_mem_arena" value { string_value: "`+text+`" } }`)))
		if err != nil || got.Settings[sessionoption.MemoryArena] != want {
			t.Errorf("%s: %v, %v, want %v", text, got.Settings, err, want)
		}
	}
}

func TestORTOptionsErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ key, value, want string }{
		{"intra_op_thread_count", "abc", "failed to convert 'abc' to integral number"},
		{"intra_op_thread_count", "", "failed to convert '' to integral number"},
		{"intra_op_thread_count", "99999999999999999999", "failed to convert '99999999999999999999' to integral number"},
		{"intra_op_thread_count", "99999999999", "parameter 'intra_op_thread_count' is 99999999999; this engine allows 1024 threads at most"},
		{"inter_op_thread_count", "x", "failed to convert 'x' to integral number"},
		{"enable_mem_pattern", "2", "failed to convert '2' to boolean"},
		{"execution_mode", "2", "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got 2 ."},
		{"enable_mem_arena", "maybe", "failed to convert 'maybe' to boolean"},
	} {
		in := mustParse(t, []byte(`parameters { key: "`+test.key+`" value { string_value: "`+test.value+`" } }`))
		if _, err := ORTOptions(in); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.key, err, test.want)
		}
	}
}
