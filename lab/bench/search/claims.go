package main

import (
	"fmt"
	"io"
	"math"

	"tuner/lab/landscape"
	"tuner/measure/stats"
)

// wrong is the regret, at the campaign's own time, above which an answer is wrong.
const wrong = 0.02

// claims prints the claims beside the truth. It omits claims that no campaign of the group states.
func claims(w io.Writer, group []series) {
	fmt.Fprintln(w, "\nstrategy\tanswer's interval holds long\tas in the finals\tgain's\tbelief's, long"+
		"\tnothing better than stated: all\tended by budget\twrong answers\tz of unmeasured cells, rms: throughput\tp99")
	stated := false
	for _, s := range group {
		bound := func(o landscape.Outcome) landscape.Coverage { return o.Claims.Bound }
		isMeant := func(o landscape.Outcome) bool { return o.Claims.Kept.Stated }
		stated = stated || s.share(isMeant) > 0
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.strategy,
			s.covers(func(o landscape.Outcome) landscape.Coverage { return o.Value }),
			s.covers(func(o landscape.Outcome) landscape.Coverage { return o.ValueNow }),
			s.covers(func(o landscape.Outcome) landscape.Coverage { return o.Gain }),
			s.covers(func(o landscape.Outcome) landscape.Coverage { return o.Claims.Value }),
			s.covers(bound), s.only(func(o landscape.Outcome) bool { return !o.Claims.IsOver }).covers(bound),
			s.only(func(o landscape.Outcome) bool { return o.Regret[landscape.Now] > wrong }).covers(bound),
			s.misfit(func(o landscape.Outcome) landscape.Misfit { return o.Claims.Throughput }),
			s.misfit(func(o landscape.Outcome) landscape.Misfit { return o.Claims.P99 }))
	}
	if !stated {
		return
	}
	fmt.Fprint(w, "\nstrategy\tprobability of keeping the limit: below 0.5")
	for low := 5; low < 10; low++ {
		fmt.Fprintf(w, "\t%.1f–%.1f", float64(low)/10, float64(low+1)/10)
	}
	fmt.Fprintln(w, "\t(stated: true now, long of n)")
	for _, s := range group {
		if row, ok := s.reliability(); ok {
			fmt.Fprintf(w, "%s%s\n", s.strategy, row)
		}
	}
}

// only returns the campaigns that satisfy isMeant.
func (s series) only(isMeant func(landscape.Outcome) bool) series {
	var list []landscape.Outcome
	for _, o := range s.outcomes {
		if isMeant(o) {
			list = append(list, o)
		}
	}
	s.outcomes = list
	return s
}

// reliability compares stated probabilities with the truth. It has a bin below a half, and bins of
// a tenth from there. Each has the mean of the stated probabilities, and the number of campaigns.
// It also has the shares that keep the limit at the campaign's own time and over long hours. It
// returns false if no campaign states a probability.
func (s series) reliability() (row string, ok bool) {
	const bins = 6
	var stated [bins]float64
	var kept [bins][2]int
	var n [bins]int
	for _, o := range s.outcomes {
		k := o.Claims.Kept
		if !k.Stated {
			continue
		}
		ok = true
		i := min(max(int(math.Floor(10*k.Probability))-4, 0), bins-1)
		n[i]++
		stated[i] += k.Probability
		for h, is := range k.True {
			if is {
				kept[i][h]++
			}
		}
	}
	for i := range bins {
		if n[i] == 0 {
			row += "\t–"
			continue
		}
		m := float64(n[i])
		now, long := float64(kept[i][landscape.Now])/m, float64(kept[i][landscape.Long])/m
		row += fmt.Sprintf("\t%.2f: %.2f, %.2f of %d", stated[i]/m, now, long, n[i])
	}
	return row, ok
}

// misfit prints the root of the mean square over all cells of all campaigns, and their number.
func (s series) misfit(of func(landscape.Outcome) landscape.Misfit) string {
	var all landscape.Misfit
	for _, o := range s.outcomes {
		all = all.Add(of(o))
	}
	if all.Count == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f of %d", all.RMS(), all.Count)
}

// middle prints the median of a figure, and its mean in brackets.
func (s series) middle(format string, of func(landscape.Outcome) float64) string {
	var values []float64
	for _, o := range s.outcomes {
		values = append(values, of(o))
	}
	return fmt.Sprintf(format+" ("+format+")", stats.Median(values), stats.Mean(values).Value)
}

// byBudget prints the share of campaigns that their budget ended; "–" for strategies without that
// information.
func (s series) byBudget() string {
	return s.portion(func(o landscape.Outcome) (isMeant, is bool) { return o.Claims.Value.Stated, !o.Claims.IsOver })
}

// covers prints the share of the stated intervals that contain the truth, and the number of stated
// ones.
func (s series) covers(of func(landscape.Outcome) landscape.Coverage) string {
	return s.portion(func(o landscape.Outcome) (isMeant, is bool) { c := of(o); return c.Stated, c.Covers })
}

// portion prints the share of the selected campaigns for which `is` holds, and their number.
func (s series) portion(of func(landscape.Outcome) (isMeant, is bool)) string {
	n, m := 0, 0
	for _, o := range s.outcomes {
		if isMeant, is := of(o); isMeant {
			if n++; is {
				m++
			}
		}
	}
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %% of %d", 100*float64(m)/float64(n), n)
}
