package plan_test

import (
	"slices"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// planInTurns plans a campaign on a server that can be measured in turns.
func planInTurns(t *testing.T, l searchtest.Landscape, change func(*search.Settings)) *plan.Plan {
	t.Helper()
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Turns = true
	if change != nil {
		change(&s)
	}
	p, err := plan.New("grid", s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// blocksOf lists the finals by block, in their order; a trial that was measured alone is one of its own.
func blocksOf(events []search.Event) [][]search.Event {
	var blocks [][]search.Event
	for _, e := range phases(events, search.PhaseFinal) {
		n := len(blocks)
		if n > 0 && e.Trial.Block > 0 && blocks[n-1][0].Trial.Block == e.Trial.Block {
			blocks[n-1] = append(blocks[n-1], e)
			continue
		}
		blocks = append(blocks, []search.Event{e})
	}
	return blocks
}

// The four members of the finals are measured in two blocks a round, on launches of their own, and no configuration twice in a block.
func TestFinalsInBlocks(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	blocks := blocksOf(l.Run(planInTurns(t, l, nil), 1000))
	trials := map[string]int{}
	for i, block := range blocks {
		if len(block) != 2 || block[0].Trial.Candidate.Key() == block[1].Trial.Candidate.Key() {
			t.Errorf("block %d has %d seats of %v", i+1, len(block), block[0].Trial.Candidate)
		}
		for _, e := range block {
			trials[e.Trial.Candidate.Key()]++
			if got := e.Trial; got.Block != i+1 || !got.Fresh || got.Window != search.TurnWindow || got.Windows%2 != 0 || e.Measurement.Times.Launch == 0 {
				t.Errorf("block %d: %+v", i+1, got)
			}
		}
	}
	for key, n := range trials {
		if n != 4 || len(trials) != 4 {
			t.Errorf("%d finals of %s, one of %d members; want four rounds of four", n, key, len(trials))
		}
	}
}

// Where a block could not be measured in turns, its trials come alone, and so do all others. Each member has as many as it would have had.
func TestFinalsWithoutRoomForBlocks(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	p := planInTurns(t, l, nil)
	var events []search.Event
	alone := aloneAfter{p, 1, &events}
	trials := map[string]int{}
	l.Run(alone, 1000)
	for i, block := range blocksOf(events) {
		if i > 0 && len(block) > 1 {
			t.Errorf("place %d: a block of %d after one that was refused", i, len(block))
		}
		for _, e := range block {
			trials[e.Trial.Candidate.Key()]++
		}
	}
	for key, n := range trials {
		if n != 4 || len(trials) != 4 {
			t.Errorf("%d finals of %s, one of %d members; want four rounds of four", n, key, len(trials))
		}
	}
}

// aloneAfter is a plan whose blocks, but for the first few, are measured one trial after the other.
type aloneAfter struct {
	*plan.Plan
	blocks int
	told   *[]search.Event
}

func (a aloneAfter) Tell(e search.Event) {
	if e.Trial.Block > a.blocks {
		e.Trial = e.Trial.Alone()
	}
	*a.told = append(*a.told, e)
	a.Plan.Tell(e)
}

// A block that was interrupted between two of its events goes on with its other seats, and what was told counts.
func TestInterruptedBlockGoesOn(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	events := l.Run(planInTurns(t, l, nil), 1000)
	first := slices.IndexFunc(events, func(e search.Event) bool { return e.Trial.Block == 1 })
	for cut := first; cut < first+8; cut++ { // four blocks of two
		p := planInTurns(t, l, nil)
		for _, e := range events[:cut] {
			p.Tell(e)
		}
		next := p.Ask()
		seats := []int{2, 3, 2, 1}[(cut-first)%4] // of what is left of a round of four
		if got, want := next.Trial.Candidate.Key(), events[cut].Trial.Candidate.Key(); got != want || len(next.Trials()) != seats {
			t.Errorf("after %d seats it asks for %d trials, of %s first; want %d, of %s", cut-first, len(next.Trials()), got, seats, want)
		}
		if (cut-first)%2 == 0 && next.Trial.Block != events[cut].Trial.Block {
			t.Errorf("after %d seats it asks for block %d, want %d", cut-first, next.Trial.Block, events[cut].Trial.Block)
		}
		trials := map[string]int{}
		for _, e := range append(events[:cut:cut], l.Run(p, 1000)...) {
			if e.Trial.Phase == search.PhaseFinal {
				trials[e.Trial.Candidate.Key()]++
			}
		}
		for key, n := range trials {
			if n != 4 {
				t.Errorf("interrupted after %d seats: %d finals of %s", cut-first, n, key)
			}
		}
	}
}

// A pause hides that a queue grows: at request rates finals are measured without.
func TestNoBlocksAtARate(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	events := l.Run(planInTurns(t, l, func(s *search.Settings) {
		s.Space.Load = search.LoadAxis{Rate: true, Levels: []float64{50, 100, 200}, BatchSize: 1}
	}), 1000)
	for _, block := range blocksOf(events) {
		if len(block) > 1 || block[0].Trial.Block > 0 {
			t.Errorf("%+v", block[0].Trial)
		}
	}
}

// A block is begun only when all of it is expected to end within the budget; a first one that is too dear gives way to a single trial.
func TestBlocksWithinTheBudget(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	seen := map[int]bool{}
	for trials := 4; trials < 60; trials += 5 {
		events := l.Run(planInTurns(t, l, func(s *search.Settings) { s.Budget.Trials = trials }), 1000)
		if len(events) > trials {
			t.Errorf("%d trials with a budget of %d", len(events), trials)
		}
		for _, block := range blocksOf(events) {
			seen[len(block)] = true
		}
	}
	if !seen[1] || !seen[2] || !seen[3] {
		t.Errorf("blocks of %v seats, want 1, 2 and 3", seen)
	}
}
