package landscape

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/standings"
)

// steadfast measures one cell and recommends it until a time is over.
type steadfast struct {
	trial search.Trial
	until time.Duration
	told  time.Duration
}

func (s *steadfast) Ask() search.Action {
	return search.Action{Trial: s.trial, Stop: s.told >= s.until}
}
func (s *steadfast) Tell(e search.Event) { s.told = e.Elapsed }
func (s *steadfast) Leader() (standings.Standing, bool) {
	return standings.Standing{Candidate: s.trial.Candidate, Point: standings.Point{Level: s.trial.Load.Level()}}, true
}

func TestJudgeAtASpeed(t *testing.T) {
	t.Parallel()
	l := small().make()
	// By TestRegret's figures, two instances with batches of 4 at 4 take 6 ms and do 667/s. Batches
	// of 1 at 1 take 5 ms and do 200/s.
	limit := Limit{"5.6 ms", 0.0056}
	fast, slow := l.judge(limit, 1.1), l.judge(limit, 0.85)
	if fast.best.Candidate.Key() != candidate("2", "4").Key() || fast.best.Level != 4 {
		t.Errorf("the best of a fast machine is %+v", fast.best)
	}
	if slow.best != nil || slow.regret(candidate("1", "1"), 1) != 1 || !slow.isFalse(l.Find(candidate("1", "1"), 1)) {
		t.Errorf("5 ms keep the limit on a slow machine, by %+v", slow.best)
	}
	if got := fast.regret(candidate("2", "4"), 4); got != 0 || fast.isFalse(l.Find(candidate("2", "4"), 4)) {
		t.Errorf("regret %g", got)
	}
	if fast.isFalse(nil) || fast.regret(candidate("3", "1"), 1) != 1 {
		t.Error("what is unknown is false, or has no regret")
	}
}

// The machine is twice as fast in one half of the recording as in the other. A cell misses its
// limit by a tenth over all hours. It keeps the limit if the campaign ran in the fast half, and
// misses it in the slow one.
func TestNowIsTheMachineAsItWas(t *testing.T) {
	t.Parallel()
	l, err := FromRecord(recording())
	if err != nil {
		t.Fatal(err)
	}
	p := l.Find(candidateOf("1"), 4)
	limit := Limit{"a tenth less", p.P99 / 1.1}
	kept := map[bool]int{}
	for seed := range uint64(20) {
		s := &steadfast{trial: search.Trial{Candidate: candidateOf("1"), Load: measure.Load{Concurrency: 4, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseSearch},
			until: 30 * time.Second}
		o := l.Run(s, limit, seed, nil)
		speed := l.NewMachine(seed).weather.mean(0, o.Elapsed)
		keeps := p.P99/speed <= limit.P99*1.02
		if !o.False[Long] || o.Regret[Long] != 1 || o.False[Now] == keeps || o.Regret[Now] == 0 != keeps || o.At(o.Elapsed, Now) != o.Regret[Now] {
			t.Errorf("seed %d, speed %.2f: false %v, regrets %v", seed, speed, o.False, o.Regret)
		}
		kept[keeps]++
		if len(o.Steps) != 1 {
			t.Errorf("one recommendation has %d steps", len(o.Steps))
		}
	}
	if kept[true] < 4 || kept[false] < 4 {
		t.Errorf("the limit is kept in %v campaigns", kept)
	}
}
