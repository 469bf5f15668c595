package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/lab/landscape/record"
	"tuner/lab/program"
	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
)

// fake is an engine in closed form, with its own clock. Launches are alternately faster and slower
// by 3 %.
type fake struct {
	machine  searchtest.Landscape
	clock    time.Time
	launches int
	last     search.Candidate
	trials   []search.Trial
	fail     int // the trial, counted from 1, at which the recording stops; 0 never
}

func (f *fake) now() time.Time { return f.clock }

func (f *fake) Measure(_ context.Context, t search.Trial) (measure.Measurement, error) {
	f.trials = append(f.trials, t)
	if len(f.trials) == f.fail {
		return measure.Measurement{}, errors.New("interrupted")
	}
	if t.Fresh || f.launches == 0 || t.Candidate.PoolKey() != f.last.PoolKey() {
		f.launches++
	}
	f.last = t.Candidate
	f.clock = f.clock.Add(time.Duration(t.Windows)*t.Window + time.Second)
	throughput, latency := f.machine.Serve(t.Candidate, t.Load)
	factor := 1 + 0.03*float64(f.launches%2)
	m := searchtest.Measured(t, throughput*factor, time.Duration(float64(latency)/factor))
	m.Launch, m.Times = f.launches, measure.Times{Launch: time.Second}
	for i := range m.Windows {
		m.Windows[i].Server = measure.ServerStats{Requests: 10, Executions: 10, ComputeInfer: 10 * time.Millisecond}
	}
	return m, nil
}

func sampleOptions(t *testing.T) options {
	return options{recording: filepath.Join(t.TempDir(), "r.jsonl"), passes: 2, windows: 2, window: time.Second, reference: 30 * time.Second, rounds: 5, seed: 1}
}

func sampleHeader() record.Header {
	space := searchtest.Settings(searchtest.Small(), time.Second).Space
	// instances, batches, delays
	space.Knobs, space.Load = space.Knobs[2:], search.LoadAxis{Levels: []float64{1, 8}, BatchSize: 1}
	return record.Header{Version: record.Version, Name: "sample", Window: time.Second, Space: space}
}

// carryOn records until the end or the failure of the engine, and returns the records.
func carryOn(t *testing.T, o options, f *fake) (*recorder, error) {
	t.Helper()
	log, known, err := record.Open(o.recording, sampleHeader())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	f.launches = launches(known)
	r := newRecorder(o, known, log, f, io.Discard)
	r.now = f.now
	return r, r.record(t.Context())
}

