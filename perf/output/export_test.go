package output

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/perf"
	"tuner/runner/load"
	"tuner/runner/payload"
)

// little encodes numbers of fixed size in little-endian order.
func little(t testing.TB, values any) []byte {
	t.Helper()
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// exportRequests returns two requests of batch 2.
func exportRequests(t testing.TB) []payload.Request {
	t.Helper()
	return []payload.Request{
		{Infer: api.InferRequest{Inputs: []api.Tensor{
			{Name: "ids", Datatype: "INT64", Shape: []int64{2, 3}, Data: little(t, []int64{1, -2, 3, 4, 5, 6})},
			{Name: "x", Datatype: "FP32", Shape: []int64{2, 1}, Data: little(t, []float32{0.1, 9})},
			{Name: "text", Datatype: "BYTES", Shape: []int64{2, 1}, Data: []byte("\x02\x00\x00\x00hi\x03\x00\x00\x00you")},
		}}},
		{Infer: api.InferRequest{Inputs: []api.Tensor{
			{Name: "flags", Datatype: "BOOL", Shape: []int64{2, 2}, Data: []byte{1, 0, 0, 0}},
			{Name: "pixels", Datatype: "UINT8", Shape: []int64{2, 2}, Data: []byte{7, 255, 0, 0}},
			{Name: "half", Datatype: "FP16", Shape: []int64{2, 1}, Data: make([]byte, 4)},
			{Name: "nan", Datatype: "FP64", Shape: []int64{2, 1}, Data: little(t, []float64{math.NaN(), 1})},
		}}},
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	e := NewExport(&b, perf.Settings{Program: `tuner "1"`, Batch: 2}, exportRequests(t))
	begin := time.Unix(100, 5)
	err := errors.Join(
		e.Begin(measure.Load{Concurrency: 2, BatchSize: 2}, begin),
		e.Record(load.Record{Request: 0, Sent: 10, Responses: []time.Duration{20, 30}}),
		e.Record(load.Record{Request: 3, Sent: 11, Failed: true}),
		e.End([]time.Duration{0, time.Second}),
		e.Begin(measure.Load{RequestRate: 100, BatchSize: 2}, begin.Add(time.Minute)),
		e.Record(load.Record{Request: 2, Scheduled: 7, Sent: 9, Responses: []time.Duration{20}}),
		e.End(nil),
		e.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	// The order of keys is perf_analyzer's.
	const want = `{"experiments":[` +
		`{"experiment":{"mode":"concurrency","value":2},"requests":[` +
		`{"timestamp":100000000015,"request_inputs":{"ids":[1,-2,3],"x":0.1,"text":"hi"},"response_timestamps":[100000000025,100000000035],"response_outputs":[{},{}]},` +
		`{"timestamp":100000000016,"request_inputs":{"flags":[true,false],"pixels":[7,255],"half":null,"nan":null},"response_timestamps":[],"response_outputs":[]}],` +
		`"window_boundaries":[100000000005,101000000005]},` +
		`{"experiment":{"mode":"request_rate","value":100.0},"requests":[` +
		`{"timestamp":160000000014,"request_inputs":{"ids":[1,-2,3],"x":0.1,"text":"hi"},"response_timestamps":[160000000025],"response_outputs":[{}],"scheduled":160000000012}],` +
		`"window_boundaries":[]}],` +
		`"version":"tuner \"1\"","service_kind":"triton","endpoint":""}` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("export differs (-want +got):\n%s", diff)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("the export is no JSON")
	}
}

// A request is written as package json would encode it.
func TestExportOfARequest(t *testing.T) {
	t.Parallel()
	inputs := json.RawMessage(`{"x":[1,null]}`)
	for _, r := range []exportRequest{
		{Timestamp: 1, RequestInputs: inputs, ResponseTimestamps: []int64{}, ResponseOutputs: []exportOutput{}},
		{Timestamp: 1, RequestInputs: inputs, ResponseTimestamps: []int64{2}, ResponseOutputs: make([]exportOutput, 1), Scheduled: 3},
		{Timestamp: 1, RequestInputs: inputs, ResponseTimestamps: []int64{2, 3, 4}, ResponseOutputs: make([]exportOutput, 3)},
	} {
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.appendTo(nil); string(got) != string(want) {
			t.Errorf("the request is written as\n%s, want\n%s", got, want)
		}
	}
}

func TestExportOfNothing(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := NewExport(&b, perf.Settings{}, nil).Close(); err != nil {
		t.Fatal(err)
	}
	if want := `{"experiments":[],"version":"","service_kind":"triton","endpoint":""}` + "\n"; b.String() != want {
		t.Errorf("export is %s, want %s", b.String(), want)
	}
}

func TestExportToAFullDisk(t *testing.T) {
	t.Parallel()
	e := NewExport(&full{room: 100}, perf.Settings{Batch: 2}, exportRequests(t))
	err := e.Begin(measure.Load{Concurrency: 1}, time.Unix(0, 0))
	for range 1000 { // more than the buffer holds
		err = errors.Join(err, e.Record(load.Record{Responses: []time.Duration{1}}))
	}
	if err = errors.Join(err, e.End(nil)); !errors.Is(err, errFull) {
		t.Errorf("before the end the error is %v", err)
	}
	if err := e.Close(); !errors.Is(err, errFull) {
		t.Errorf("at the end it is %v", err)
	}
}

// Record must not allocate, since the export is written while the load runs.
func TestExportOfARequestDoesNotAllocate(t *testing.T) {
	e := NewExport(io.Discard, perf.Settings{Batch: 2}, exportRequests(t))
	r := load.Record{Request: 1, Sent: time.Second, Responses: []time.Duration{2 * time.Second}}
	if err := errors.Join(e.Begin(measure.Load{Concurrency: 1}, time.Unix(0, 0)), e.Record(r)); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if err := e.Record(r); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%g allocations per request", n)
	}
}
