package search

import (
	"fmt"
	"math"
	"slices"

	"tuner/measure"
)

// Goal defines the quality of a measurement: an objective to improve, within constraints.
type Goal struct {
	Objective   Objective
	Constraints []Constraint
	Price       float64 // of an hour of the machine, in any currency; 0: unknown, as is then the cost
}

// SeeksScale reports whether the objective is the scale of several models' traffic.
func (g Goal) SeeksScale() bool { return g.Objective.IsScale() }

// Metrics lists the metrics of the goal, each once, the objective's first.
func (g Goal) Metrics() []measure.Metric {
	var list []measure.Metric
	add := func(m measure.Metric) {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	for _, t := range g.Objective.Terms {
		add(t.Metric)
	}
	for _, c := range g.Constraints {
		add(c.Metric)
	}
	return list
}

// Percentiles lists the latency percentiles that the goal names, each once, the objective's first.
func (g Goal) Percentiles() []measure.Metric {
	return slices.DeleteFunc(g.Metrics(), func(m measure.Metric) bool {
		_, isPercentile := m.Quantile()
		return !isPercentile
	})
}

// Within lists the limits of the goodputs that the goal names in seconds, each once, the objective's
// first.
func (g Goal) Within() []float64 {
	var list []float64
	for _, m := range g.Metrics() {
		if limit, isGoodput := m.Within(); isGoodput {
			list = append(list, limit.Seconds())
		}
	}
	return list
}

// Latency returns the goal's latency percentile: the first that it names, else the 99th.
func (g Goal) Latency() measure.Metric {
	if named := g.Percentiles(); len(named) > 0 {
		return named[0]
	}
	return measure.LatencyP99
}

// Cost returns the cost of a million inferences at a throughput in inferences/s.
func (g Goal) Cost(throughput float64) float64 {
	const hour, million = 3600, 1e6
	return g.Price / (throughput * hour) * million
}

// Estimate returns a metric of a measurement, including the cost, with its 95 % interval; false if
// it is unknown.
func (g Goal) Estimate(m measure.Measurement, metric measure.Metric) (measure.Estimate, bool) {
	if metric != measure.Cost {
		return m.Estimate(metric)
	}
	rate, ok := m.Estimate(measure.Throughput)
	if !ok || rate.Value <= 0 || g.Price <= 0 {
		return measure.Estimate{}, false
	}
	const vague = 1e-3 // share of the throughput that keeps the cost's interval finite if the throughput's reaches 0
	return measure.Estimate{Value: g.Cost(rate.Value), Lo: g.Cost(rate.Hi), Hi: g.Cost(max(rate.Lo, vague*rate.Value))}, true
}

// Estimates returns the estimates of several metrics, without the unknown ones.
func (g Goal) Estimates(m measure.Measurement, metrics []measure.Metric) map[measure.Metric]measure.Estimate {
	estimates := m.Estimates(metrics)
	if slices.Contains(metrics, measure.Cost) {
		if e, ok := g.Estimate(m, measure.Cost); ok {
			estimates[measure.Cost] = e
		}
	}
	return estimates
}

// Value returns the value of Estimate without computing the interval.
func (g Goal) Value(m measure.Measurement, metric measure.Metric) (float64, bool) {
	if metric != measure.Cost {
		return m.Value(metric)
	}
	e, ok := g.Estimate(m, metric)
	return e.Value, ok
}

// Objective is a weighted sum of metrics on log scale: score = Σ weight · ±ln(value), + if higher
// is better. A single metric has weight 1. On log scale a factor counts the same from any starting
// point, which makes the ranking transitive.
type Objective struct {
	Terms []Term // at least one; weights > 0
}

// Term is one metric of an objective.
type Term struct {
	Metric measure.Metric `json:"metric"`                                 // the metric
	Weight float64        `json:"weight" jsonschema:"exclusiveMinimum=0"` // its weight, > 0: only the weights' ratios count
}

// Signed returns the weight, negative if lower is better. It is the change of the score when the
// metric's logarithm grows by 1.
func (t Term) Signed() float64 {
	if info, _ := t.Metric.Info(); info.HigherBetter {
		return t.Weight
	}
	return -t.Weight
}

// Gain returns the relative improvement from one score to another: the weighted geometric mean of
// the metrics' ratios, minus 1. It is 0.05 if a single metric improves by 5 %.
func (o Objective) Gain(from, to float64) float64 { return math.Exp((to-from)/o.Weight()) - 1 }

// IsScale reports whether it is the scale of several models' traffic. A scale is chosen, not measured, so
// ratios of scales have no interval. What is unknown lies between two scales that were tried.
func (o Objective) IsScale() bool { return len(o.Terms) == 1 && o.Terms[0].Metric == measure.Scale }

// Weight returns the sum of the weights: the factor between a difference of scores and the
// logarithm of a gain.
func (o Objective) Weight() float64 {
	sum := 0.0
	for _, t := range o.Terms {
		sum += t.Weight
	}
	return sum
}

// FallsWithLoad reports whether a metric falls as the load rises. A machine has the same price at
// any load, and more inferences share its idle power. All other metrics rise or stay.
func FallsWithLoad(m measure.Metric) bool { return m == measure.Cost || m == measure.Energy }

// IsMemory reports whether a metric hardly depends on the load.
func IsMemory(m measure.Metric) bool { return m == measure.Memory || m == measure.GPUMemory }

// Rises reports whether more load can improve the objective. Falls reports whether less load can.
// Throughput is better high and rises with the load. Metrics that are better low rise too, apart
// from those that FallsWithLoad names. A goodput rises until answers come too late, and then falls.
func (o Objective) Rises() bool { return slices.ContainsFunc(o.Terms, Term.improves) }

// Falls reports whether less load can improve the objective: see Rises.
func (o Objective) Falls() bool {
	return slices.ContainsFunc(o.Terms, func(t Term) bool { return !t.improves() || t.Metric.IsGoodput() })
}

// improves reports whether the metric gets better as the load rises.
func (t Term) improves() bool {
	info, _ := t.Metric.Info()
	return info.HigherBetter != FallsWithLoad(t.Metric)
}

// Constraint bounds a metric, in the metric's base unit. A bound that is absent does not
// apply. At least one is set in a goal.
type Constraint struct {
	Metric measure.Metric `json:"metric"`        // the limited metric
	Min    *float64       `json:"min,omitempty"` // least allowed value, in the metric's base unit
	Max    *float64       `json:"max,omitempty"` // largest allowed value, in the metric's base unit
}

// Violation returns the relative amount by which value misses the constraint: 0 if it satisfies it,
// 0.25 if it exceeds a maximum by a quarter.
func (c Constraint) Violation(value float64) float64 {
	switch {
	case c.Max != nil && value > *c.Max:
		return value/(*c.Max) - 1
	case c.Min != nil && value < *c.Min:
		return 1 - value/(*c.Min)
	}
	return 0
}

// Miss is a constraint that a measurement does not satisfy.
type Miss struct {
	Constraint Constraint
	Value      float64 // in the metric's base unit; 0 if it is missing
	Violation  float64 // relative; 1 if the value is missing
	Missing    bool    // the measurement lacks the metric, so it cannot be trusted
}

// String describes the miss for people: "latency_p99 is 61.2 ms, 22 % above the limit of 50.0 ms".
func (m Miss) String() string {
	metric, bound, side := m.Constraint.Metric, m.Constraint.Min, "below the least of"
	if m.Constraint.Max != nil && m.Value > *m.Constraint.Max {
		bound, side = m.Constraint.Max, "above the limit of"
	}
	switch {
	case m.Missing:
		return fmt.Sprintf("%s is unknown", metric)
	case bound == nil: // from the objective
		return fmt.Sprintf("%s is %s, which has no score", metric, metric.Format(m.Value))
	case m.Violation >= 1 && *bound > 0:
		return fmt.Sprintf("%s is %s, %.1f × the limit of %s", metric, metric.Format(m.Value), m.Value/(*bound), metric.Format(*bound))
	}
	return fmt.Sprintf("%s is %s, %.0f %% %s %s", metric, metric.Format(m.Value), m.Violation*100, side, metric.Format(*bound))
}

// Score returns the objective's value for a measurement; higher is better. It returns false if the
// trial failed, or if a metric of the objective is unknown or not positive, so that it has no
// logarithm.
func (g Goal) Score(m measure.Measurement) (float64, bool) {
	if m.Failure != nil {
		return 0, false
	}
	return g.ScoreOf(func(metric measure.Metric) (float64, bool) {
		return g.Value(m, metric)
	})
}

// ScoreOf is Score for figures of any source. value returns a metric's figure; false if it is
// unknown.
func (g Goal) ScoreOf(value func(measure.Metric) (float64, bool)) (float64, bool) {
	score := 0.0
	for _, t := range g.Objective.Terms {
		v, ok := value(t.Metric)
		if !ok || v <= 0 {
			return 0, false
		}
		score += t.Signed() * math.Log(v)
	}
	return score, true
}

// Unscored lists, as misses, the metrics of the objective that leave figures without a score (see
// ScoreOf): unknown ones, and those that are not positive. In a ranking they count like a
// constraint on an unknown metric.
func (g Goal) Unscored(value func(measure.Metric) (float64, bool)) []Miss {
	var misses []Miss
	for _, t := range g.Objective.Terms {
		if v, ok := value(t.Metric); !ok || v <= 0 {
			misses = append(misses, Miss{Constraint: Constraint{Metric: t.Metric}, Value: v, Violation: 1, Missing: !ok})
		}
	}
	return misses
}

// MostErrors is the share of failed requests that every goal tolerates.
const MostErrors = measure.MostErrors

// Misses lists the constraints that a measurement does not satisfy, in their order, and last the
// limit on failed requests that every goal has. A metric that the measurement lacks counts as
// missed.
func (g Goal) Misses(m measure.Measurement) []Miss {
	return g.MissesBy(m, nil)
}

// MissesBy is Misses with known estimates.
func (g Goal) MissesBy(m measure.Measurement, known map[measure.Metric]measure.Estimate) []Miss {
	return g.MissesOf(func(metric measure.Metric) (float64, bool) {
		if e, ok := known[metric]; ok {
			return e.Value, m.Failure == nil
		}
		x, ok := g.Value(m, metric)
		return x, ok && m.Failure == nil
	})
}

// MissesOf is Misses for figures of any source. value returns a metric's figure; false if it is
// unknown.
func (g Goal) MissesOf(value func(measure.Metric) (float64, bool)) []Miss {
	var misses []Miss
	for _, c := range g.Constraints {
		x, ok := value(c.Metric)
		switch v := c.Violation(x); {
		case !ok:
			misses = append(misses, Miss{Constraint: c, Violation: 1, Missing: true})
		case v > 0:
			misses = append(misses, Miss{Constraint: c, Value: x, Violation: v})
		}
	}
	limit := MostErrors
	c := Constraint{Metric: measure.ErrorRate, Max: &limit}
	if x, ok := value(measure.ErrorRate); ok && c.Violation(x) > 0 {
		misses = append(misses, Miss{Constraint: c, Value: x, Violation: c.Violation(x)})
	}
	return misses
}

// Satisfies reports whether a trial succeeded and its measurement satisfies every constraint.
func (g Goal) Satisfies(m measure.Measurement) bool { return m.Failure == nil && len(g.Misses(m)) == 0 }
