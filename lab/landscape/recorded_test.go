package landscape

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/search"
)

// recording is from a machine that is half as fast in its second half, which begins at 100 s. The
// default was measured on 2 launches that differ by 10 %: 950 and 1050/s at full speed. Two
// instances do not start.
func recording() record.File {
	f := record.File{Header: record.Header{
		Version: record.Version, Name: "recording", Window: time.Second,
		Space: search.Space{
			Knobs: []search.Knob{knob(search.KnobInstanceCount, "1", "2")},
			Load:  search.LoadAxis{Levels: []float64{4}, BatchSize: 1},
			Facts: search.Facts{Batching: true, Base: map[string]search.Value{search.KnobInstanceCount: "1"}},
		},
	}}
	one, two := candidateOf("1"), candidateOf("2")
	speed := func(at float64) float64 {
		if at > 100 {
			return 0.5
		}
		return 1
	}
	add := func(c search.Candidate, at float64, launch int, throughput float64, reference bool) {
		x := throughput * speed(at)
		p := record.Point{Trial: record.Trial{Candidate: c, Pass: 1, Launch: launch, At: durations(at)[0],
			Times: measure.Times{Launch: time.Second, WarmUp: 500 * time.Millisecond}, Memory: 1e8}, Level: 4, Reference: reference}
		for range 4 {
			p.Windows = append(p.Windows, record.Window{Duration: time.Second, Requests: []int{int(x / 2), int(x) - int(x/2)}, Executions: int(x / 2),
				Latency: record.NewSketch(func(float64) float64 { return 4 / x }), Queue: durations(1 / x)[0], Infer: durations(2 / x)[0]})
		}
		f.Points = append(f.Points, p)
	}
	for at := 0.0; at <= 200; at += 10 {
		add(one, at, 1, 400, true)
	}
	add(one, 30, 2, 950, false)
	add(one, 160, 3, 1050, false)
	f.Points = append(f.Points, record.Point{Trial: record.Trial{Candidate: two, Launch: 4, At: time.Second,
		Failure: &measure.Failure{Stage: measure.StageStart, Reason: "no"}, Times: measure.Times{Launch: 3 * time.Second}}, Level: 4})
	latency := func(s float64) record.Sketch { return record.NewSketch(func(float64) float64 { return s }) }
	f.Services = []record.Service{{Trial: record.Trial{Candidate: one, Pass: 1, Launch: 2, At: 30 * time.Second, Times: measure.Times{WarmUp: time.Second}}, Concurrency: 1,
		Batches: []record.BatchFigure{{Size: 1, Requests: 9, Executions: 9, Infer: 2 * time.Millisecond, Latency: latency(0.003)},
			{Size: 4, Requests: 9, Executions: 9, Infer: 5 * time.Millisecond, Latency: latency(0.006)}}}}
	return f
}

func candidateOf(instances search.Value) search.Candidate {
	return search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: instances})
}

func TestRecordedDriftIsTakenOut(t *testing.T) {
	t.Parallel()
	l, err := FromRecord(recording())
	if err != nil {
		t.Fatal(err)
	}
	// Trials end every 10 s. Of these, points record 1.5 s and the service trial with two sizes 1
	// s, all of it warm-up.
	if !l.Recorded || len(l.Points) != 2 || l.costs.warmUp != 500*time.Millisecond || l.costs.settle != 5*time.Second || l.costs.other != 8500*time.Millisecond {
		t.Fatalf("%d points, costs %+v", len(l.Points), l.costs)
	}
	// The speed is relative to its mean, √(1·½) on log scale (11 and 10 references), which makes
	// all 0.72 times as fast. The launches, 950 and 1050, differ by 0.1 in their logarithms, which
	// is twice the standard error of their mean.
	p := l.Find(search.Candidate{}, 4)
	want := math.Exp((11*math.Log(1)+10*math.Log(0.5))/21) * math.Sqrt(950*1050)
	if !near(p.Throughput, want, 0.02) || !near(p.Error, 0.05, 0.1) || !near(p.P99, 4/want, 0.1) || len(p.visits) != 2 || len(p.visits[1]) != 4 {
		t.Errorf("throughput %g ± %g, p99 %g s; want %g ± 0.05, %g s", p.Throughput, p.Error, p.P99, want, 4/want)
	}
	broken := l.Find(candidateOf("2"), 4)
	if broken == nil || broken.Measurable() || l.Regret(candidateOf("2"), 4, Limit{"none", math.Inf(1)}) != 1 {
		t.Errorf("the point that fails is %+v", broken)
	}
}

