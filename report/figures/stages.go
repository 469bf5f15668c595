package figures

import (
	"math"
	"strings"

	"tuner/analyze"
	"tuner/search/verdict"
)

// Stage is one of three curves over the load:
//
//   - the default,
//   - after stage 1, which changes precision, runtime, execution provider and session options,
//   - after both stages, which also change instances and batching.
type Stage struct {
	Title  string
	Tuned  int // number of tuning stages behind it, 0 (the default) to 2
	Config analyze.Config
	Same   string // title of an earlier stage with the same configuration; "" if it has a curve of its own
}

// Stages lists the known stages, with the points that were measured on the best one's server. The
// default comes first, even without figures. Of several models it is the only one, since their
// stages have no common throughput.
func Stages(r analyze.Result) []Stage {
	here := func(c analyze.Config) analyze.Config {
		c.Points = OnServerOf(r, First(r).Best, c.Points)
		return c
	}
	list := []Stage{{Title: "default", Config: here(r.Default())}}
	if len(r.Models) > 0 {
		return list
	}
	add := func(s Stage) {
		for _, before := range list {
			if before.Config.Name == s.Config.Name {
				s.Same = before.Title
				break
			}
		}
		list = append(list, s)
	}
	best, won := r.Winner()
	if one, ok := r.Config(r.FirstStage); ok {
		if won {
			one = noBetter(r, one, best)
		}
		add(Stage{Title: "after stage 1", Tuned: 1, Config: here(one)})
	}
	if won {
		add(Stage{Title: "after both stages", Tuned: 2, Config: here(best)})
	}
	return list
}

// noBetter returns the configuration after stage 1, at a load where it does not look better than
// the best. That is its own best load, unless it looks better there and is not recommended. It is
// not recommended if its probability is below the confidence, or if its gain is not shown. Best is
// nil if no load is left.
func noBetter(r analyze.Result, one, best analyze.Config) analyze.Config {
	if one.Name == best.Name || one.Best == nil || one.Score.Value <= best.Score.Value {
		return one
	}
	one.Best, one.Gain = nil, nil
	if !r.ByBestLoad() {
		return one
	}
	most := math.Inf(-1)
	for _, x := range r.Verdict.Choices {
		if x.Candidate.Key() != one.Candidate.Key() || !x.Keeps(r.Verdict.Confidence) || x.Score.Mean > best.Score.Value || x.Score.Mean <= most {
			continue
		}
		for i := range one.Points {
			if one.Points[i].Load == x.Load {
				most, one.Best, one.Gain = x.Score.Mean, &one.Points[i], x.Gain
			}
		}
	}
	return one
}

// ConfigText describes a configuration by its settings.
func ConfigText(c analyze.Config) string {
	switch {
	case c.Candidate.IsDefault() && len(c.Parts) > 0:
		var parts []string
		for _, p := range c.Parts {
			if !p.Calls {
				parts = append(parts, p.Model+" "+SetupText(p.Setup))
			}
		}
		return strings.Join(parts, "; ")
	case c.Candidate.IsDefault():
		return SetupText(c.Setup)
	}
	return c.Candidate.Describe()
}

// GainOf names the figure that a gain is of: the only metric of the objective, or "the objective".
func GainOf(r analyze.Result) string {
	if terms := r.Goal.Objective.Terms; len(terms) == 1 {
		return verdict.Label(terms[0].Metric)
	}
	return "the objective"
}
