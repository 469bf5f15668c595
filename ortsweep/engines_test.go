package ortsweep

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/ortsweep/race"
	"tuner/profile"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// fakeEngine gives fixed answers and counts calls.
type fakeEngine struct {
	measurement measure.Measurement
	session     time.Duration // session creation time
	jobs        []runner.Job
	closed      int
	hurried     bool // closed with a context that had ended, so that it is killed
}

func (f *fakeEngine) Measure(_ context.Context, job runner.Job) (measure.Measurement, error) {
	m := f.measurement
	switch last := len(f.jobs) - 1; {
	case last < 0:
		m.Times.Launch = time.Second
	case f.jobs[last].Config != job.Config:
		m.Times.Reconfigure = f.session
	}
	f.jobs = append(f.jobs, job)
	return m, nil
}

func (f *fakeEngine) Close(ctx context.Context) {
	f.closed++
	f.hurried = f.hurried || ctx.Err() != nil
}

// window makes a window in which 10 requests of 2 rows took 50 ms of computing.
func window() measure.Measurement {
	return measure.Measurement{Memory: 100, Windows: []measure.Window{{Duration: 2 * time.Second, Requests: 10, Inferences: 20,
		Server: measure.ServerStats{Requests: 10, Executions: 10, ComputeInfer: 50 * time.Millisecond}}}}
}

// newEngines makes fake engines with the given session creation time. It lists them in the order in
// which they are opened.
func newEngines(s Setup, memory int64, session time.Duration) (*Engines, *[]*fakeEngine) {
	var opened []*fakeEngine
	open := func() Engine {
		f := &fakeEngine{measurement: window(), session: session}
		opened = append(opened, f)
		return f
	}
	return NewEngines(s, nil, open, memory), &opened
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"measure: latency\nbatch: 2":                 0.005, // 50 ms over 10 requests
		"measure: throughput\nbatch: 2\nsessions: 2": 10,    // 20 rows in 2 s
	} {
		s := newSetup(t, text)
		e, opened := newEngines(s, 1<<30, 0)
		f, err := e.Measure(t.Context(), race.Trial{Window: time.Second})
		if err != nil || f.Value != want || f.Memory != 100 {
			t.Errorf("%q: %+v, %v, want %g", text, f, err, want)
		}
		job := (*opened)[0].jobs[0]
		// twice the sessions
		wantClients := map[string]int{spec.SweepLatency: 1, spec.SweepThroughput: 4}[s.Sweep.Measure]
		if job.Load.Concurrency != wantClients || job.Load.BatchSize != 2 || job.Windows != 1 || job.Library != "libonnxruntime.so" {
			t.Errorf("%q: job is %+v", text, job)
		}
	}
}

// measureAll measures candidates one after the other, and returns their figures' memory.
func measureAll(t *testing.T, e *Engines, fresh bool, candidates ...search.Candidate) []int64 {
	t.Helper()
	var memory []int64
	for i, c := range candidates {
		f, err := e.Measure(t.Context(), race.Trial{Candidate: c, Fresh: fresh && i == 0})
		if err != nil {
			t.Fatal(err)
		}
		memory = append(memory, f.Memory)
	}
	return memory
}

// closedAll reports whether each of the engines was closed once.
func closedAll(engines []*fakeEngine) bool {
	return !slices.ContainsFunc(engines, func(f *fakeEngine) bool { return f.closed != 1 })
}

