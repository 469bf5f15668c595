package plan

import (
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// decision holds the posterior after some of the events, and the verdict from it.
type decision struct {
	events  int // number of events behind it
	known   *posterior.Posterior
	verdict verdict.Verdict
}

// decided returns the campaign's current decision. The next trial depends on it, so it must be a
// function of the events alone: it learns from all of them at once. The last curves do not count
// yet, so that the choice of curves stays fixed while they are measured.
func (p *Plan) decided() *decision {
	n := len(p.events)
	for n > 0 && p.events[n-1].Trial.Phase == search.PhaseLoadCurve {
		n--
	}
	return p.decidedAfter(n)
}

// decidedAfter returns the decision after n events: all, or all but the last curves.
func (p *Plan) decidedAfter(n int) *decision {
	for _, d := range p.decisions {
		if d.events == n {
			return d
		}
	}
	d := p.decide(p.events[:n])
	p.decisions = append(p.decisions[max(0, len(p.decisions)-1):], d)
	return d
}

// decide learns from events and makes the decision.
func (p *Plan) decide(events []search.Event) *decision {
	known := posterior.New(p.posteriorOptions(), events)
	p.known, p.knownOf = known, len(events)
	return &decision{len(events), known, p.decideNow(known)}
}

// anchor returns the last number of trials, up to n, after which the search decides whether it is
// over. The numbers are 1, 2, 3, 4, 5, 6, 7, 8, 10 and so on. A decision after each trial would
// take a tenth of the time.
func anchor(n int) int {
	at := 0
	for next := 1; next <= n; next = max(next+1, int(posterior.Growth*float64(next))) {
		at = next
	}
	return at
}