func TestRecordedReplay(t *testing.T) {
	t.Parallel()
	l, err := FromRecord(recording())
	if err != nil {
		t.Fatal(err)
	}
	l.trace = trace{}
	m := l.NewMachine(3)
	e := m.Measure(search.Trial{Candidate: candidateOf("1"), Load: measure.Load{Concurrency: 4, BatchSize: 1}, Windows: 3, Window: 2 * time.Second})
	if len(e.Measurement.Windows) != 3 || len(e.Measurement.Windows[0].Sub) != 2*subWindows ||
		e.Measurement.Times.Windows.Round(time.Millisecond) != 6*time.Second || e.Measurement.Times.Launch != time.Second {
		t.Errorf("%d windows, times %+v", len(e.Measurement.Windows), e.Measurement.Times)
	}
	// Each second comes from one visit: 950 or 1050, times the remaining drift.
	for _, w := range e.Measurement.Windows {
		for i := range 2 {
			requests := 0
			for _, s := range w.Sub[i*subWindows : (i+1)*subWindows] {
				requests += s.Requests
			}
			ratio := float64(requests) / l.Points[0].Throughput
			if !near(ratio, math.Sqrt(950.0/1050), 0.01) && !near(ratio, math.Sqrt(1050.0/950), 0.01) {
				t.Errorf("a second with %.3f of the truth", ratio)
			}
		}
	}
	x, _ := e.Measurement.Estimate(measure.Throughput)
	mean, _ := e.Measurement.Estimate(measure.LatencyAvg)
	if !near(x.Value*mean.Value, 4, 0.02) {
		t.Errorf("X·R = %g, want 4", x.Value*mean.Value)
	}
	p99, _ := e.Measurement.Estimate(measure.LatencyP99)
	if slower := math.Sqrt(950.0/1050) * l.Points[0].Throughput; !near(slower*p99.Value, 4, 0.02) {
		t.Errorf("a 99th percentile of %g s, want that of the slower visit, %g s", p99.Value, 4/slower)
	}
	e = m.Measure(search.Trial{Candidate: candidateOf("2"), Load: measure.Load{Concurrency: 4, BatchSize: 1}, Windows: 1, Window: time.Second})
	if f := e.Measurement.Failure; f == nil || f.Stage != measure.StageStart || e.Measurement.Times.Launch != 3*time.Second {
		t.Errorf("a pool that does not start: %+v", e.Measurement)
	}
}

// The recorded machine is twice as fast for the first half of its 200 s. So is the replayed one for
// half of any 200 s.
func TestRecordedDriftIsReplayed(t *testing.T) {
	t.Parallel()
	l, err := FromRecord(recording())
	if err != nil {
		t.Fatal(err)
	}
	begins := map[bool]int{} // with the fast half, by seeds
	for seed := range uint64(20) {
		w := l.NewMachine(seed).weather
		first, full := w.speed(0), w.mean(0, 200*time.Second)
		if again := l.NewMachine(seed).weather.speed(0); again != first || !near(full, 0.75*math.Sqrt2, 0.05) {
			t.Errorf("seed %d: speed %g and %g at first, %g in the mean of a recording's time", seed, first, again, full)
		}
		if later := w.speed(200 * time.Second); !near(later, first, 0.01) {
			t.Errorf("seed %d: speed %g, and %g after a recording's time", seed, first, later)
		}
		begins[first > 1]++
	}
	if begins[true] < 4 || begins[false] < 4 {
		t.Errorf("%d of 20 replays begin in the fast half", begins[true])
	}
}