func TestRecordingIsComplete(t *testing.T) {
	t.Parallel()
	r, err := carryOn(t, sampleOptions(t), &fake{machine: searchtest.Small()})
	if err != nil {
		t.Fatal(err)
	}
	// 4 instance counts × (4 batches × 2 delays + 1 without batching) and the default, at 2 loads,
	// twice.
	counts, passLaunches := map[string]int{}, map[string]map[int]bool{}
	references, last := 0, time.Duration(0)
	for _, p := range r.file.Points {
		if p.At < last {
			t.Fatal("time goes backwards")
		}
		if p.Reference {
			references++
			if !p.Candidate.IsDefault() || len(p.Windows) != referenceWindows {
				t.Errorf("reference is %+v", p.Trial)
			}
		}
		if last = p.At; p.Reference || p.Pass == 0 {
			continue
		}
		k := record.Key(p.Candidate, p.Level)
		if counts[k]++; passLaunches[k] == nil {
			passLaunches[k] = map[int]bool{}
		}
		passLaunches[k][p.Launch] = true
	}
	if len(counts) != (4*9+1)*2 {
		t.Errorf("%d points", len(counts))
	}
	for k, n := range counts {
		if n != 2 || len(passLaunches[k]) != 2 {
			t.Errorf("%s: %d trials on %d launches", k, n, len(passLaunches[k]))
		}
	}
	if references < int(last/(5*time.Minute)) {
		t.Errorf("%d references in %v", references, last)
	}
	// Five pools are measured in two passes. One instance's and the default's have one concurrency,
	// the others two.
	alone := 0
	for _, s := range r.file.Services {
		if s.Concurrency == 1 {
			alone++
		}
		if s.Batches[len(s.Batches)-1].Size != 16 && !s.Candidate.IsDefault() {
			t.Errorf("service trial of %s goes to %+v", s.Candidate, s.Batches)
		}
	}
	if alone != 10 || len(r.file.Services) != 18 {
		t.Errorf("%d service trials, %d of them alone", len(r.file.Services), alone)
	}
	truths := r.truths()
	for _, limit := range limits(truths) {
		// the recording must also show which of them are within the limit
		for _, truth := range record.Best(truths, nearLimit*limit, bestPoints) {
			if truth.Launches < leastLaunch {
				t.Errorf("%s at %g, limit %g: %d launches", truth.Candidate, truth.Level, limit, truth.Launches)
			}
		}
	}
	var out bytes.Buffer
	if err := r.summarize(&out); err != nil || !strings.Contains(out.String(), "74 points, 0 of them failed") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestInterruptedRecordingGoesOn(t *testing.T) {
	t.Parallel()
	whole := &fake{machine: searchtest.Small()}
	if _, err := carryOn(t, sampleOptions(t), whole); err != nil {
		t.Fatal(err)
	}
	o := sampleOptions(t)
	broken := &fake{machine: searchtest.Small(), fail: 60}
	first, err := carryOn(t, o, broken)
	if err == nil {
		t.Fatal("does not break off")
	}
	resumed := &fake{machine: searchtest.Small(), clock: broken.clock.Add(time.Hour)}
	r, err := carryOn(t, o, resumed)
	if err != nil {
		t.Fatal(err)
	}
	known := len(first.file.Points) + len(first.file.Services)
	if known != 59 || !slices.EqualFunc(first.file.Points, r.file.Points[:len(first.file.Points)], func(a, b record.Point) bool { return a.At == b.At }) {
		t.Errorf("%d trials before the interruption, or others after it", known)
	}
	// Only the reference is measured twice, and the pause does not count.
	passes := map[string]int{}
	for _, p := range r.file.Points {
		if p.Pass > 0 && !p.Reference {
			passes[record.Key(p.Candidate, p.Level)]++
		}
	}
	for k, n := range passes {
		if n != 2 {
			t.Errorf("%s was measured %d times in the passes", k, n)
		}
	}
	if len(passes) != 74 || r.file.Points[len(r.file.Points)-1].At > time.Duration(2*len(whole.trials))*5*time.Second {
		t.Errorf("%d points; ends at %v", len(passes), r.file.Points[len(r.file.Points)-1].At)
	}
}

func TestOtherRecordingsAreRefused(t *testing.T) {
	t.Parallel()
	check := func(want string, change func(*record.Header)) {
		t.Helper()
		h := sampleHeader()
		change(&h)
		err := sameRecording(sampleHeader(), h)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	check("", func(h *record.Header) { h.Created = time.Now() })
	check("its machine", func(h *record.Header) { h.Machine = "other" })
	check("its models", func(h *record.Header) { h.Models = map[string]string{"fp32": "x"} })
	check("its space", func(h *record.Header) { h.Space.Load.Levels = []float64{1} })
}

func TestFlags(t *testing.T) {
	t.Parallel()
	good := []string{"-profile", "p.yaml", "-o", "r.jsonl", "-save", "r.jsonl.gz", "-ort-library", "x", "-tuner", "main.go"}
	if _, err := program.Parse(define, good, io.Discard); err != nil {
		t.Error(err)
	}
	for _, more := range [][]string{{"more"}, {"-passes", "0"}, {"-ort-library", ""}, {"-save", ""}, {"-tuner", "nowhere"}} {
		if _, err := program.Parse(define, append(slices.Clone(good), more...), io.Discard); err == nil {
			t.Errorf("%q is accepted", more)
		}
	}
}
