package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tuner/lab/landscape"
)

// report prints three groups of tables. They are for each landscape and limit, for each landscape
// over its limits, and for the recorded and the synthetic ones together.
func report(out io.Writer, o options, all []series) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if o.neighbour > 0 {
		fmt.Fprintf(w, "\nbeside a neighbour that takes %.0f %% of the cores in its bursts\n", 100*o.neighbour)
	}
	for i := 0; i < len(all); i += len(o.strategies) {
		group := all[i : i+len(o.strategies)]
		fmt.Fprintf(w, "\n%s, %s\n", group[0].landscape.Name, limitText(group[0].limit))
		tables(w, o, group)
	}
	byLandscape(w, o, all)
	for _, recorded := range []bool{true, false} {
		title := map[bool]string{true: "recorded", false: "synthetic"}[recorded]
		isMeant := func(s series) bool { return s.landscape.Recorded == recorded }
		if group := together(o, all, isMeant); len(group) > 0 {
			fmt.Fprintf(w, "\nall %s landscapes\n", title)
			tables(w, o, group)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the tables: %w", err)
	}
	return nil
}

// together joins each strategy's campaigns on the selected landscapes.
func together(o options, all []series, isMeant func(series) bool) []series {
	var list []series
	for _, name := range o.strategies {
		sum := series{strategy: name}
		for _, s := range all {
			if s.strategy == name && isMeant(s) {
				sum.outcomes = append(sum.outcomes, s.outcomes...)
			}
		}
		if len(sum.outcomes) > 0 {
			list = append(list, sum)
		}
	}
	return list
}

// byLandscape prints a row for each landscape, with all limits together. It marks those on which
// the strategies' constants were chosen. Only the others show a strategy's result on a landscape
// without tuning.
func byLandscape(w io.Writer, o options, all []series) {
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.landscape.Name) {
			names = append(names, s.landscape.Name)
		}
	}
	fmt.Fprintf(w, "\neach landscape by itself, all limits\nlandscape\tconstants\tstrategy\tn%s\n", answerHead(o))
	for _, name := range names {
		note := "not chosen on it"
		if slices.Contains(o.tuned, name) {
			note = "chosen on it"
		}
		for _, s := range together(o, all, func(s series) bool { return s.landscape.Name == name }) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d%s\n", name, note, s.strategy, len(s.outcomes), s.answers(o))
		}
	}
}

// moments returns the times at which recommendations are judged, up to the budget.
func moments(budget time.Duration) []time.Duration {
	list := []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute}
	return slices.DeleteFunc(list, func(t time.Duration) bool { return t > budget })
}

// tables has a row for each strategy in each of its parts.
func tables(w io.Writer, o options, group []series) {
	fmt.Fprintf(w, "strategy\tn%s\n", answerHead(o))
	for _, s := range group {
		fmt.Fprintf(w, "%s\t%d%s\n", s.strategy, len(s.outcomes), s.answers(o))
	}
	fmt.Fprintln(w, "\nstrategy\tstays ≤ 2 % now: median\tp90"+
		"\tlaunches: median (mean)\ttrials\tpoints, %\tend, s: median (mean)\tby budget")
	for _, s := range group {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.strategy, s.stays(0.5), s.stays(0.9),
			s.middle("%.0f", func(o landscape.Outcome) float64 { return float64(o.Launches) }),
			s.middle("%.0f", func(o landscape.Outcome) float64 { return float64(o.Trials) }),
			s.middle("%.1f", func(o landscape.Outcome) float64 { return 100 * o.Measured }),
			s.middle("%.0f", func(o landscape.Outcome) float64 { return o.Elapsed.Seconds() }), s.byBudget())
	}
	claims(w, group)
}

// answerHead names the columns of answers: P(≤ 2/5 %) is the share of campaigns whose
// recommendation is within 2 or 5 % of the best.
func answerHead(o options) string {
	var head strings.Builder
	for _, hours := range []string{"now", "long"} {
		for i, t := range moments(o.budget) {
			title := fmt.Sprintf("%.0f s", t.Seconds())
			if i == 0 {
				title = hours + ": P(≤2/5 %) " + title
			}
			head.WriteString("\t" + title)
		}
		head.WriteString("\tfalse")
	}
	return head.String()
}

// answers returns the columns of answerHead.
func (s series) answers(o options) string {
	var row strings.Builder
	for _, h := range []landscape.Hours{landscape.Now, landscape.Long} {
		for _, t := range moments(o.budget) {
			fmt.Fprintf(&row, "\t%.2f/%.2f", s.within(t, 0.02, h), s.within(t, 0.05, h))
		}
		fmt.Fprintf(&row, "\t%.1f %%", 100*s.share(func(o landscape.Outcome) bool { return o.False[h] }))
	}
	return row.String()
}

// within returns the share of campaigns whose recommendation at a time has at most a regret.
func (s series) within(t time.Duration, regret float64, h landscape.Hours) float64 {
	return s.share(func(o landscape.Outcome) bool { return o.At(t, h) <= regret })
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

// stays prints a quantile of the time after which the regret stays within 2 % at the campaign's own
// time. It prints "never" if fewer campaigns reach that.
func (s series) stays(quantile float64) string {
	var times []float64
	for _, o := range s.outcomes {
		t, ok := o.StaysWithin(0.02, landscape.Now)
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
