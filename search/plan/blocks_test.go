package plan_test

import (
	"slices"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
	"tuner/search/verdict"
)

// planInTurns plans a campaign on a server that supports measuring in turns.
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

// blocksOf lists the finals by block, in their order. A trial that was measured alone is its own
// block.
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

// isConfirmed fails the test unless the answer and the default were measured on two fresh launches
// each.
func isConfirmed(t *testing.T, p *plan.Plan) {
	t.Helper()
	v := p.Verdict()
	if v.Recommended == nil || v.Default == nil {
		t.Fatalf("%s: nothing is recommended", v.State)
	}
	launches := map[string]int{}
	for _, c := range v.Choices {
		launches[c.Candidate.Key()] += c.Fresh
	}
	if v.Recommended.Fresh < verdict.Confirmed || launches["default"] < verdict.Confirmed {
		t.Errorf("the answer has %d fresh launches, the default %d; want %d", v.Recommended.Fresh, launches["default"], verdict.Confirmed)
	}
}

// Cells that the finals compare meet in blocks of turns, on their own launches. No cell is twice in
// a block.
func TestFinalsInBlocks(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	p := planInTurns(t, l, nil)
	for i, block := range blocksOf(l.Run(p, 1000)) {
		if len(block) < 2 || len(block) > search.MostSeats {
			t.Errorf("block %d has %d seats", i+1, len(block))
		}
		seen := map[string]bool{}
		for _, e := range block {
			cell := e.Trial.Candidate.Key() + " " + e.Trial.Load.String()
			if got := e.Trial; got.Block != i+1 || !got.Fresh || got.Window != search.TurnWindow || got.Windows%2 != 0 || e.Measurement.Times.Launch == 0 {
				t.Errorf("block %d: %+v", i+1, got)
			}
			if seen[cell] {
				t.Errorf("block %d has %s twice", i+1, cell)
			}
			seen[cell] = true
		}
	}
	isConfirmed(t, p)
}

// If a block could not be measured in turns, its trials are measured alone, and so are all later
// ones.
func TestFinalsWithoutRoomForBlocks(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	p := planInTurns(t, l, nil)
	var events []search.Event
	l.Run(aloneAfter{p, 1, &events}, 1000)
	for i, block := range blocksOf(events) {
		if i > search.MostSeats && block[0].Trial.IsApart || i > 0 && len(block) > 1 {
			t.Errorf("place %d: a block of %d after one that was refused", i, len(block))
		}
	}
	isConfirmed(t, p)
}

// aloneAfter is a plan with blocks that are measured one trial after the other, except the first
// few.
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

// A campaign resumes after an interruption between two events of a block, and the events so far
// count.
func TestInterruptedBlockGoesOn(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	events := l.Run(planInTurns(t, l, nil), 1000)
	first := slices.IndexFunc(events, func(e search.Event) bool { return e.Trial.Block == 1 })
	for cut := first; cut < first+4; cut++ {
		p := planInTurns(t, l, nil)
		for _, e := range events[:cut] {
			p.Tell(e)
		}
		if next := p.Ask(); next.Stop || next.Trial.Phase != search.PhaseFinal || next.Trial.Block <= events[cut-1].Trial.Block {
			t.Errorf("after %d seats it asks for %+v", cut-first, next.Trial)
		}
		l.Run(p, 1000)
		isConfirmed(t, p)
	}
}

// A pause hides that a queue grows, so finals at request rates have no blocks.
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

// A block begins only if it is expected to end within the budget. If the first one is too
// expensive, a single trial replaces it.
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
	if !seen[1] || !seen[3] {
		t.Errorf("blocks of %v seats, want single trials and three", seen)
	}
}
