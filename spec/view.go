package spec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tuner/internal/words"
	"tuner/measure"
	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/goals"
)

// The serving modes; "" is neither: goal and loads are the profile's.
const (
	ModeOnline  = "online"  // someone waits for each answer: latency first, at a low load
	ModeOffline = "offline" // nobody waits: throughput, with any latency
)

func modes() []string { return []string{ModeOnline, ModeOffline} }

// The rankings of configurations.
const (
	RankScore    = "score"     // the score of the best load
	RankTop3Mean = "top3-mean" // the mean of the three highest throughputs over the loads
)

func ranks() []string { return []string{RankScore, RankTop3Mean} }

// At is the load at which configurations are compared. The zero value means each at its own best
// load.
type At struct {
	Load   measure.Load // this load, without a client batch; the zero value is none
	Lowest bool         // the lowest load at which the default was measured
	Each   bool         // the best load, and the best configuration at each load
}

// String returns the text in a file.
func (a At) String() string {
	switch {
	case a.Lowest:
		return "lowest"
	case a.Each:
		return "each"
	case a.Load.Concurrency > 0:
		return fmt.Sprintf("concurrency=%d", a.Load.Concurrency)
	case a.Load.RequestRate > 0:
		return "request_rate=" + strconv.FormatFloat(a.Load.RequestRate, 'g', -1, 64)
	case a.Load.Scale > 0:
		return "scale=" + strconv.FormatFloat(a.Load.Scale, 'g', -1, 64)
	}
	return "best"
}

const atAllowed = "best, lowest, each, concurrency=N, request_rate=N, of several models scale=N"

// ParseAt reads the output of String. ok is false for other texts.
func ParseAt(text string) (at At, ok bool) {
	name, number, _ := strings.Cut(text, "=")
	switch {
	case text == "best":
		return At{}, true
	case text == "lowest":
		return At{Lowest: true}, true
	case text == "each":
		return At{Each: true}, true
	case name == "concurrency":
		n, err := strconv.Atoi(number)
		return At{Load: measure.Load{Concurrency: n}}, err == nil && n > 0
	case name == "request_rate":
		rate, err := strconv.ParseFloat(number, 64)
		return At{Load: measure.Load{RequestRate: rate}}, err == nil && rate > 0 && !math.IsInf(rate, 0)
	case name == "scale":
		scale, err := strconv.ParseFloat(number, 64)
		return At{Load: measure.Load{Scale: scale}}, err == nil && scale > 0 && !math.IsInf(scale, 0)
	}
	return At{}, false
}

// atHint names the load that a text probably means; "" if none is similar.
func atHint(text string) string {
	name, number, isLevel := strings.Cut(text, "=")
	near := words.Nearest(name, []string{"best", "lowest", "each", "concurrency", "request_rate", "scale"})
	switch {
	case near == "" || near == name:
		return ""
	case isLevel:
		near += "=" + number
	}
	return fmt.Sprintf("did you mean %s?", near)
}

// at reads the load at which configurations are compared.
func at(v document.Value, target **At) {
	text, ok := v.Text()
	if !ok {
		return
	}
	at, ok := ParseAt(text)
	if !ok {
		v.Fail(document.Error{Problem: "is not a load to compare at", Allowed: atAllowed, Hint: atHint(text)})
		return
	}
	*target = &at
}

// Overrides are command-line values for fields of an analyze.yaml; "" and 0 keep the file's. Top is
// from 1, Confidence is a probability.
type Overrides struct {
	Mode, Rank, At string
	Top            int
	Confidence     float64
}

