package measure

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWindowJSONRoundTrip(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	want := Window{
		Start: time.Second, Duration: time.Second, Requests: 3, Inferences: 6, Errors: 2, FirstError: "no",
		Sub:       []SubWindow{{Requests: 3, Duration: time.Second, Latency: histogram(2*ms, 3*ms, 9*ms), Service: histogram(ms, ms, ms), Sum: 14 * ms}},
		Scheduled: 7, Late: 1, Dropped: 1, TimedOut: 1, SendDelay: histogram(ms), InFlight: 1.5, Responses: 4,
		Server: ServerStats{Requests: 3, Success: 12 * ms, Failures: 1, CacheHits: 2, CacheMisses: 1, CacheHit: ms, CacheMiss: 2 * ms,
			Batches: []BatchStat{{Size: 2, Executions: 1, ComputeInfer: ms}}},
		Frequency: 0.99, GPUs: []GPUWindow{{UUID: "GPU-1", Utilization: 0.5, Power: 200, MemoryUsed: 1 << 30, MemoryTotal: 80 << 30, Energy: 190, Foreign: 0.1}}, CPUEnergy: 61.5, Flags: []Flag{FlagLate}, Turn: true,
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Window
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

// JSON omits the fields that a closed loop without GPU and cache does not have, so that its
// journals stay small.
func TestWindowJSONOmitsWhatIsNotThere(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Window{Sub: []SubWindow{{}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"start":0,"duration":0,"requests":0,"inferences":0,"errors":0,"sub":[{"requests":0,"latency":""}],` +
		`"server":{"requests":0,"inferences":0,"executions":0,"queue":0,"compute_input":0,"compute_infer":0,"compute_output":0},` +
		`"engine_cpu":0,"client_cpu":0,"steal":0,"foreign":0}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

// Three executions, two of them batches of 2: each request counts the time of its whole batch.
func TestInstanceTime(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	s := ServerStats{Requests: 5, Inferences: 5, Executions: 3, ComputeInput: 5 * ms, ComputeInfer: 2*12*ms + 2*12*ms + 7*ms, ComputeOutput: 5 * ms}
	// 3 × (55 + 10) ms / 5: the mean time of a request, since batch sizes are unknown
	if got, want := s.InstanceTime(), 39*ms; got != want {
		t.Errorf("without batch sizes instances are busy for %v, want %v", got, want)
	}
	s.Batches = []BatchStat{{Size: 1, Executions: 1, ComputeInfer: 7 * ms}, {Size: 2, Executions: 2, ComputeInfer: 24 * ms}}
	if got, want := s.InstanceTime(), 37*ms; got != want {
		t.Errorf("with batch sizes instances are busy for %v, want %v", got, want)
	}
	if got := (ServerStats{}).InstanceTime(); got != 0 {
		t.Errorf("nothing keeps instances busy for %v", got)
	}
}

// The throughput of a turn is by Little's law, that of other windows by completed requests. A turn
// in which nothing ended does not count.
func TestThroughputOfTurns(t *testing.T) {
	t.Parallel()
	window := func(turn bool, requests int, latency time.Duration, inFlight float64) Window {
		latencies := make([]time.Duration, requests)
		for i := range latencies {
			latencies[i] = latency
		}
		return Window{Duration: time.Second, Requests: requests, Inferences: 2 * requests, InFlight: inFlight, Turn: turn,
			Sub: []SubWindow{{Requests: requests, Latency: NewHistogram(latencies), Sum: time.Duration(requests) * latency}}}
	}
	check := func(name string, want float64, windows ...Window) {
		t.Helper()
		m := Measurement{Windows: windows}
		value, ok := m.Value(Throughput)
		e, estimated := m.Estimate(Throughput)
		if !ok || !estimated || math.Abs(value-want) > 1e-6 || math.Abs(e.Value-want) > 1e-6 {
			t.Errorf("%s: %.3f/s, estimated %+v; want %.3f/s", name, value, e, want)
		}
	}
	// 4 in flight over 40 ms are 100 requests/s of 2 inferences, whether 90 or 110 ended in the
	// window.
	turns := []Window{window(true, 90, 40*time.Millisecond, 4), window(true, 110, 40*time.Millisecond, 4)}
	check("turns", 200, turns...)
	check("windows", 180, window(false, 90, 40*time.Millisecond, 4))
	check("an empty turn", 200, append(turns, window(true, 0, 0, 4))...)
	check("only empty turns", 0, window(true, 0, 0, 4))
	check("a turn and a window", 190, window(true, 110, 40*time.Millisecond, 4), window(false, 90, 40*time.Millisecond, 4))
	failed := window(true, 90, 40*time.Millisecond, 4)
	failed.Errors = 10 // requests in flight include those without a latency
	check("a turn with errors", 180, failed)
	open := window(true, 90, 40*time.Millisecond, 4)
	open.Scheduled = 90
	check("a turn of an open loop", 180, open)
	if e, _ := (Measurement{Windows: turns}).Estimate(Throughput); e.Hi-e.Lo > 1e-6 {
		t.Errorf("two turns alike have the interval %+v", e)
	}
}
