package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// oracle is an explorer that measures nothing. At first it believes its favourite to be best at concurrency 4, and once it has seen a
// final, at 16. Its rival is believed to be a little worse.
type oracle struct {
	believer
	favourite, rival search.Candidate
	others           []search.Candidate // believed to be as good as the rival
	late             *search.Candidate  // what it believes best once it has seen so many finals; nil: the favourite still
	after            int
	confirmed        int
}

func (o *oracle) Confirm(search.Event) { o.confirmed++ }

func (o *oracle) Ranked() []search.Standing {
	level := 4.0
	if o.confirmed > 0 {
		level = 16
	}
	var ranked []search.Standing
	for _, c := range append([]search.Candidate{o.favourite, o.rival}, o.others...) {
		p, _ := o.Believed(c, level)
		ranked = append(ranked, search.Standing{Candidate: c, Load: searchtest.Settings(searchtest.Small(), 0).Space.Load.At(level), Point: p})
	}
	if o.late != nil && o.confirmed >= o.after {
		p, _ := o.Believed(*o.late, level)
		ranked = append([]search.Standing{{Candidate: *o.late, Load: ranked[0].Load, Point: p}}, ranked...)
	}
	return append(ranked, o.ledger.Ranked()...)
}

// Believed knows no more than that 16 is better than anything else by a tenth, and the favourite than its rival by a twentieth.
func (o *oracle) Believed(c search.Candidate, level float64) (search.Point, bool) {
	p := search.Point{Level: level, Score: 10, Scored: true}
	if level == 16 {
		p.Score += 0.1
	}
	if c.Key() == o.favourite.Key() {
		p.Score += 0.05
	}
	if o.late != nil && c.Key() == o.late.Key() {
		p.Score += 0.2
	}
	return p, !c.IsDefault()
}

// Where the explorer believes, the finals' loads and their winner are what it believes after them, whatever their windows show alone within the limits.
func TestBelieverDecidesTheFinals(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	s := searchtest.Settings(l, 200*time.Millisecond)
	candidates := s.Space.Candidates().All()
	slow, fast := candidates[0], candidates[len(candidates)-1]
	var o *oracle
	p, err := plan.Around(s, func(ledger *search.Ledger, _ *search.Candidates) plan.Explorer {
		o = &oracle{believer: believer{Tour: search.NewTour(s, ledger, search.PhaseSearch, nil), ledger: ledger}, favourite: slow, rival: fast}
		return o
	})
	if err != nil {
		t.Fatal(err)
	}
	finals := phases(l.Run(p, 1000), search.PhaseFinal)
	if o.confirmed != len(finals) {
		t.Errorf("the explorer was told of %d of %d finals", o.confirmed, len(finals))
	}
	leader, ok := p.Favourite()
	if !ok || leader.Candidate.Key() != slow.Key() || leader.Load.Concurrency != 16 {
		t.Errorf("%v at %v leads (%v), want %v at 16", leader.Candidate, leader.Load, ok, slow)
	}
	var loads []int
	for _, e := range finals {
		if e.Trial.Candidate.Key() == slow.Key() {
			loads = append(loads, e.Trial.Load.Concurrency)
		}
	}
	if len(loads) < 3 || loads[0] != 4 || slices.Min(loads[1:]) != 16 || slices.Max(loads[1:]) != 16 {
		t.Errorf("the favourite's finals are at %v, want 4 and then 16", loads)
	}
}

// What is reported are the finals' figures: a load at which three launches clearly miss a constraint is left for a lower one, and not come back to,
// whatever is believed.
func TestFinalsLeaveWhatTheyRefute(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	candidates := searchtest.Settings(l, 0).Space.Candidates().All()
	slow, fast := candidates[0], candidates[len(candidates)-1]
	_, latency := l.Serve(slow, measure.Load{Concurrency: 16, BatchSize: 1})
	s := searchtest.Settings(l, latency*9/10)
	p, err := plan.Around(s, func(ledger *search.Ledger, _ *search.Candidates) plan.Explorer {
		tour := search.NewTour(s, ledger, search.PhaseSearch, nil)
		return &oracle{believer: believer{Tour: tour, ledger: ledger}, favourite: slow, rival: fast}
	})
	if err != nil {
		t.Fatal(err)
	}
	var loads []int
	for _, e := range phases(l.Run(p, 1000), search.PhaseFinal) {
		if e.Trial.Candidate.Key() == slow.Key() {
			loads = append(loads, e.Trial.Load.Concurrency)
		}
	}
	if len(loads) < 6 || !slices.Equal(loads[:4], []int{4, 16, 16, 16}) || slices.Max(loads[4:]) >= 16 {
		t.Errorf("finals are at %v, want 4, three times 16, and then lower ones", loads)
	}
	leader, ok := p.Favourite()
	if !ok || leader.Candidate.Key() == slow.Key() && leader.Load.Concurrency >= 16 {
		t.Errorf("%v leads at %v (%v)", leader.Candidate, leader.Load, ok)
	}
}

