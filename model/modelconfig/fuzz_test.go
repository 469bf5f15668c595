package modelconfig

import (
	"bytes"
	"testing"

	"tuner/internal/alloctest"
)

// A configuration survives printing and reading in both notations. Printing the result gives the
// same bytes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", `name: "m"`, named + pinned + defaultGroup + addSubIO,
		`input [ { dims: [1, -1] }, < dims: 3 > ]`, `parameters { key: "a\xff" }`, `name: 'it''s "é"' # c`,
		`model_metrics { metric_control { histogram_options { buckets: [inf, -inf, 1e400, 0x1] } } }`,
		`dynamic_batching { priority_queue_policy { key: 10 } priority_queue_policy { key: 9 } }`,
		`input { data_type: 99 }`, `max_batch: 1`, `# txtpbfmt: disable` + "\nname: \"m\"",
		`name: "# txtpbfmt: disable" platform: "%a% {{.B}}" runtime: "\r\n\t\000\'" backend: "[ { < ;,"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		c, err := Parse("f", text)
		if err != nil {
			return
		}
		checkRoundTrips(t, c)
	})
}

// FuzzParseJSON is FuzzParse with JSON as input.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"max_batch_size":32,"backend":"onnxruntime"}`, `{"input":[{"dims":["1",-1],"dataType":"type_fp32"}]}`,
		`{"parameters":{"a":{"string_value":"\u0000\ud800"}}}`, `{"dynamicBatching":{"priorityQueuePolicy":{"1":{"timeoutAction":"delay"}}}}`,
		`{"name":null}`, `[`, `{"a":1}`, `{"max_batch_size":1e1}`, `{"model_metrics":{"metric_control":[{"histogram_options":{"buckets":["NaN"]}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		c, err := ParseJSON(text)
		if err != nil {
			return
		}
		checkRoundTrips(t, c)
	})
}

// checkRoundTrips compares printed forms and not messages, since NaN is not equal to itself.
func checkRoundTrips(t *testing.T, c *Config) {
	t.Helper()
	text, err := Format(c)
	if err != nil {
		t.Fatal(err)
	}
	fromText, err := Parse("f", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if again, err := Format(fromText); err != nil || !bytes.Equal(text, again) {
		t.Fatalf("%v: printed\n%s\nthen\n%s", err, text, again)
	}
	object, err := FormatJSON(c)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := ParseJSON(object)
	if err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	if again, err := Format(fromJSON); err != nil || !bytes.Equal(text, again) {
		t.Fatalf("%v: text\n%s\nthrough JSON\n%s", err, text, again)
	}
}
