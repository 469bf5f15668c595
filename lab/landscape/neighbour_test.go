package landscape

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// busyEngine returns a recording of a machine with two cores, on which engine and clients use the
// given numbers of cores.
func busyEngine(t *testing.T, engine, clients float64) *Landscape {
	t.Helper()
	f := recording()
	f.Header.Space.Facts.Cores = 2
	for i := range f.Points {
		for j := range f.Points[i].Windows {
			w := &f.Points[i].Windows[j]
			w.CPU, w.ClientCPU = durations(engine)[0], durations(clients)[0]
		}
	}
	l, err := FromRecord(f)
	if err != nil {
		t.Fatal(err)
	}
	l.trace = trace{}
	return l
}

// windowsBeside returns many windows of a cell on one machine: those without the neighbour, and
// those entirely beside it.
func windowsBeside(l *Landscape) (quiet, disturbed []measure.Window) {
	m := l.NewMachine(7)
	for range 200 {
		e := m.Measure(search.Trial{Candidate: candidateOf("1"), Load: measure.Load{Concurrency: 4, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseSearch})
		for _, w := range e.Measurement.Windows {
			switch {
			case w.Foreign == 0:
				quiet = append(quiet, w)
			case w.Foreign > 0.999*l.neighbour:
				disturbed = append(disturbed, w)
			}
		}
	}
	return quiet, disturbed
}

// averages returns the means of windows: requests per second, seconds of latency, cores of engine
// and clients.
func averages(windows []measure.Window) (rate, latency, engine, clients float64) {
	n := float64(len(windows))
	for _, w := range windows {
		rate += float64(w.Requests) / w.Duration.Seconds() / n
		engine += w.EngineCPU.Seconds() / w.Duration.Seconds() / n
		clients += w.ClientCPU.Seconds() / w.Duration.Seconds() / n
		for _, s := range w.Sub {
			latency += s.Sum.Seconds() / float64(w.Requests) / n
		}
	}
	return rate, latency, engine, clients
}

// An engine that uses 1.9 of 2 cores with its clients has 1.2 left if a neighbour takes 40 %. All
// its work continues at 1.2/1.9 of its pace, with the same CPU time per request. The windows record
// the others' share, and are flagged.
func TestNeighbourTakesCores(t *testing.T) {
	t.Parallel()
	l := busyEngine(t, 1.7, 0.2).WithNeighbour(0.4)
	quiet, disturbed := windowsBeside(l)
	if len(quiet) < 50 || len(disturbed) < 20 {
		t.Fatalf("%d quiet windows, %d disturbed", len(quiet), len(disturbed))
	}
	rate, latency, engine, clients := averages(quiet)
	slowRate, slowLatency, slowEngine, slowClients := averages(disturbed)
	const left = 1.2 / 1.9
	if !near(slowRate/rate, left, 0.03) || !near(latency/slowLatency, left, 0.03) || !near(engine, 1.7, 1e-3) || !near(clients, 0.2, 1e-3) ||
		!near(slowEngine, 1.7*left, 1e-3) || !near(slowClients, 0.2*left, 1e-3) {
		t.Errorf("%.0f/s instead of %.0f, %.4f s instead of %.4f, %.3f and %.3f cores instead of %.3f and %.3f",
			slowRate, rate, slowLatency, latency, slowEngine, slowClients, engine, clients)
	}
	for _, w := range disturbed {
		if used := (w.EngineCPU+w.ClientCPU).Seconds()/w.Duration.Seconds() + 2*w.Foreign; used > 2.001 {
			t.Fatalf("%.3f of 2 cores are used", used)
		}
		if len(w.Flags) != 1 || w.Flags[0] != measure.FlagForeign {
			t.Fatalf("flags are %v", w.Flags)
		}
		// The withheld time explains the pace of an engine that could have used all cores.
		if got := w.Withheld(2); !near(got, -math.Log(0.6), 1e-3) {
			t.Fatalf("%.3f is withheld", got)
		}
	}
	if len(quiet[0].Flags) != 0 {
		t.Errorf("flags of a quiet window are %v", quiet[0].Flags)
	}
}

// An engine that uses one of two cores is not slowed by a neighbour on the other, nor is an
// undisturbed machine.
func TestNeighbourOnIdleCores(t *testing.T) {
	t.Parallel()
	quiet, disturbed := windowsBeside(busyEngine(t, 0.9, 0.1).WithNeighbour(0.25))
	rate, _, _, _ := averages(quiet)
	beside, _, _, _ := averages(disturbed)
	if !near(beside, rate, 0.03) || disturbed[0].Withheld(2) != 0 {
		t.Errorf("%.0f/s beside a neighbour, %.0f without", beside, rate)
	}
	l := busyEngine(t, 1.7, 0.2)
	if quiet, _ := windowsBeside(l); len(quiet) != 200 {
		t.Errorf("%d of 200 windows are quiet without a neighbour", len(quiet))
	}
	for _, tc := range []struct {
		used  float64
		cores int
		taken float64
		want  float64
	}{{2, 2, 0.5, 0.5}, {1, 2, 0.5, 1}, {1.6, 2, 0.5, 0.625}, {5, 2, 0.5, 0.5}, {0, 2, 0.5, 1}, {2, 0, 0.5, 1}, {2.2, 2, 0, 1}} {
		if got := slowed(tc.used, tc.cores, tc.taken); !near(got, tc.want, 1e-9) {
			t.Errorf("%+v: %g", tc, got)
		}
	}
}

// A neighbour's bursts last 20 s and follow 60 s of idle time, in the mean. It changes neither a
// truth nor the rest of a machine's noise.
func TestNeighbourIsNoTruth(t *testing.T) {
	t.Parallel()
	y := small()
	y.noise = noiseOf(0.1)
	alone := y.make()
	beside := alone.WithNeighbour(0.5)
	if alone.neighbour != 0 || beside.Find(candidate("2", "4"), 16).Throughput != alone.Find(candidate("2", "4"), 16).Throughput {
		t.Error("the landscape or its truth was changed")
	}
	a, b := alone.NewMachine(3).weather, beside.NewMachine(3).weather
	sum, n := 0.0, 0
	for at := time.Duration(0); at < 20*time.Hour; at += 10 * time.Second {
		if at < time.Hour && a.speed(at) != b.speed(at) {
			t.Fatal("the neighbour changes the machine's course")
		}
		sum, n = sum+b.taken(at, at+time.Second), n+1
	}
	if mean := sum / float64(n); !near(mean, 0.5*20/80, 0.1) {
		t.Errorf("%.3f of the cores are taken in the mean, want 0.125", mean)
	}
}
