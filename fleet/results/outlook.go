package results

import (
	"math"

	"tuner/measure"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// Outlook has the costs of a campaign so far: those of its configurations, and the least that any may reach.
// The zero value knows nothing. It is immutable.
type Outlook struct {
	offers  []offer
	answer  float64 // logarithm of the expected cost of the answer
	reach   verdict.Reach
	mistake float64 // probability of an error that is allowed
}

// offer is a configuration that was measured.
type offer struct {
	cost  posterior.Normal // logarithm
	holds float64          // probability that it keeps the constraints
}

func (o offer) text() string {
	e := o.cost.Estimate()
	return Interval{e.Value, e.Lo, e.Hi}.text()
}

// OutlookOf returns the outlook of a campaign whose objective is the throughput or the cost. It knows nothing while
// no configuration is likely to keep the constraints. cost is that of a throughput.
func OutlookOf(v verdict.Verdict, cost func(throughput float64) float64) Outlook {
	answer := v.Answer()
	if answer == nil || v.Nearest != nil {
		return Outlook{}
	}
	o := Outlook{reach: v.Reach, mistake: 1 - v.Confidence, answer: math.Log(cost(answer.Values[measure.Throughput].Value))}
	for _, c := range v.Configs {
		if x := c.Values[measure.Throughput]; c.MayLead() && c.Keeps(v.Confidence) && x.Lo > 0 {
			n := posterior.NormalOf(x)
			o.offers = append(o.offers, offer{posterior.Normal{Mean: math.Log(cost(x.Value)), Deviation: n.Deviation}, c.Holds})
		}
	}
	return o
}

// undercuts returns an upper bound of the probability that any configuration costs less than a mark, which is
// the logarithm of a cost; 1 if nothing is known.
func (o Outlook) undercuts(mark posterior.Normal) float64 {
	return o.reach.Beyond(posterior.Normal{Mean: o.answer - mark.Mean, Deviation: mark.Deviation})
}

// isBeatenBy reports whether no configuration is likely to cost less than one that another type has already, by
// more than machines of one type differ. It returns that one. It is an error to end the type if a
// configuration costs less, or if the other one does not keep the constraints after all. The sum of both
// probabilities is at most 1 − the campaign's confidence.
func (o Outlook) isBeatenBy(other Outlook) (offer, bool) {
	for _, found := range other.offers {
		mark := posterior.Normal{Mean: found.cost.Mean + math.Log(betweenMachines), Deviation: found.cost.Deviation}
		if o.undercuts(mark)+1-found.holds <= o.mistake {
			return found, true
		}
	}
	return offer{}, false
}

// least returns the cost below which no configuration is likely to be; 0 if one may cost a hundredth of the answer.
func (o Outlook) least() float64 {
	const most = 100 // factor to the answer
	lo, hi := o.answer-math.Log(most), o.answer+math.Log(most)
	isLikely := func(log float64) bool { return o.undercuts(posterior.Normal{Mean: log}) > o.mistake }
	if isLikely(lo) {
		return 0
	}
	for range 50 {
		if mid := (lo + hi) / 2; isLikely(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return math.Exp(lo)
}
