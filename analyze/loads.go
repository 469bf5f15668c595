package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// LoadBest is the best configuration at one load.
type LoadBest struct {
	Load     measure.Load
	Measured int // number of configurations that were measured there
	// Best is the best configuration, ranked by this load alone. Its Points, Best, Score, Gain and
	// ties are about this load. Nil if none satisfies the constraints.
	Best *Config
	Base *Point // the default's figures; nil if it was not measured there
}

// LoadError means that configurations cannot be compared at a load, because nothing was measured
// there.
type LoadError struct {
	At   spec.At
	Have []measure.Load // measured loads, ascending
}

func (e *LoadError) Error() string {
	const most = 16
	have := make([]string, 0, most)
	for _, l := range e.Have {
		if len(have) == most {
			have = append(have, "…")
			break
		}
		have = append(have, spec.At{Load: l}.String())
	}
	return fmt.Sprintf("nothing was measured at %s; figures exist at %s; to measure it, add this level to the load in the profile",
		e.At, strings.Join(have, ", "))
}

// compareLoads orders loads by client batch, then by level. A recording may have both kinds of
// level: request rates come first.
func compareLoads(a, b measure.Load) int {
	return cmp.Or(cmp.Compare(a.BatchSize, b.BatchSize), cmp.Compare(a.Level(), b.Level()), cmp.Compare(a.Concurrency, b.Concurrency))
}

// isAt reports whether two loads are equal except for the client batch.
func isAt(a, b measure.Load) bool {
	return a.Concurrency == b.Concurrency && a.RequestRate == b.RequestRate && a.Scale == b.Scale
}

// comparedAt chooses the load at which all configurations are compared, from the measured ones. nil
// means each at its best load.
func comparedAt(at spec.At, all, ofDefault []measure.Load) (*measure.Load, error) {
	switch {
	case !at.Lowest && at.Load == (measure.Load{}):
		return nil, nil
	case len(all) == 0: // every trial failed, and the result reports that
		return nil, nil
	case at.Lowest && len(ofDefault) > 0:
		lowest := slices.MinFunc(ofDefault, compareLoads)
		return &lowest, nil
	case at.Lowest:
		lowest := slices.MinFunc(all, compareLoads)
		return &lowest, nil
	case at.Load.Scale > 0 && isAsSaid(all, at.Load) >= 0:
		return &all[isAsSaid(all, at.Load)], nil
	case !slices.Contains(all, at.Load):
		have := slices.SortedFunc(slices.Values(all), compareLoads)
		return nil, &LoadError{at, slices.Compact(have)}
	}
	return &at.Load, nil
}

// isAsSaid returns the index of the first load that people are told as they are told another one; −1
// without any. A scale is told with fewer digits than it has.
func isAsSaid(all []measure.Load, load measure.Load) int {
	return slices.IndexFunc(all, func(l measure.Load) bool { return l.String() == load.String() })
}

// measuredLoads returns the loads of trials that have figures, without client batches and mixes: of all
// configurations, and of the default.
func measuredLoads(events []search.Event) (all, ofDefault []measure.Load) {
	for _, e := range events {
		if e.Measurement.Failure != nil || len(e.Measurement.Windows) == 0 {
			continue
		}
		load := e.Trial.Load
		load.BatchSize, load.Mix = 0, ""
		all = append(all, load)
		if e.Trial.Candidate.IsDefault() {
			ofDefault = append(ofDefault, load)
		}
	}
	return all, ofDefault
}

// bestAtLoads finds the best configuration at each measured load, ascending. It leaves out
// configurations outside the space. see returns the view at one load.
func bestAtLoads(configs []Config, see func(measure.Load) view) []LoadBest {
	configs = slices.DeleteFunc(slices.Clone(configs), func(c Config) bool { return c.CurveOnly })
	measured := map[measure.Load]int{}
	for _, c := range configs {
		for _, p := range c.Points {
			measured[p.Load]++
		}
	}
	var list []LoadBest
	for load, n := range measured {
		there := see(load).ordered(at(configs, load))
		l := LoadBest{Load: load, Measured: n, Base: Result{Configs: there}.Default().Best}
		if there[0].mayWin() {
			l.Best = &there[0]
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b LoadBest) int { return compareLoads(a.Load, b.Load) })
	return list
}

// at returns configurations with only the point at one load.
func at(configs []Config, load measure.Load) []Config {
	list := slices.Clone(configs)
	for i, c := range list {
		list[i].Points = slices.DeleteFunc(slices.Clone(c.Points), func(p Point) bool { return p.Load != load })
		list[i].Best, list[i].Choice, list[i].Gain, list[i].TiedWith, list[i].Rank = nil, nil, nil, nil, 0
	}
	return list
}