// With returns the analysis with the overrides. The error names every invalid flag.
func (a Analyze) With(o Overrides) (Analyze, error) {
	var problems []error
	word := func(flag, given string, allowed []string, target *string) {
		switch {
		case given == "":
		case slices.Contains(allowed, given):
			*target = given
		default:
			problems = append(problems, fmt.Errorf("--%s %q is not known; allowed: %s", flag, given, strings.Join(allowed, ", ")))
		}
	}
	word("mode", o.Mode, modes(), &a.Mode)
	word("rank", o.Rank, ranks(), &a.Rank)
	if o.At != "" {
		at, ok := ParseAt(o.At)
		if !ok {
			problem := fmt.Sprintf("--at %q is not a load to compare at; allowed: %s", o.At, atAllowed)
			if hint := atHint(o.At); hint != "" {
				problem += "\n    hint: " + hint
			}
			problems = append(problems, errors.New(problem))
		}
		a.At = &at
	}
	a.Top, a.Confidence = cmp.Or(o.Top, a.Top), cmp.Or(o.Confidence, a.Confidence)
	if o.Confidence != 0 && !goals.IsConfidence(o.Confidence) {
		problems = append(problems, fmt.Errorf("--confidence %g must be %s", o.Confidence, goals.ConfidenceAllowed))
	}
	if field, e := a.contradiction(); field != "" && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("--%s: %s; %s", field, e.Problem, e.Hint))
	}
	return a, errors.Join(problems...)
}

// contradiction finds a ranking that contradicts other settings, and returns its field; "" for
// none.
func (a Analyze) contradiction() (field string, e document.Error) {
	isThroughput := func(o search.Objective) bool { return len(o.Terms) == 1 && o.Terms[0].Metric == measure.Throughput }
	at := a.ComparedAt()
	switch {
	case a.Rank != RankTop3Mean:
		return "", document.Error{}
	case at.Lowest || at.Load != (measure.Load{}):
		return "rank", document.Error{Problem: RankTop3Mean + " is a mean over loads, and configurations are compared at one",
			Hint: "leave out one of rank and at (mode: online compares at the lowest load)"}
	case a.Objective != nil && !isThroughput(*a.Objective):
		return "rank", document.Error{Problem: RankTop3Mean + " is a mean of throughputs, and the objective is another", Hint: "leave out one of rank and objective"}
	}
	return "", document.Error{}
}

// ComparedAt returns the load at which configurations are compared, from the file or its mode.
func (a Analyze) ComparedAt() At {
	switch {
	case a.At != nil:
		return *a.At
	case a.Mode == ModeOnline:
		return At{Lowest: true}
	}
	return At{}
}

// objective returns the file's objective, which replaces the campaign's.
func (a Analyze) objective(campaign search.Goal, models []string) search.Objective {
	switch {
	case a.Objective != nil:
		return *a.Objective
	case a.Mode == ModeOnline && len(models) > 0:
		return goals.LatenciesOf(search.Goal{Objective: campaign.Objective, Constraints: a.constraints(campaign)}, models)
	case a.Mode == ModeOffline && len(models) > 0:
		return goals.ThroughputsOf(models)
	case a.Rank == RankTop3Mean || a.Mode == ModeOffline:
		return goals.Single(measure.Throughput)
	case a.Mode == ModeOnline:
		return goals.Single(a.latency(campaign))
	}
	return campaign.Objective
}

// latency returns the percentile in the effective constraints, or that of the campaign's objective,
// or the 99th.
func (a Analyze) latency(campaign search.Goal) measure.Metric {
	for _, c := range a.constraints(campaign) {
		if _, isPercentile := c.Metric.Quantile(); isPercentile {
			return c.Metric
		}
	}
	return search.Goal{Objective: campaign.Objective}.Latency()
}

// constraints returns the file's constraints, or else the campaign's. If nobody waits, only the
// file's own limits on latencies count.
func (a Analyze) constraints(campaign search.Goal) []search.Constraint {
	switch {
	case a.Constraints != nil:
		return slices.Clone(a.Constraints)
	case a.Mode == ModeOffline:
		return slices.DeleteFunc(slices.Clone(campaign.Constraints), func(c search.Constraint) bool {
			info, _ := c.Metric.Info()
			return info.Unit == measure.Seconds || c.Metric.IsGoodput()
		})
	}
	return campaign.Constraints
}
