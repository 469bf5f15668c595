package modelconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"tuner/model/modelconfig/configpb"
)

// This completes the MiniLM encoder without a config.pbtxt. It compares the bytes with the answer
// of a real Triton 2.51 with its onnxruntime backend. The inputs have the order of Triton's hash
// map.
func TestFormatJSONObserved(t *testing.T) {
	t.Parallel()
	int64s := func(name string) Tensor {
		return Tensor{Name: name, DataType: configpb.DataType_TYPE_INT64, Dims: []int64{-1, 32}}
	}
	io := &ModelIO{
		Inputs:  []Tensor{int64s("token_type_ids"), int64s("attention_mask"), int64s("input_ids")},
		Outputs: []Tensor{{Name: "embedding", DataType: configpb.DataType_TYPE_FP32, Dims: []int64{-1, 384}}},
	}
	c, err := Complete(&Config{}, CompleteOptions{DirName: "minilm", HasModelFile: true, IO: io})
	if err != nil {
		t.Fatal(err)
	}
	got, err := FormatJSON(c)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(string(readFile(t, "minilm.triton-2.51.json")))
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// 64-bit integers are numbers except in three messages. Keys of maps are always strings in numeric
// order. Doubles have a point.
func TestFormatJSONIntegers(t *testing.T) {
	t.Parallel()
	c := mustParse(t, []byte(`
		version_policy { specific { versions: [1, 2] } }
		dynamic_batching {
			max_queue_delay_microseconds: 18446744073709551615
			priority_queue_policy { key: 10 value {} }
			priority_queue_policy { key: 9 value { default_timeout_microseconds: 5 } }
		}
		instance_group { secondary_devices { device_id: 3 } }
		model_metrics { metric_control { histogram_options { buckets: [1, 2.5, inf] } } }`))
	got, err := FormatJSON(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"versions":[1,2]`,
		`"max_queue_delay_microseconds":18446744073709551615`,
		`"priority_queue_policy":{"9":{"timeout_action":"REJECT","default_timeout_microseconds":5,"allow_timeout_override":false,"max_queue_size":0},"10":{`,
		`"secondary_devices":[{"kind":"KIND_NVDLA","device_id":"3"}]`,
		`"buckets":[1.0,2.5,"Infinity"]`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s not in %s", want, got)
		}
	}
}

// All forms of one configuration that Triton accepts.
func TestParseJSON(t *testing.T) {
	t.Parallel()
	want := mustParse(t, []byte(`
		max_batch_size: 32 backend: "onnxruntime"
		input { name: "x" data_type: TYPE_FP32 dims: [-1, 4] }
		instance_group { kind: KIND_CPU count: 2 }
		dynamic_batching { max_queue_delay_microseconds: 100 }
		parameters { key: "kind" value { string_value: "kind_cpu" } }`))
	for name, text := range map[string]string{
		"snake_case":      `{"max_batch_size":32,"backend":"onnxruntime","input":[{"name":"x","data_type":"TYPE_FP32","dims":[-1,4]}],"instance_group":[{"kind":"KIND_CPU","count":2}],"dynamic_batching":{"max_queue_delay_microseconds":100},"parameters":{"kind":{"string_value":"kind_cpu"}}}`,
		"camelCase":       `{"maxBatchSize":32,"backend":"onnxruntime","input":[{"name":"x","dataType":"TYPE_FP32","dims":[-1,4]}],"instanceGroup":[{"kind":"KIND_CPU","count":2}],"dynamicBatching":{"maxQueueDelayMicroseconds":100},"parameters":{"kind":{"stringValue":"kind_cpu"}}}`,
		"int64 as string": `{"max_batch_size":32,"backend":"onnxruntime","input":[{"name":"x","data_type":"TYPE_FP32","dims":["-1","4"]}],"instance_group":[{"kind":"KIND_CPU","count":2}],"dynamic_batching":{"max_queue_delay_microseconds":"100"},"parameters":{"kind":{"string_value":"kind_cpu"}}}`,
		"enums":           `{"max_batch_size":32,"backend":"onnxruntime","input":[{"name":"x","data_type":"type_fp32","dims":[-1,4]}],"instance_group":[{"kind":"kind-cpu","count":2}],"dynamic_batching":{"max_queue_delay_microseconds":100},"parameters":{"kind":{"string_value":"kind_cpu"}}}`,
		"nulls":           " {\n\"max_batch_size\":32,\"backend\":\"onnxruntime\",\"input\":[{\"name\":\"x\",\"data_type\":11,\"dims\":[-1,4],\"reshape\":null}],\"instance_group\":[{\"kind\":2,\"count\":2}],\"dynamic_batching\":{\"max_queue_delay_microseconds\":100},\"parameters\":{\"kind\":{\"string_value\":\"kind_cpu\"}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseJSONErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{`{"max_batch":1,"input":[{"nam":"x"}]}`, "Invalid config override: " +
			`unknown field "max_batch" in the configuration; did you mean "max_batch_size"?` + "\n" +
			`unknown field "nam" in input[0]; did you mean "name"?`},
		{`{"max_batch_size":`, "Invalid config override: unexpected EOF"},
		{``, "Invalid config override: unexpected EOF"},
		{`{} {}`, "Invalid config override: unexpected text after the configuration"},
		{`{"name":"a","name":"b"}`, `Invalid config override: duplicate field "name"`},
		{`{"max_batch_size":"many"}`, `Invalid config override: invalid value for int32 field maxBatchSize: "many"`},
		{strings.Repeat(`{"a":`, 200), "Invalid config override: nested deeper than 100 levels"},
		{strings.Repeat(" ", 5<<20), "Invalid config override: 5242880 bytes are more than the 4194304 that are allowed"},
		{`[]`, "Invalid config override: unexpected token ["},
		{`3`, "Invalid config override: unexpected token 3"},
	} {
		_, err := ParseJSON([]byte(test.text))
		if err == nil {
			t.Errorf("%s: no error", test.text)
		} else if diff := cmp.Diff(test.want, err.Error()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.text, diff)
		}
	}
}