// The replay at a time of the recording has the hypervisor's share of that time.
func TestRecordedStealIsReplayed(t *testing.T) {
	t.Parallel()
	f := recording()
	for i := range f.Points {
		for j := range f.Points[i].Windows {
			f.Points[i].Windows[j].Steal = 0.08
		}
	}
	l, err := FromRecord(f)
	if err != nil {
		t.Fatal(err)
	}
	e := l.NewMachine(1).Measure(search.Trial{Candidate: candidateOf("1"), Load: measure.Load{Concurrency: 4, BatchSize: 1}, Windows: 2, Window: 2 * time.Second})
	for _, w := range e.Measurement.Windows {
		if !near(w.Steal, 0.08, 1e-6) {
			t.Errorf("%g of a window are stolen, want 0.08", w.Steal)
		}
	}
}

// Without the CPU time of engine and clients, the wanted and stolen share of CPU time has another
// scale.
func TestUsedCPUTimeIsReplayed(t *testing.T) {
	t.Parallel()
	f := recording()
	for i := range f.Points {
		for j := range f.Points[i].Windows {
			f.Points[i].Windows[j].CPU, f.Points[i].Windows[j].ClientCPU = 900*time.Millisecond, 50*time.Millisecond
		}
	}
	check := func(base map[string]search.Value, cores int, trial search.Trial, engine, clients []float64) {
		t.Helper()
		f.Header.Space.Facts.Base, f.Header.Space.Facts.Cores = base, cores
		l, err := FromRecord(f)
		if err != nil {
			t.Fatal(err)
		}
		trial.Candidate = candidateOf("1")
		for i, w := range l.NewMachine(1).Measure(trial).Measurement.Windows {
			seconds := w.Duration.Seconds()
			if !near(w.EngineCPU.Seconds(), engine[i]*seconds, 0.001) || !near(w.ClientCPU.Seconds()+1, clients[i]*seconds+1, 0.001) {
				t.Errorf("window %d of %v: %v and %v used, want %.3f and %.3f cores", i, w.Duration, w.EngineCPU, w.ClientCPU, engine[i], clients[i])
			}
		}
	}
	one := map[string]search.Value{search.KnobInstanceCount: "1", search.KnobIntraOpThreads: "1"}
	all := map[string]search.Value{search.KnobInstanceCount: "1", search.KnobIntraOpThreads: "0"}
	point := search.Trial{Load: measure.Load{Concurrency: 4, BatchSize: 1}, Windows: 1, Window: 2 * time.Second}
	check(one, 2, point, []float64{0.9}, []float64{0.05})
	// A request of 3 ms computes for 2 ms. One with a batch of four takes 6 ms and computes for 5
	// ms.
	service := search.Trial{Phase: search.PhaseService, Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 2, Window: 200 * time.Millisecond, Sizes: []int{1, 4}}
	check(one, 2, service, []float64{2.0 / 3, 5.0 / 6}, []float64{0, 0})
	check(all, 2, service, []float64{4.0 / 3, 5.0 / 3}, []float64{0, 0})
	service.Load.Concurrency = 2
	check(all, 2, service, []float64{2, 2}, []float64{0, 0}) // more threads than cores
}

func TestRecordingsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	check := func(want string, change func(*record.File)) {
		t.Helper()
		f := recording()
		change(&f)
		if _, err := FromRecord(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	check("no point with figures", func(f *record.File) { f.Points = f.Points[len(f.Points)-1:] })
	check("the default configuration was not recorded", func(f *record.File) { f.Header.Space.Facts.Base = nil })
	if _, err := Load("no such file"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// The recordings of this repository can be replayed, and their best points are known to 2 %.
func TestRecordingsOfThisRepository(t *testing.T) {
	t.Parallel()
	least := map[string]int{"minilm": 600, "cnn": 600, "mlp": 200, "lstm": 200, "detector": 280, "encoder": 280} // points
	paths, err := filepath.Glob("../testdata/landscapes/*.jsonl.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings (%v)", err)
	}
	for _, path := range paths {
		l, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if want, known := least[l.Name]; !known || len(l.Points) < want {
			t.Errorf("%s has %d points, want %d", l.Name, len(l.Points), want)
		}
		for _, limit := range l.Limits() {
			if best, ok := l.Best(limit); !ok || best.Error > 0.02 {
				t.Errorf("%s, %s: the best is known to %.3f", l.Name, limit.Name, best.Error)
			}
		}
	}
}
