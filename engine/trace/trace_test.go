package trace

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/propagation"

	"tuner/engine/fault"
	"tuner/internal/transcript"
)

// values are a change of settings: nil clears a setting.
type values map[string][]string

func (v values) update(t *testing.T) (Update, error) {
	t.Helper()
	return Read(Source{Find: func(name string) ([]string, bool, error) {
		list, found := v[name]
		return list, found, nil
	}})
}

func text(list ...string) []string { return list }

// The texts and the settings afterwards are those of Triton 24.10, started with
// --trace-config=level=TENSORS,rate=1 and a file, and asked the same.
func TestUpdate(t *testing.T) {
	t.Parallel()
	start := Config{Level: LevelTensors, Rate: 1, Count: -1, LogFrequency: 1, File: "f"}
	tracer := New(start, nil, slog.New(slog.DiscardHandler))
	for _, step := range []struct {
		model string
		to    values
		want  string // what differs from the start for a model and the server, or the error
	}{
		{"", values{"trace_file": text("x")}, "501 trace file location can not be updated through network protocol"},
		{"", values{"trace_level": text()}, "[TENSORS] 1 -1 1 | [TENSORS] 1 -1 1"},
		{"", values{"trace_level": text("foo")}, "[TENSORS] 1 -1 1 | [TENSORS] 1 -1 1"},
		{"", values{"trace_level": text("OFF", "TIMESTAMPS")}, "400 Expect only one trace level 'OFF' is specified"},
		{"", values{"trace_rate": text("x")}, "400 Unable to parse 'trace_rate', got: x"},
		{"", values{"trace_rate": text("")}, "400 Unable to parse 'trace_rate', got: "},
		{"", values{"trace_rate": text("-5")}, "[TENSORS] 4294967291 -1 1 | [TENSORS] 4294967291 -1 1"},
		{"", values{"trace_rate": text("0")}, "400 Attempting to set invalid trace setting :sample rate must be non-zero"},
		{"", values{"trace_rate": text("4294967295")}, "400 Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 4294967295"},
		{"", values{"trace_rate": text("1", "2")}, "400 expect only 1 value for 'trace_rate'"},
		{"", values{"trace_rate": text(" 12x")}, "[TENSORS] 12 -1 1 | [TENSORS] 12 -1 1"},
		{"", values{"trace_count": text("-2")}, "400 Unable to parse 'trace_count'. Expecting value >= -1, got:-2"},
		{"", values{"trace_count": text("10000000000")}, "400 Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: 10000000000"},
		{"", values{"trace_count": text("0")}, "400 Attempting to set invalid trace setting :"},
		{"", values{"trace_rate": nil, "trace_level": nil, "log_frequency": nil}, "[TENSORS] 1 -1 1 | [TENSORS] 1 -1 1"},
		{"m", values{"trace_rate": text("7")}, "[TENSORS] 7 -1 1 | [TENSORS] 1 -1 1"},
		{"", values{"trace_rate": text("8")}, "[TENSORS] 7 -1 1 | [TENSORS] 8 -1 1"},
		{"", values{"trace_count": text("9")}, "[TENSORS] 7 9 1 | [TENSORS] 8 9 1"},
		{"m", values{"trace_rate": nil}, "[TENSORS] 8 9 1 | [TENSORS] 8 9 1"},
		{"m", values{"trace_level": text("OFF"), "trace_rate": text("0")}, "[OFF] 0 9 1 | [TENSORS] 8 9 1"},
		{"m", values{"trace_level": text("TIMESTAMPS")}, "400 Attempting to set invalid trace setting :sample rate must be non-zero"},
		{"m", values{"trace_level": text("TENSORS", "TIMESTAMPS"), "trace_rate": nil}, "[TIMESTAMPS TENSORS] 8 9 1 | [TENSORS] 8 9 1"},
		{"", values{"trace_level": text("OFF"), "log_frequency": text("4")}, "[TIMESTAMPS TENSORS] 8 9 4 | [OFF] 8 9 4"},
		{"m", values{"trace_level": nil}, "[OFF] 8 9 4 | [OFF] 8 9 4"},
	} {
		u, err := step.to.update(t)
		if err == nil {
			err = tracer.Update(step.model, u)
		}
		got := settingsOf(tracer, "m") + " | " + settingsOf(tracer, "")
		if err != nil {
			code := map[fault.Code]string{fault.InvalidArgument: "400", fault.Unsupported: "501"}[fault.CodeOf(err)]
			got = code + " " + fault.TextOf(err)
		}
		if got != step.want {
			t.Errorf("%q %v:\ngot  %s\nwant %s", step.model, step.to, got, step.want)
		}
	}
	if tracer.IsOn() {
		t.Error("all levels are OFF, and the tracer is on")
	}
}

