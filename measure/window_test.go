package measure

import (
	"encoding/json"
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
		Frequency: 0.99, GPUs: []GPUWindow{{"GPU-1", 0.5, 200, 1 << 30, 80 << 30, 190}}, CPUEnergy: 61.5, Flags: []Flag{FlagLate},
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

// What a closed loop without GPU and cache does not have is not written, so that its journals stay as small as they were.
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
