// Package adaptive says which configuration of a model serves which rate of requests: a table of
// latencies, and the rule that changes the configuration.
//
// `tuner plan --format adaptive` writes the table, and `tuner serve --adaptive` follows it. The rule is a
// function of the counted requests. The package measures nothing and loads nothing.
package adaptive

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Format is the version of a table's JSON form. It grows when a field changes its meaning or disappears.
const Format = 1

// Table has the configurations of a model that a server may change between. They serve the same model
// file, so that answers do not depend on which one serves. Times are seconds, rates are requests/s of a
// server.
type Table struct {
	Format  int    `json:"format" jsonschema:"const=1"` // version of this format: 1
	Model   string `json:"model"`                       // served name of the model
	Pays    bool   `json:"pays"`                        // whether changing pays; a server changes nothing if not
	Summary string `json:"summary"`                     // why it pays, or why not
	// quantile of the latencies
	Quantile float64 `json:"quantile" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1"`
	// gain over the best configuration that does not change, over the requests of the traffic: the
	// geometric mean of the ratio of the latencies
	Gain float64 `json:"gain" jsonschema:"minimum=0"`
	// ratio of the quantiles over all requests of the traffic
	GainOfAll      float64         `json:"gain_of_all" jsonschema:"minimum=0"`
	Static         string          `json:"static"`                                 // name of the best configuration that does not change; the server begins with it
	Rates          []float64       `json:"rates" jsonschema:"minItems=1"`          // ascending
	Configurations []Configuration `json:"configurations" jsonschema:"minItems=1"` // configurations to choose from
}

// Configuration is one of a table.
type Configuration struct {
	Name   string          `json:"name"`   // its name in the campaign
	Setup  string          `json:"setup"`  // its setup, for people
	Config json.RawMessage `json:"config"` // complete configuration of the model, as Triton's JSON
	// time that a server takes to change from the plan's configuration to it, or back; 0: only the batching of requests changes
	Load float64 `json:"load" jsonschema:"minimum=0"`
	// latencies by rate; without the rates beyond its capacity
	Latencies []Latency `json:"latencies"`
}

// Latency is a quantile of the latency at a rate, with its 95 % interval.
type Latency struct {
	Value float64 `json:"value" jsonschema:"exclusiveMinimum=0"` // the quantile
	Low   float64 `json:"low" jsonschema:"exclusiveMinimum=0"`   // lower end of its interval
	High  float64 `json:"high" jsonschema:"exclusiveMinimum=0"`  // upper end of its interval
}

// Bounds of a table.
const (
	mostConfigurations = 64
	mostRates          = 1000
	mostRate           = 1e7
	longestLoad        = 3600
)

// Parse reads a table's JSON form. name is the file's, for errors. It refuses what no table has.
func Parse(name string, text []byte) (Table, error) {
	var t Table
	if err := json.Unmarshal(text, &t); err != nil {
		return Table{}, fmt.Errorf("%s is no table of configurations: %w; 'tuner plan --format adaptive' writes one", name, err)
	}
	if t.Format != Format {
		return Table{}, fmt.Errorf("%s: format is %d; this version of tuner reads format %d", name, t.Format, Format)
	}
	switch {
	case t.Model == "":
		return Table{}, fmt.Errorf("%s: model: is empty", name)
	case len(t.Configurations) < 1 || len(t.Configurations) > mostConfigurations:
		return Table{}, fmt.Errorf("%s: configurations: there are %d; allowed are 1 to %d", name, len(t.Configurations), mostConfigurations)
	case len(t.Rates) < 1 || len(t.Rates) > mostRates:
		return Table{}, fmt.Errorf("%s: rates: there are %d; allowed are 1 to %d", name, len(t.Rates), mostRates)
	case t.index(t.Static) < 0:
		return Table{}, fmt.Errorf("%s: static: there is no configuration %q", name, t.Static)
	}
	for i, rate := range t.Rates {
		if !(rate > 0 && rate <= mostRate) || i > 0 && rate <= t.Rates[i-1] {
			return Table{}, fmt.Errorf("%s: rates[%d]: %g; rates must ascend from above 0 to %g", name, i, rate, float64(mostRate))
		}
	}
	for i, c := range t.Configurations {
		if err := t.check(c); err != nil {
			return Table{}, fmt.Errorf("%s: configurations[%d]: %w", name, i, err)
		}
	}
	return t, nil
}