func settingsOf(t *Tracer, model string) string {
	var words []string
	for _, p := range t.Settings(model).Pairs() {
		switch p.Name {
		case KeyLevel:
			words = append(words, fmt.Sprint(p.Values))
		case keyRate, keyCount, keyFrequency:
			words = append(words, p.Values[0])
		}
	}
	return strings.Join(words, " ")
}

func TestPairs(t *testing.T) {
	t.Parallel()
	got := Config{Mode: ModeOpenTelemetry, Rate: 5, Count: 3, Options: []Option{{"url", "u"}, {"resource", "a=b"}, {"resource", "c=d"}}}.Pairs()
	want := []Pair{
		{"trace_level", text("OFF")}, {"trace_rate", text("5")}, {"trace_count", text("3")}, {"trace_mode", text("opentelemetry")},
		{"url", text("u")}, {"resource", text("a=b")}, {"resource", text("c=d")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Without a file nothing can be turned on.
func TestNoFile(t *testing.T) {
	t.Parallel()
	tracer := New(Default(), nil, slog.New(slog.DiscardHandler))
	u, err := values{"trace_level": text("TIMESTAMPS")}.update(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Update("", u); err == nil || fault.TextOf(err) != "Attempting to set invalid trace setting :trace file name is not given" {
		t.Errorf("got %v", err)
	}
}

// kept keeps traces. It is an exporter that can be held.
type kept struct {
	hold chan struct{} // nil: it does not wait

	mu     sync.Mutex
	traces []*Trace
	err    error // of Close
}

func (k *kept) Export(t *Trace) {
	if k.hold != nil {
		<-k.hold
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.traces = append(k.traces, t)
}

func (k *kept) Close(context.Context) error { return k.err }

// sampled asks for n requests, and returns the positions of those that are traced.
func sampled(t *Tracer, n int, headers propagation.MapCarrier) (traced []int) {
	for i := range n {
		if trace := t.Sample("m", headers); trace != nil {
			traced = append(traced, i+1)
			trace.End()
		}
	}
	return traced
}

func TestSample(t *testing.T) {
	t.Parallel()
	context := propagation.MapCarrier{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
	for name, c := range map[string]struct {
		config  Config
		headers propagation.MapCarrier
		want    []int // of 10 requests
		left    int32
	}{
		"off":                 {Config{Rate: 1, Count: -1}, nil, nil, -1},
		"each third":          {Config{Level: LevelTimestamps, Rate: 3, Count: -1}, nil, []int{3, 6, 9}, -1},
		"two of each second":  {Config{Level: LevelTimestamps, Rate: 2, Count: 2}, nil, []int{2, 4}, 0},
		"none by rate":        {Config{Level: LevelTimestamps, Rate: 0, Count: -1}, nil, nil, -1},
		"a context":           {Config{Level: LevelTimestamps, Rate: 0, Count: -1}, context, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, -1},
		"a context and none":  {Config{Level: LevelTimestamps, Rate: 4, Count: 1}, context, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0},
		"a context while off": {Config{Rate: 1, Count: -1}, context, nil, -1},
		"no context":          {Config{Level: LevelTimestamps, Rate: 0, Count: -1}, propagation.MapCarrier{"traceparent": "00-x"}, nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Mode = ModeOpenTelemetry
			tracer := New(c.config, &kept{}, slog.New(slog.DiscardHandler))
			got := sampled(tracer, 10, c.headers)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if left := tracer.Settings("m").Count; left != c.left {
				t.Errorf("%d are left, want %d", left, c.left)
			}
		})
	}
}

// A trace state that is longer than it need be is dropped, since spans keep it.
func TestLongTraceState(t *testing.T) {
	t.Parallel()
	member := func(key string) string { return key + "=" + strings.Repeat("v", 250) } // 252 characters
	for state, want := range map[string]int{
		member("a") + "," + member("b"):                     2*252 + 1,
		member("a") + "," + member("b") + "," + member("c"): 0,
	} {
		got := callerOf(propagation.MapCarrier{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": state})
		if n := len(got.TraceState().String()); !got.IsValid() || n != want {
			t.Errorf("of %d characters %d are left, want %d", len(state), n, want)
		}
	}
}

// whole records a request from its begin at second 1 to its end, with a moment each second.
func whole(t *Trace, first, last Moment) {
	at := t.tracer.clock.origin
	for m := first; m <= last; m++ {
		if at = at.Add(time.Second); m == RequestStart {
			t.Begin("m", 3, `r"1`, at)
		}
		t.Set(m, at)
	}
}

func newTest(t *testing.T, c Config) *Tracer {
	t.Helper()
	tracer := New(c, nil, slog.New(slog.DiscardHandler))
	tracer.clock.ns = 0
	return tracer
}

func moment(id int, name string, second int) string {
	return fmt.Sprintf(`{"id":%d,"timestamps":[{"name":%q,"ns":%d000000000}]}`, id, name, second)
}

// The form is that of Triton's files.
func TestJSON(t *testing.T) {
	t.Parallel()
	tracer := newTest(t, Config{Level: LevelTimestamps | LevelTensors, Rate: 1, Count: -1, File: "f"})
	x := tracer.Sample("m", nil)
	whole(x, HTTPReceiveStart, HTTPSendEnd)
	x.Input(Tensor{"in", "INT32", []int64{1, 2}, []byte{1, 0, 0, 0, 255, 255, 255, 255}})
	x.Output(Tensor{"a", "BOOL", []int64{2}, []byte{0, 1}})
	x.Output(Tensor{"b", "BYTES", nil, []byte("\x03\x00\x00\x00a\"b\x00\x00\x00\x00")})
	x.Note(Activity{"MINE_START", tracer.clock.origin.Add(5 * time.Second)}, Activity{"MINE_END", tracer.clock.origin.Add(6 * time.Second)})
	step := x.Step()
	step.Begin("s", 1, "", tracer.clock.origin.Add(time.Second))
	x.Step() // it was refused
	got := string(appendTrace(nil, x, tracer.clock))
	want := strings.Join([]string{
		`{"id":2,"model_name":"s","model_version":1,"parent_id":1}`, moment(2, "REQUEST_START", 1),
		moment(1, "HTTP_RECV_START", 1), moment(1, "HTTP_RECV_END", 2), `{"id":1,"model_name":"m","model_version":3,"request_id":"r\"1"}`,
		moment(1, "REQUEST_START", 3), moment(1, "QUEUE_START", 4),
		`{"id":1,"activity":"TENSOR_QUEUE_INPUT","tensor":{"name":"in","data":"1,-1","shape":"1,2","dtype":"INT32"}}`,
		`{"id":1,"activity":"TENSOR_BACKEND_OUTPUT","tensor":{"name":"a","data":"0,1","shape":"2","dtype":"BOOL"}}`,
		`{"id":1,"activity":"TENSOR_BACKEND_OUTPUT","tensor":{"name":"b","data":"\"a\"b\",\"\"","shape":"","dtype":"BYTES"}}`, moment(1, "MINE_START", 5), moment(1, "MINE_END", 6),
		moment(1, "INFER_RESPONSE_COMPLETE", 5), moment(1, "COMPUTE_START", 6), moment(1, "COMPUTE_INPUT_END", 7), moment(1, "COMPUTE_OUTPUT_START", 8),
		moment(1, "COMPUTE_END", 9), moment(1, "REQUEST_END", 10), moment(1, "HTTP_SEND_START", 11), moment(1, "HTTP_SEND_END", 12),
	}, ",")
	if diff := cmp.Diff(strings.Split(want, `,{"id"`), strings.Split(got, `,{"id"`)); diff != "" {
		t.Error(diff)
	}
	if !json.Valid([]byte("[" + got + "]")) {
		t.Errorf("no JSON: %s", got)
	}
}

// Over gRPC the moments of the front end are last.
func TestJSONOverGRPC(t *testing.T) {
	t.Parallel()
	tracer := newTest(t, Config{Level: LevelTimestamps, Rate: 1, Count: -1, File: "f"})
	x := tracer.Sample("m", nil)
	whole(x, RequestStart, RequestEnd)
	whole(x, GRPCReadStart, GRPCSendEnd)
	var list []struct {
		Timestamps []struct{ Name string }
	}
	if err := json.Unmarshal([]byte("["+string(appendTrace(nil, x, tracer.clock))+"]"), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		for _, m := range e.Timestamps {
			got = append(got, m.Name)
		}
	}
	want := strings.Fields("REQUEST_START QUEUE_START COMPUTE_START COMPUTE_INPUT_END COMPUTE_OUTPUT_START COMPUTE_END REQUEST_END GRPC_WAITREAD_START GRPC_WAITREAD_END INFER_RESPONSE_COMPLETE GRPC_SEND_START GRPC_SEND_END")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Reals have six digits, as C++'s streams write them: 3e+08 and 4.12346 are from Triton's file.
func TestElements(t *testing.T) {
	t.Parallel()
	f32 := func(all ...float32) (data []byte) {
		for _, x := range all {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		return data
	}
	nan := float32(math.NaN())
	for datatype, c := range map[string]struct {
		data []byte
		want string
	}{
		"FP32":   {f32(1, 2, 300000000, 4.123456789, 100000, 1e-5, float32(math.Inf(-1)), nan), "1,2,3e+08,4.12346,100000,1e-05,-inf,nan"},
		"FP64":   {binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1)), "0.1"},
		"FP16":   {[]byte{1, 2}, ""},
		"UINT8":  {[]byte{65, 255}, "65,255"},
		"INT8":   {[]byte{65, 255}, "65,-1"},
		"UINT16": {[]byte{255, 255}, "65535"},
		"INT16":  {[]byte{255, 255}, "-1"},
		"UINT32": {[]byte{255, 255, 255, 255}, "4294967295"},
		"INT64":  {[]byte{254, 255, 255, 255, 255, 255, 255, 255}, "-2"},
		"UINT64": {[]byte{255, 255, 255, 255, 255, 255, 255, 255}, "18446744073709551615"},
		"BYTES":  {[]byte("\x01\x00\x00\x00x\xff\x00\x00\x00y"), `\"x\"`},
	} {
		if got := string(appendElements(nil, Tensor{Datatype: datatype, Data: c.data})); got != c.want {
			t.Errorf("%s: got %s, want %s", datatype, got, c.want)
		}
	}
}

// Texts and tensors of traces have a bound. What is written gives its memory back.
func TestMemory(t *testing.T) {
	t.Parallel()
	k := &kept{}
	tracer := New(Config{Level: LevelTensors, Rate: 1, Count: -1, File: filepath.Join(t.TempDir(), "f")}, k, slog.New(slog.DiscardHandler))
	big := Tensor{"x", "UINT8", []int64{1 << 20}, make([]byte, 1<<20)} // 2 MiB as text
	var traces []*Trace
	for range 100 {
		x := tracer.Sample("m", nil)
		x.Input(big)
		x.Step().Begin("s", 1, "id", time.Now())
		traces = append(traces, x)
	}
	used := tracer.memory.used.Load()
	if used > largestMemory || used < largestMemory/2 {
		t.Errorf("%d bytes are held, want at most %d and most of them", used, largestMemory)
	}
	held := 0
	for _, x := range traces {
		held += len(x.inputs)
		x.End()
	}
	if held > largestMemory {
		t.Errorf("the texts have %d bytes", held)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := tracer.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes are held after the end", used)
	}
}

// Requests do not wait for traces: those that find no room are lost, with one line in the log.
func TestLost(t *testing.T) {
	t.Parallel()
	var log transcript.Text
	k := &kept{hold: make(chan struct{})}
	tracer := New(Config{Level: LevelTimestamps, Rate: 1, Count: -1, Mode: ModeOpenTelemetry}, k, slog.New(slog.NewTextHandler(&log, nil)))
	const n = waiting + 100
	if got := len(sampled(tracer, n, nil)); got != n {
		t.Errorf("%d of %d requests are traced", got, n)
	}
	close(k.hold)
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(k.traces); got < waiting || got > waiting+1 {
		t.Errorf("%d traces are written, want those that wait, and perhaps one in work", got)
	}
	if got := strings.Count(log.String(), "traces are lost"); got != 1 {
		t.Errorf("%d lines in the log: %s", got, log.String())
	}
	sampled(tracer, 1, nil) // after the end
}

// A collector that hangs does not hold the end for longer than asked.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	k := &kept{hold: make(chan struct{})}
	tracer := New(Config{Level: LevelTimestamps, Rate: 1, Count: -1, Mode: ModeOpenTelemetry}, k, slog.New(slog.DiscardHandler))
	sampled(tracer, 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(k.hold)
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// ids returns the IDs in a file of traces.
func ids(t *testing.T, file string) (all []int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		ID    int
		Model string `json:"model_name"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, data)
	}
	for _, e := range list {
		if e.Model != "" {
			all = append(all, e.ID)
		}
	}
	return all
}

func TestFiles(t *testing.T) {
	t.Parallel()
	c := func(rate uint32, count int32, frequency uint32) Config {
		return Config{Level: LevelTimestamps, Rate: rate, Count: count, LogFrequency: frequency}
	}
	for name, test := range map[string]struct {
		config Config
		then   values // set after five requests; nil: nothing
		want   map[string][]int
	}{
		"one file":        {c(1, -1, 0), nil, map[string][]int{"f": {1, 2, 3, 4, 5, 6, 7, 8}}},
		"numbered":        {c(1, -1, 3), nil, map[string][]int{"f.0": {1, 2, 3}, "f.1": {4, 5, 6}, "f.2": {7, 8}}},
		"a count":         {c(1, 4, 0), nil, map[string][]int{"f.0": {1, 2, 3, 4}}},
		"a large count":   {c(1, 100, 0), nil, map[string][]int{"f": {1, 2, 3, 4, 5, 6, 7, 8}}},
		"a count by rate": {c(2, 2, 0), nil, map[string][]int{"f.0": {1, 2}}},
		"both":            {c(1, 5, 3), nil, map[string][]int{"f.0": {1, 2, 3}, "f.1": {4, 5}}},
		"numbers later":   {c(1, -1, 0), values{"log_frequency": text("2")}, map[string][]int{"f": {1, 2, 3, 4, 5}, "f.0": {6, 7}, "f.1": {8}}},
		"numbers no more": {c(1, -1, 2), values{"log_frequency": text("0")}, map[string][]int{"f.0": {1, 2}, "f.1": {3, 4}, "f.2": {5}, "f": {6, 7, 8}}},
		"a count later":   {c(1, -1, 0), values{"trace_count": text("2")}, map[string][]int{"f": {1, 2, 3, 4, 5}, "f.0": {6, 7}}},
		"off later":       {c(1, 9, 0), values{"trace_level": text("OFF")}, map[string][]int{"f": {1, 2, 3, 4, 5}}},
		"none":            {c(9, -1, 0), nil, map[string][]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			test.config.File = filepath.Join(folder, "f")
			tracer := New(test.config, nil, slog.New(slog.DiscardHandler))
			for i := range 8 {
				if i == 5 && test.then != nil {
					u, err := test.then.update(t)
					if err == nil {
						err = tracer.Update("", u)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if x := tracer.Sample("m", nil); x != nil {
					x.Begin("m", 1, "", time.Now())
					x.End()
				}
			}
			if err := tracer.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := map[string][]int{}
			files, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				got[f.Name()] = ids(t, filepath.Join(folder, f.Name()))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A request that ends after an update belongs to the setting under which it was chosen.
func TestUpdateWhileTraced(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	tracer := New(Config{Level: LevelTimestamps, Rate: 1, Count: -1, LogFrequency: 9, File: file}, nil, slog.New(slog.DiscardHandler))
	x := tracer.Sample("m", nil)
	x.Begin("m", 1, "", time.Now())
	u, err := values{"trace_level": text("OFF")}.update(t)
	if err == nil {
		err = tracer.Update("", u)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.End()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1}, ids(t, file+".0")); diff != "" {
		t.Error(diff)
	}
}

// A file that cannot be written is one line in the log.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	var log transcript.Text
	tracer := New(Config{Level: LevelTimestamps, Rate: 1, Count: -1, File: filepath.Join(t.TempDir(), "no", "f")}, nil, slog.New(slog.NewTextHandler(&log, nil)))
	for range 10 {
		x := tracer.Sample("m", nil)
		x.Begin("m", 1, "", time.Now())
		x.End()
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "cannot write the traces of requests"); got != 1 {
		t.Errorf("%d lines: %s", got, log.String())
	}
}

// Requests, updates and questions at the same time lose nothing.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	const callers, each = 4, 200
	k := &kept{}
	tracer := New(Config{Level: LevelTimestamps, Rate: 1, Count: -1, Mode: ModeOpenTelemetry}, k, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				x := tracer.Sample("m", propagation.MapCarrier{})
				x.Begin("m", 1, "id", time.Now())
				var steps sync.WaitGroup
				for range 2 {
					steps.Go(func() { x.Step().Begin("s", 1, "id", time.Now()) })
				}
				steps.Wait()
				x.End()
				x.End()
			}
		})
	}
	all.Go(func() {
		for i := range each {
			u, err := values{"log_frequency": text(fmt.Sprint(i))}.update(t)
			if err == nil {
				err = tracer.Update([]string{"", "m"}[i%2], u)
			}
			if err != nil {
				t.Error(err)
			}
			tracer.Settings("m")
		}
	})
	all.Wait()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(k.traces) != callers*each {
		t.Errorf("%d traces, want %d", len(k.traces), callers*each)
	}
}

// What is off costs nothing.
func TestOffAllocatesNothing(t *testing.T) {
	tracer := New(Default(), nil, slog.New(slog.DiscardHandler))
	if n := testing.AllocsPerRun(100, func() {
		x := tracer.Sample("m", nil)
		x.Begin("m", 1, "id", time.Time{})
		x.Queue(time.Time{})
		x.Step()
		x.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
