package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"tuner/lab/landscape"
	"tuner/measure/stats"
)

// A change of a strategy is judged by pairs: campaigns with one seed, before and after it. They meet
// the same machine, so that their difference has less noise than two shares.

// campaign identifies a campaign.
type campaign struct {
	Landscape, Limit, Strategy string
	Seed                       int
}

// kept has the figures of a campaign that a file keeps.
type kept struct {
	campaign
	Regret []float64 // now, at each of the moments of its budget
	False  bool      // now
}

// outline returns what is kept of all campaigns.
func outline(all []series, budget time.Duration) []kept {
	var list []kept
	for _, s := range all {
		for i, o := range s.outcomes {
			k := kept{campaign{s.landscape.Name, s.limit.Name, s.strategy, i + 1}, nil, o.False[landscape.Now]}
			for _, t := range moments(budget) {
				k.Regret = append(k.Regret, o.At(t, landscape.Now))
			}
			list = append(list, k)
		}
	}
	return list
}

// save writes campaigns to a file.
func save(path string, list []kept) error {
	data, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("cannot save the campaigns: %w", err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("cannot save the campaigns: %w", err)
	}
	return nil
}

// pair has a campaign before and after a change.
type pair struct{ before, after kept }

// read returns the campaigns of a file.
func read(path string) ([]kept, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-against: %w", err)
	}
	var list []kept
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("-against %q: %w", path, err)
	}
	return list, nil
}

// pairsOf pairs campaigns with earlier ones. It leaves out those that are in one list alone.
func pairsOf(earlier, list []kept) ([]pair, error) {
	before := map[campaign]kept{}
	for _, k := range earlier {
		before[k.campaign] = k
	}
	var pairs []pair
	for _, k := range list {
		b, ok := before[k.campaign]
		if !ok {
			continue
		}
		if len(b.Regret) != len(k.Regret) {
			return nil, fmt.Errorf("-against: %s, %s, seed %d had another budget", k.Landscape, k.Limit, k.Seed)
		}
		pairs = append(pairs, pair{b, k})
	}
	return pairs, nil
}

// differences prints P(≤ 2 %) now before and after, by strategy: of each landscape and of all.
func differences(out io.Writer, budget time.Duration, strategies []string, pairs []pair) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nin pairs: P(≤ 2 %) now before → after, and the difference with its 95 % interval\nstrategy\tlandscape\tpairs")
	for _, t := range moments(budget) {
		fmt.Fprintf(w, "\t%.0f s", t.Seconds())
	}
	fmt.Fprintln(w, "\tfalse")
	for _, name := range strategies {
		var landscapes []string
		by := map[string][]pair{}
		for _, p := range pairs {
			if p.after.Strategy != name {
				continue
			}
			if by[p.after.Landscape] == nil {
				landscapes = append(landscapes, p.after.Landscape)
			}
			by[p.after.Landscape] = append(by[p.after.Landscape], p)
			by[""] = append(by[""], p)
		}
		for _, l := range landscapes {
			fmt.Fprintf(w, "%s\t%s\t%s\n", name, l, differenceOf(by[l]))
		}
		if len(landscapes) > 1 {
			fmt.Fprintf(w, "%s\tall\t%s\n", name, differenceOf(by[""]))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the differences: %w", err)
	}
	return nil
}

// differenceOf returns the columns of some pairs. There is at least one.
func differenceOf(pairs []pair) string {
	text := fmt.Sprint(len(pairs))
	for i := range pairs[0].after.Regret {
		text += "\t" + change(pairs, func(k kept) bool { return k.Regret[i] <= wrong })
	}
	return text + "\t" + change(pairs, func(k kept) bool { return k.False })
}

// change prints the share of campaigns for which `is` holds, before and after.
func change(pairs []pair, is func(kept) bool) string {
	share := func(k kept) float64 {
		if is(k) {
			return 1
		}
		return 0
	}
	var before, after, both []float64
	for _, p := range pairs {
		a, b := share(p.before), share(p.after)
		before, after, both = append(before, a), append(after, b), append(both, b-a)
	}
	d := stats.Mean(both)
	return fmt.Sprintf("%.2f → %.2f: %+.3f [%+.3f, %+.3f]", stats.Mean(before).Value, stats.Mean(after).Value, d.Value, d.Lo, d.Hi)
}
