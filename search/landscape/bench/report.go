package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"tuner/search/landscape"
	"tuner/stats"
)

// report prints a table of each landscape and limit, then of the recorded and of the synthetic ones together.
func report(out io.Writer, o options, all []series) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := 0; i < len(all); i += len(o.strategies) {
		group := all[i : i+len(o.strategies)]
		fmt.Fprintf(w, "\n%s, %s\n", group[0].landscape.Name, limitText(group[0].limit))
		table(w, o, group)
	}
	for _, recorded := range []bool{true, false} {
		title := map[bool]string{true: "recorded", false: "synthetic"}[recorded]
		if group := together(o, all, recorded); len(group) > 0 {
			fmt.Fprintf(w, "\nall %s landscapes\n", title)
			table(w, o, group)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the tables: %w", err)
	}
	return nil
}

// together joins each strategy's campaigns on all recorded, or all synthetic, landscapes.
func together(o options, all []series, recorded bool) []series {
	var list []series
	for _, name := range o.strategies {
		sum := series{strategy: name}
		for _, s := range all {
			if s.strategy == name && s.landscape.Recorded == recorded {
				sum.outcomes = append(sum.outcomes, s.outcomes...)
			}
		}
		if len(sum.outcomes) > 0 {
			list = append(list, sum)
		}
	}
	return list
}

// moments are the times at which recommendations are judged, up to the budget.
func moments(budget time.Duration) []time.Duration {
	list := []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute}
	return slices.DeleteFunc(list, func(t time.Duration) bool { return t > budget })
}

// table has a row for each strategy.
func table(w io.Writer, o options, group []series) {
	fmt.Fprint(w, "strategy")
	for _, t := range moments(o.budget) {
		fmt.Fprintf(w, "\tP(≤1/2/5 %%) %.0f s", t.Seconds())
	}
	fmt.Fprintln(w, "\tT2 median\tp90\tfalse\tlaunches\ttrials\tpoints\tends\tcovers\tcovers now\tgain covers\tclaims cover")
	for _, s := range group {
		fmt.Fprint(w, s.strategy)
		for _, t := range moments(o.budget) {
			fmt.Fprintf(w, "\t%.2f/%.2f/%.2f", s.within(t, 0.01), s.within(t, 0.02), s.within(t, 0.05))
		}
		fmt.Fprintf(w, "\t%s\t%s\t%.1f %%\t%.0f\t%.0f\t%.1f %%\t%.0f s\t%s\t%s\t%s\t%s\n", s.stays(0.5), s.stays(0.9), 100*s.share(func(o landscape.Outcome) bool { return o.False }),
			s.median(func(o landscape.Outcome) float64 { return float64(o.Launches) }), s.median(func(o landscape.Outcome) float64 { return float64(o.Trials) }),
			100*s.median(func(o landscape.Outcome) float64 { return o.Measured }), s.median(func(o landscape.Outcome) float64 { return o.Elapsed.Seconds() }),
			s.covers(func(o landscape.Outcome) landscape.Coverage { return o.Value }),
			s.covers(func(o landscape.Outcome) landscape.Coverage { return o.Now }), s.covers(func(o landscape.Outcome) landscape.Coverage { return o.Gain }),
			s.covers(func(o landscape.Outcome) landscape.Coverage { return o.Claim }))
	}
}

// within is the share of campaigns whose recommendation at a time has at most a regret.
func (s series) within(t time.Duration, regret float64) float64 {
	return s.share(func(o landscape.Outcome) bool { return o.At(t) <= regret })
}

func (s series) share(is func(landscape.Outcome) bool) float64 {
	n := 0
	for _, o := range s.outcomes {
		if is(o) {
			n++
		}
	}
	return float64(n) / float64(len(s.outcomes))
}

func (s series) median(of func(landscape.Outcome) float64) float64 {
	var values []float64
	for _, o := range s.outcomes {
		values = append(values, of(o))
	}
	return stats.Median(values)
}

// stays is a quantile of the time after which the regret stays within 2 %; "never" where the campaigns that get there are fewer.
func (s series) stays(quantile float64) string {
	var times []float64
	for _, o := range s.outcomes {
		t, ok := o.StaysWithin(0.02)
		if !ok {
			t = math.MaxInt64
		}
		times = append(times, t.Seconds())
	}
	slices.Sort(times)
	at := times[int(math.Ceil(quantile*float64(len(times))))-1]
	if at >= time.Duration(math.MaxInt64).Seconds() {
		return "never"
	}
	return fmt.Sprintf("%.0f s", at)
}

// covers is the share of the stated intervals that hold the truth, and how many were stated.
func (s series) covers(of func(landscape.Outcome) landscape.Coverage) string {
	stated, covered := 0, 0
	for _, o := range s.outcomes {
		if c := of(o); c.Stated {
			stated++
			if c.Covers {
				covered++
			}
		}
	}
	if stated == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %% of %d", 100*float64(covered)/float64(stated), stated)
}