// If sessions are created quickly, one engine process serves the candidates of an artifact in turn.
// Then its memory is known for the first candidate only. A neighbour on one of two cores takes half
// of the default's time, since the default has a thread per core. It takes nothing from a candidate
// with one thread.
func TestWithheldGoesByThreads(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "space: {intra_op_threads: [1, 2]}")
	s.device.Cores = 2
	e, opened := newEngines(s, 1<<30, 0)
	m := window()
	m.Windows[0].Foreign, m.Windows[0].EngineCPU = 0.5, 2*time.Second
	e.open = func() Engine { return &fakeEngine{measurement: m} }
	for threads, want := range map[search.Value]float64{"1": 0, "2": math.Ln2} {
		c := search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: threads})
		f, err := e.Measure(t.Context(), race.Trial{Window: time.Second, Candidate: c})
		if err != nil || math.Abs(f.Withheld-want) > 1e-9 || f.Window.Foreign != 0.5 {
			t.Errorf("%s threads: %g, %v, want %g", threads, f.Withheld, err, want)
		}
	}
	if f, err := e.Measure(t.Context(), race.Trial{Window: time.Second}); err != nil || math.Abs(f.Withheld-math.Ln2) > 1e-9 || len(*opened) != 0 {
		t.Errorf("the default: %g, %v", f.Withheld, err)
	}
}

func TestCandidatesShareAnEngine(t *testing.T) {
	t.Parallel()
	e, opened := newEngines(newSetup(t, ""), 1<<30, quickly)
	a, b, other := candidate(), candidate("intra_op_threads=1"), candidate("execution_provider=openvino")
	memory := measureAll(t, e, false, a, a, b, a)
	if diff := cmp.Diff([]int64{100, 100, 0, 0}, memory); diff != "" || len(*opened) != 1 {
		t.Errorf("%d engines for two candidates; memory (-want +got):\n%s", len(*opened), diff)
	}
	if measureAll(t, e, false, other, b); len(*opened) != 2 {
		t.Errorf("%d engines for two artifacts", len(*opened))
	}
	measureAll(t, e, true, b, a) // a round on a fresh launch
	if len(*opened) != 3 || !closedAll((*opened)[:2]) || (*opened)[2].closed != 0 {
		t.Error("a fresh round leaves other engines alive, or does not share its own")
	}
	if e.Close(t.Context()); !closedAll(*opened) {
		t.Error("an engine is left, or was closed twice")
	}
}

// If session creation takes long, engines are not shared once that is known. They stay alive while
// there is room.
func TestSlowSessionsHaveTheirOwnEngines(t *testing.T) {
	t.Parallel()
	e, opened := newEngines(newSetup(t, ""), 1<<30, quickly+1)
	a, b := candidate(), candidate("intra_op_threads=1")
	measureAll(t, e, false, a, b, a, b, a)
	if len(*opened) != 2 || (*opened)[0].closed+(*opened)[1].closed != 0 {
		t.Errorf("%d engines for two candidates", len(*opened))
	}
	for i := range mostEngines + 2 {
		measureAll(t, e, false, candidate("intra_op_threads=1", "session.x="+string(rune('a'+i))))
	}
	if alive := len(e.live); alive != mostEngines {
		t.Errorf("%d engines are alive, want %d", alive, mostEngines)
	}
	if e.Close(t.Context()); !closedAll(*opened) {
		t.Error("an engine is left, or was closed twice")
	}
}

