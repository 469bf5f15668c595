package pools

import (
	"testing"

	"tuner/search/queuesim"
)

// At a load that fits into both, a smaller batch equals a larger one under one condition. Both join
// requests in the same way, or have none to join.
func TestBelowIsAlike(t *testing.T) {
	t.Parallel()
	p := &Pool{}
	for _, q := range []queuesim.Batcher{{MaxBatch: 1}, {MaxBatch: 8}, {MaxBatch: 16, Dynamic: true}, {MaxBatch: 32, Dynamic: true}} {
		p.batchers = append(p.batchers, Batcher{Queue: q})
	}
	for i, want := range []int{0, 1, 1, 16} {
		if got := p.below(p.batchers[i]); got != want {
			t.Errorf("below %+v is %d, want %d", p.batchers[i].Queue, got, want)
		}
	}
}

// A zone of batches covers all batches at least as large at loads at least as high. A candidate's
// zone covers the loads from its level on, and a cell's only that cell.
func TestZonesOfFailure(t *testing.T) {
	t.Parallel()
	p := &Pool{engine: &Engine{}, batchers: []Batcher{{Key: "a", Queue: queuesim.Batcher{MaxBatch: 4}}, {Key: "b", Queue: queuesim.Batcher{MaxBatch: 16}}}}
	p.RuleOutCell("a", 3)
	p.RuleOutFrom("a", 10)
	p.RuleOutBatches(8, 20)
	p.engine.RuleOutBatches(32)
	for _, c := range []struct {
		at   Setting
		want bool
	}{
		{Setting{0, 2}, false}, {Setting{0, 3}, true}, {Setting{0, 4}, false}, {Setting{0, 10}, true}, {Setting{0, 11}, true},
		{Setting{1, 10}, false}, {Setting{1, 20}, true}, {Setting{1, 30}, true},
	} {
		if got := p.IsDead(c.at); got != c.want {
			t.Errorf("batcher %d at level %v is out: %v, want %v", c.at.Batcher, c.at.Level, got, c.want)
		}
	}
	if p.Refuses(16) || !p.Refuses(32) {
		t.Errorf("batches of 16 are refused: %v, of 32: %v, want false and true", p.Refuses(16), p.Refuses(32))
	}
}
