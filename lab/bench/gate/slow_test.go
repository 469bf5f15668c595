package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"tuner/engine"
)

// The arguments of a slow engine are a slowness and those of `tuner serve`.
func TestSlowEngineReadsArguments(t *testing.T) {
	t.Parallel()
	for _, want := range []slowness{{1.05, 1}, {5, 0.02}} {
		by, rest, err := readSlowness(append(want.args(), "serve", "--id=a"))
		if err != nil || by != want || strings.Join(rest, " ") != "serve --id=a" {
			t.Errorf("%+v, %q, %v; want %+v", by, rest, err, want)
		}
	}
	for want, args := range map[string]string{
		"a factor and a share": "2", "no factor": "0.5 1 serve", "no share": "2 0 serve", "can only serve": "2 1 gate", "unknown flag": "2 1 serve --speed=9",
	} {
		if err := slowEngine(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}

// instantly is a session whose executions report a given time.
type instantly struct {
	engine.Session
	took time.Duration
}

func (s instantly) Execute(*engine.Batch) (engine.Result, error) {
	now := time.Now()
	return engine.Result{Gathered: now, Computed: now.Add(s.took)}, nil
}

// Of ten executions, two take three times as long, evenly spread, and report it.
func TestSlowSessionSlowsAShare(t *testing.T) {
	t.Parallel()
	const took = 100 * time.Microsecond
	s := &slowSession{Session: instantly{took: took}, by: slowness{3, 0.2}}
	var slow []int
	for i := range 10 {
		begin := time.Now()
		r, err := s.Execute(nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Computed.Sub(r.Gathered) > took {
			slow = append(slow, i)
			if at := time.Since(begin); at < 2*took || r.Computed.Sub(r.Gathered) < 3*took {
				t.Errorf("execution %d took %v and says %v", i, at, r.Computed.Sub(r.Gathered))
			}
		}
	}
	if len(slow) != 2 || slow[1]-slow[0] != 5 {
		t.Errorf("slow were %v", slow)
	}
}
