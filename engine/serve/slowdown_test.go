package serve

import (
	"testing"
	"time"

	"tuner/engine"
	"tuner/engine/flags"
)

// instantly is a session whose executions say that they took a time.
type instantly struct {
	engine.Session
	took time.Duration
}

func (s instantly) Execute(*engine.Batch) (engine.Result, error) {
	now := time.Now()
	return engine.Result{Gathered: now, Computed: now.Add(s.took)}, nil
}

// Of ten executions a fifth take three times as long, evenly spread, and say so.
func TestSlowdownSlowsAShare(t *testing.T) {
	t.Parallel()
	const took = 100 * time.Microsecond
	s := &slowSession{Session: instantly{took: took}, by: flags.Slowdown{Factor: 3, Share: 0.2}}
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
	if _, isSlow := slowed(nil, flags.Slowdown{}).(slowBackend); isSlow {
		t.Error("without the option executions are slowed")
	}
}