// Ctrl-C does not prevent engines from being stopped within their own deadline: to make room,
// before a fresh launch, and at the end.
func TestEnginesAreStoppedAfterAnInterruption(t *testing.T) {
	t.Parallel()
	e, opened := newEngines(newSetup(t, ""), 1<<30, time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range mostEngines + 2 { // the first two share one
		if _, err := e.Measure(ctx, race.Trial{Candidate: candidate("session.x=" + string(rune('a'+i)))}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Measure(ctx, race.Trial{Fresh: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Measure(ctx, race.Trial{}); err != nil {
		t.Fatal(err)
	}
	e.Close(ctx)
	for i, f := range *opened {
		if f.closed != 1 || f.hurried {
			t.Errorf("engine %d was closed %d times, in a hurry: %t", i, f.closed, f.hurried)
		}
	}
}

// Each engine uses 100 bytes. With 350, three fit. Room for a fourth is made before it starts.
func TestMemoryBoundsEngines(t *testing.T) {
	t.Parallel()
	e, _ := newEngines(newSetup(t, ""), 350, time.Second)
	for _, threads := range []string{"1", "2", "3", "4", "5", "6"} { // the first two share one
		if _, err := e.Measure(t.Context(), race.Trial{Candidate: candidate("intra_op_threads=" + threads)}); err != nil {
			t.Fatal(err)
		}
		if len(e.live) > 3 {
			t.Errorf("%d engines of 100 bytes are alive within 350", len(e.live))
		}
	}
}

func TestFailedEngineIsNotKept(t *testing.T) {
	t.Parallel()
	failing := &fakeEngine{measurement: measure.Measurement{Failure: &measure.Failure{Stage: measure.StageLoad, Reason: "no such option"}}}
	e := NewEngines(newSetup(t, ""), nil, func() Engine { return failing }, 1<<30)
	f, err := e.Measure(t.Context(), race.Trial{})
	if err != nil || f.Failure != "load: no such option" || len(e.live) != 0 || failing.closed != 1 {
		t.Errorf("%+v, %v, %d alive, closed %d times", f, err, len(e.live), failing.closed)
	}
}

// A precision's file is in the output folder. The original is the user's file.
func TestModelFiles(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "")
	int8 := s.Subject.Files[0]
	int8.Precision = "int8"
	s.Subject.Files = append(s.Subject.Files, int8)
	s.Sweep.Output = t.TempDir()
	e, _ := newEngines(s, 1<<30, 0)
	for _, c := range []search.Candidate{candidate(), candidate("precision=int8")} {
		if _, err := e.Measure(t.Context(), race.Trial{Candidate: c}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := e.ModelFiles()
	if err != nil || len(files) != 1 || !strings.HasPrefix(files["int8"], s.Sweep.Output) {
		t.Fatalf("%v, %v", files, err)
	}
	if _, err := os.Stat(files["int8"]); err != nil {
		t.Error(err)
	}
}

// slowEngine completes no request in its first two windows. For a runner that is a failure, unless the
// job allows it (runner: TestEmptyTurns).
type slowEngine struct{ fakeEngine }

func (s *slowEngine) Measure(ctx context.Context, job runner.Job) (measure.Measurement, error) {
	m, err := s.fakeEngine.Measure(ctx, job)
	if len(s.jobs) <= 2 {
		m = measure.Measurement{Windows: []measure.Window{{Duration: job.Window}}}
		if !job.MayBeEmpty {
			m = measure.Measurement{Failure: &measure.Failure{Stage: measure.StageHang, Reason: "no request was answered"}}
		}
	}
	return m, err
}

// A model that is slower than a window does not hang. The following windows are long enough.
func TestSlowModelGetsLongerWindows(t *testing.T) {
	t.Parallel()
	slow := &slowEngine{fakeEngine{measurement: window()}}
	e := NewEngines(newSetup(t, "batch: 2"), nil, func() Engine { return slow }, 1<<30)
	for range 2 {
		if f, err := e.Measure(t.Context(), race.Trial{Window: 250 * time.Millisecond}); err != nil || f.Failure != "" {
			t.Fatalf("%+v, %v", f, err)
		}
	}
	var windows []time.Duration
	for _, job := range slow.jobs {
		windows = append(windows, job.Window)
	}
	// 10 requests took 2 s, so five executions take a second.
	if diff := cmp.Diff([]time.Duration{250 * time.Millisecond, patientWindow, mostPatientWindow, time.Second}, windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

// A model file that changes ends the sweep, since its windows do not apply to a candidate.
func TestChangedModelEndsTheSweep(t *testing.T) {
	t.Parallel()
	s := newSetup(t, "")
	e, opened := newEngines(s, 1<<30, quickly)
	measureAll(t, e, false, candidate())
	model := s.Subject.Files[0].Source.Path
	if err := os.WriteFile(model, []byte("another model"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := e.Measure(t.Context(), race.Trial{Window: time.Second, Candidate: candidate("intra_op_threads=1")})
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), model) || len(*opened) != 1 {
		t.Errorf("error %v, %d engines", err, len(*opened))
	}
}