// Where the finals refute what is believed best, the next that they do not is a member, too: else the default is the answer.
func TestFinalsAdmitBesideWhatTheyRefute(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	candidates := searchtest.Settings(l, 0).Space.Candidates().All()
	slow, fast := candidates[:3], candidates[len(candidates)-1]
	latency := func(c search.Candidate) time.Duration {
		_, latency := l.Serve(c, measure.Load{Concurrency: 16, BatchSize: 1})
		return latency
	}
	limit := min(latency(slow[0]), latency(slow[1]), latency(slow[2])) * 9 / 10
	if latency(fast) > limit {
		t.Fatalf("%v misses the limit, too", fast)
	}
	s := searchtest.Settings(l, limit)
	p, err := plan.Around(s, func(ledger *search.Ledger, _ *search.Candidates) plan.Explorer {
		tour := search.NewTour(s, ledger, search.PhaseSearch, nil)
		return &oracle{believer: believer{Tour: tour, ledger: ledger}, favourite: slow[0], rival: slow[1], others: []search.Candidate{slow[2], fast}}
	})
	if err != nil {
		t.Fatal(err)
	}
	finals := 0
	for _, e := range phases(l.Run(p, 1000), search.PhaseFinal) {
		if e.Trial.Candidate.Key() == fast.Key() {
			finals++
		}
	}
	if leader, ok := p.Favourite(); finals < 4 || !ok || leader.Candidate.Key() != fast.Key() {
		t.Errorf("after %d finals of %v, %v leads (%v)", finals, fast, leader.Candidate, ok)
	}
}

// What is believed of the search's server says nothing of another one: its finals stand for themselves.
func TestBelieverIsNotAskedOfFinalsElsewhere(t *testing.T) {
	t.Parallel()
	l := searchtest.Small()
	s := searchtest.Settings(l, 50*time.Millisecond)
	s.Elsewhere = true
	candidates := s.Space.Candidates().All()
	slow, fast := candidates[0], candidates[len(candidates)-1]
	var o *oracle
	p, err := plan.Around(s, func(ledger *search.Ledger, _ *search.Candidates) plan.Explorer {
		o = &oracle{believer: believer{Tour: search.NewTour(s, ledger, search.PhaseSearch, nil), ledger: ledger}, favourite: slow, rival: fast}
		return o
	})
	if err != nil {
		t.Fatal(err)
	}
	finals := phases(l.Run(p, 1000), search.PhaseFinal)
	leader, ok := p.Favourite()
	if o.confirmed != 0 || len(finals) == 0 || !ok || leader.Candidate.Key() != fast.Key() {
		t.Errorf("after %d finals, %d of them told, %v leads (%v), want %v by its own figures", len(finals), o.confirmed, leader.Candidate, ok, fast)
	}
}

// What turns out to be believed better than all members joins the finals, and wins them only after finals of its own: in the round in which it joins,
// wherever that stands, each member has its one turn; and it has as many rounds as if it had been there from the beginning, though it be after the last.
func TestFinalsAdmitWhatIsBelievedBetter(t *testing.T) {
	t.Parallel()
	for after := 1; after <= 12; after++ {
		t.Run(fmt.Sprintf("after %d finals", after), func(t *testing.T) {
			t.Parallel()
			testAdmission(t, after, false)
		})
	}
}

// In blocks nothing joins before the block is over, which is a round of three.
func TestBlocksOfFinalsAdmitWhatIsBelievedBetter(t *testing.T) {
	t.Parallel()
	for after := 3; after <= 12; after += 3 {
		t.Run(fmt.Sprintf("after %d finals", after), func(t *testing.T) {
			t.Parallel()
			for within := range 3 {
				testAdmission(t, after-within, true)
			}
		})
	}
}

func testAdmission(t *testing.T, after int, turns bool) {
	t.Helper()
	l := searchtest.Small()
	s := searchtest.Settings(l, 200*time.Millisecond)
	s.Turns = turns
	candidates := s.Space.Candidates().All()
	late := candidates[7]
	p, err := plan.Around(s, func(ledger *search.Ledger, _ *search.Candidates) plan.Explorer {
		return &oracle{believer: believer{Tour: search.NewTour(s, ledger, search.PhaseSearch, nil), ledger: ledger},
			favourite: candidates[0], rival: candidates[len(candidates)-1], late: &late, after: after}
	})
	if err != nil {
		t.Fatal(err)
	}
	trials := map[string]int{}
	for _, e := range phases(l.Run(p, 1000), search.PhaseFinal) {
		trials[e.Trial.Candidate.Key()]++
	}
	leader, ok := p.Favourite()
	if !ok || leader.Candidate.Key() != late.Key() || len(leader.Measurement.Windows) == 0 {
		t.Errorf("%v leads (%v) with %d windows, want %v", leader.Candidate, ok, len(leader.Measurement.Windows), late)
	}
	all := trials[candidates[0].Key()]
	for key, n := range trials {
		want := all
		if key == late.Key() {
			want -= after / 3 // rounds that were over
			if turns {
				want = all - (after+2)/3 // and with the block it was
			}
		}
		if n != want {
			t.Errorf("finals of %v: %d of %s, want %d", trials, n, key, want)
		}
	}
	if len(trials) != 4 || trials[late.Key()] < 4 {
		t.Errorf("finals of %v, want four members, and at least four rounds of each", trials)
	}
}
