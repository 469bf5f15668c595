package progress

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/internal/live"
	"tuner/measure"
	"tuner/model/onnx/build"
	"tuner/ortsweep"
	"tuner/ortsweep/race"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
)

// setup is a sweep of two numbers of threads on a machine with four cores.
func setup(t *testing.T) ortsweep.Setup {
	t.Helper()
	dir := t.TempDir()
	if err := build.Simple().Write(filepath.Join(dir, "simple.onnx"), 1<<20); err != nil {
		t.Fatal(err)
	}
	sweep, err := spec.ParseSweep(filepath.Join(dir, "ortsweep.yaml"), []byte("model: simple.onnx\noutput: out\nspace: {intra_op_threads: [1, 2]}\nsearch: {budget: 1m}\n"))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := profile.OpenSubject(sweep.Profile, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ortsweep.NewSetup(sweep, profile.Setup{Profile: sweep.Profile, Subject: subject, Facts: search.Facts{Cores: 4, Batching: true}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// measured runs a race for some windows, and shows them. One thread takes half of the
// default's time, and two threads fail.
func measured(r *race.Race, windows int, tell func(race.Trial, ortsweep.Figure, time.Duration)) {
	for n := range windows {
		action := r.Ask()
		if action.Stop {
			return
		}
		f := ortsweep.Figure{Value: 0.010, Window: measure.Window{Duration: time.Second, Foreign: 0.25}, Flags: []measure.Flag{measure.FlagForeign}}
		switch threads, _ := action.Trial.Candidate.Get(search.KnobIntraOpThreads); threads {
		case "1":
			f.Value = 0.005
		case "2":
			f = ortsweep.Figure{Failure: "no threads left"}
		}
		elapsed := time.Duration(n+1) * time.Second
		r.Tell(race.Outcome{Value: f.Value * (1 + 0.001*float64(n%5)), Failure: f.Failure, Elapsed: elapsed})
		tell(action.Trial, f, elapsed)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r, _ := s.Race()
	var out strings.Builder
	p := New(&out, s, r)
	measured(r, 3, p.Measured)
	p.Close()
	text := out.String()
	for _, want := range []string{
		"racing 3 settings of simple for latency (budget 1m0s), results in ", "    1s  after 0 windows, heat 1: racing combinations\n", "s  intra_op_threads=2 failed: no threads left\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not once in\n%s", want, text)
		}
	}
}

// display is one that is no terminal.
type display struct {
	strings.Builder
	frame   live.Frame
	isEnded bool
}

func (d *display) Show(f live.Frame) error           { d.frame = f; return nil }
func (d *display) Update(change func(f *live.Frame)) { change(&d.frame) }
func (d *display) Close()                            { d.isEnded = true }

// A display shows frames in place of lines, with names for its columns and marks.
func TestDisplay(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r, _ := s.Race()
	var shown display
	p := New(&shown, s, r)
	measured(r, 5, p.Measured)
	p.Close()
	f := shown.frame
	if len(f.Recent) != 5 || len(f.Chart.Points) == 0 || f.Chart.Marks.Kept == "" || f.Chart.Y.Unit != "s" || f.Heads.Count != "Window" || len(f.Keys) != 1 || !shown.isEnded {
		t.Errorf("frame %+v, ended %v", f, shown.isEnded)
	}
	if text := shown.String(); strings.Count(text, "\n") != 1 {
		t.Errorf("it printed %q", text)
	}
}

// The frame has each window, what failed, the noise of the last one, and the answer so far.
func TestFrames(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r, _ := s.Race()
	p := New(&strings.Builder{}, s, r)
	began := time.Now()
	p.view = &live.View{Frame: p.first(began)}
	measured(r, 30, func(t race.Trial, f ortsweep.Figure, elapsed time.Duration) {
		p.windows++
		p.change(t, f, elapsed)(&p.view.Frame)
	})
	var text strings.Builder
	for _, l := range p.view.Frame.Lines(live.Size{Columns: 120, Rows: 60}, began.Add(30*time.Second), true) {
		text.WriteString(l.Text(false) + "\n")
	}
	for _, want := range []string{
		"ortsweep simple for latency", "30s, about 30s left", "Best so far: 1 thread; gain over the default +", "now  heat ", "noise  steal 0.0 %  others 25.0 %",
		"! other processes used more than 10 % of the CPU time", "latency over time ", "failed: no threads left", "10.0 ms\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if !p.view.Frame.IsGood {
		t.Error("what is proven to be better is not good")
	}
}