func (t *Table) check(c Configuration) error {
	switch {
	case len(c.Latencies) > len(t.Rates):
		return fmt.Errorf("latencies: there are %d for %d rates", len(c.Latencies), len(t.Rates))
	case !(c.Load >= 0 && c.Load <= longestLoad):
		return fmt.Errorf("load: %g s; it must be from 0 to %d", c.Load, longestLoad)
	case !json.Valid(c.Config):
		return fmt.Errorf("config: is no JSON")
	}
	for k, l := range c.Latencies {
		if !(l.Low > 0 && l.Low <= l.Value && l.Value <= l.High && !math.IsInf(l.High, 1)) {
			return fmt.Errorf("latencies[%d]: %g [%g, %g] is no interval", k, l.Value, l.Low, l.High)
		}
	}
	return nil
}

// index returns the place of a configuration by its name, −1 without one.
func (t *Table) index(name string) int {
	return slices.IndexFunc(t.Configurations, func(c Configuration) bool { return c.Name == name })
}

// At returns the latency of a configuration at a rate, linear between the rates. Below the lowest rate it
// is that of the lowest. Beyond the capacity all three are infinite.
func (t *Table) At(c int, rate float64) Latency {
	list := t.Configurations[c].Latencies
	i, exact := slices.BinarySearch(t.Rates, rate)
	switch {
	case i == 0 && len(list) > 0:
		return list[0]
	case i >= len(list):
		return Latency{math.Inf(1), math.Inf(1), math.Inf(1)}
	case exact:
		return list[i]
	}
	part := (rate - t.Rates[i-1]) / (t.Rates[i] - t.Rates[i-1])
	between := func(a, b float64) float64 { return a + (b-a)*part }
	return Latency{between(list[i-1].Value, list[i].Value), between(list[i-1].Low, list[i].Low), between(list[i-1].High, list[i].High)}
}

// Better returns the configuration to serve rates from low to high in place of another one: the one with
// the shortest latency in the middle, of those whose latency is certainly shorter at all of these rates.
// That is, the upper end of its interval lies below the lower end of the other's. Otherwise it returns the
// other one. isOut tells configurations that it must not return; nil without any.
//
// Rates beyond the capacities of all count as the highest rate that one of them serves. So the server does not
// stay with a weak configuration under more load than any can serve.
func (t *Table) Better(than int, low, high float64, isOut func(c int) bool) int {
	highest := t.highest()
	low, high = min(low, highest), min(high, highest)
	rates := []float64{low, high}
	for _, r := range t.Rates {
		if r > low && r < high {
			rates = append(rates, r)
		}
	}
	middle := (low + high) / 2
	best := than
	for c := range t.Configurations {
		if c == than || isOut != nil && isOut(c) || t.At(c, middle).Value >= t.At(best, middle).Value {
			continue
		}
		if !slices.ContainsFunc(rates, func(r float64) bool { return !(t.At(c, r).High < t.At(than, r).Low) }) {
			best = c
		}
	}
	return best
}

// highest returns the highest rate that a configuration serves; the lowest rate if none serves any.
func (t *Table) highest() float64 {
	served := 1
	for _, c := range t.Configurations {
		served = max(served, len(c.Latencies))
	}
	return t.Rates[served-1]
}

// loads returns the time that a server takes to change from a configuration to another one, at most: where one of them
// has another model session than the plan's, the change loads the model, in either direction.
func (t *Table) loads(from, to int) time.Duration {
	return time.Duration(max(t.Configurations[from].Load, t.Configurations[to].Load) * float64(time.Second))
}
