package data

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/ort/sessionoption"
	"tuner/report/figures"
	"tuner/search"
	"tuner/spec/knobs"
)

// The names of columns are part of the interface: other programs use them
// (docs/reference/data-columns.md). A column is added, but not renamed.
const (
	knobPrefix = "knob_" // before the name of a knob
	loEnding   = "_lo"   // after the name of a metric
	hiEnding   = "_hi"
)

const seconds = "s"

// known makes a column whose values need no checks.
func known(name string, k kind, unit, about string, of func(row) any) column {
	return column{name, k, unit, about, func(x row) (any, error) { return of(x), nil }}
}

// someText, someWhole and some return nil for "" and for 0, which stand for what is unknown.
func someText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func someWhole(n int) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}

func some(v float64) any {
	if v == 0 {
		return nil
	}
	return v
}

func someTime(d time.Duration) any { return some(d.Seconds()) }

// identity says which configuration a row is about.
func identity() []column {
	return []column{
		known("model", text, "", "The name under which the model is served.", func(x row) any { return x.result.Header.Model }),
		known("configuration", text, "", "The configuration's name, as in result.json.", func(x row) any { return x.config.Name }),
		known("default", flag, "", "It is the default configuration.", func(x row) any { return x.config.Candidate.IsDefault() }),
		known("rank", whole, "", "The configuration's rank from 1. Empty if nothing was measured.", func(x row) any { return someWhole(x.config.Rank) }),
		known("server", text, "", "The measured server. Empty in an import.", func(x row) any {
			if x.result.Recorded != "" {
				return nil
			}
			return x.result.Server(analyze.Point{Confirmed: x.isFinal})
		}),
	}
}

func pointColumns() []column {
	return []column{
		known("phase", text, "", "`final`: the figures are those of fresh launches. `search`: those of all other trials. A confirmed point has a row of each.",
			func(x row) any { return x.phase }),
		known("ranks", flag, "", "The row has the figures that rank the configuration.", func(x row) any { return x.ranks }),
		known("satisfies", flag, "", "The figures satisfy each constraint, and are likely to satisfy all at once.", func(x row) any { return x.sample.Satisfies() }),
		known("misses", text, "", "The constraints that are missed, and by how much, with `; ` between them.", func(x row) any {
			var texts []string
			for _, m := range x.sample.Misses {
				texts = append(texts, m.String())
			}
			return someText(strings.Join(texts, "; "))
		}),
	}
}

func trialColumns() []column {
	return []column{
		known("trial", whole, "", "Number of the trial, from 1, in the order of the campaign.", func(x row) any { return int64(x.ordinal) }),
		known("phase", text, "", "`default`, `search`, `final`, `curve`, or `service` for a failed measurement of batches.", func(x row) any { return x.phase }),
		known("fresh", flag, "", "The engine was launched for this trial.", func(x row) any { return x.event.Trial.Fresh }),
		known("block", whole, "", "Number of the block whose trials took turns. Empty if the trial was measured alone.", func(x row) any { return someWhole(x.event.Trial.Block) }),
		known("launch", whole, "", "Number of the engine launch within the campaign, from 1.", func(x row) any { return someWhole(x.event.Measurement.Launch) }),
		known("cut", flag, "", "The last window ended early, since it could not change the result.", func(x row) any { return x.event.Measurement.Cut }),
		known("failure_stage", text, "", "The part of the trial that failed. Empty if none did.", func(x row) any {
			if f := x.event.Measurement.Failure; f != nil {
				return string(f.Stage)
			}
			return nil
		}),
		known("failure", text, "", "Why the trial failed.", func(x row) any {
			if f := x.event.Measurement.Failure; f != nil {
				return f.Reason
			}
			return nil
		}),
	}
}

// knobColumns lists the knobs with names of their own, and those that a configuration sets besides.
func knobColumns(r analyze.Result) []column {
	names := knobs.Names()
	if len(r.Served()) > 0 {
		names = namesOfSeveral(r)
	}
	others := map[string]bool{}
	for _, c := range r.Configs {
		for _, s := range c.Candidate.Settings() {
			if !slices.Contains(names, s.Knob) {
				others[s.Knob] = true
			}
		}
	}
	var list []column
	for _, name := range slices.Concat(names, slices.Sorted(maps.Keys(others))) {
		list = append(list, knobColumn(name))
	}
	return list
}

func knobColumn(name string) column {
	c := column{name: knobPrefix + name, about: "The knob `" + name + "`."}
	_, knob := search.SplitKnob(name)
	option, isOption := sessionoption.Find(knob)
	switch {
	case knob == search.KnobMaxQueueDelay:
		c.kind, c.unit = number, seconds
	case knob == search.KnobInstanceCount, knob == search.KnobMaxBatchSize, isOption && option.Kind == sessionoption.Threads:
		c.kind = whole
	case isOption && option.Kind == sessionoption.Switch:
		c.kind = flag
	}
	c.of = func(x row) (any, error) {
		v, set := x.knobs[name]
		if !set {
			return nil, nil
		}
		cell, err := knobCell(c, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", x.config.Name, name, err)
		}
		return cell, nil
	}
	return c
}

// knobCell returns a knob's value in the kind of its column.
func knobCell(c column, v search.Value) (any, error) {
	switch c.kind {
	case number:
		d, err := v.Duration()
		return d.Seconds(), err
	case whole:
		n, err := v.Int()
		return int64(n), err
	case flag:
		return v.Bool()
	}
	return string(v), nil
}

func loadColumns(r analyze.Result) []column {
	if len(r.Models) > 0 {
		return loadColumnsOfSeveral(r)
	}
	return []column{
		known("concurrency", whole, "requests", "Requests in flight. Empty under a request rate.", func(x row) any { return someWhole(x.load.Concurrency) }),
		known("request_rate", number, "requests/s", "Requests per second. Empty under a concurrency.", func(x row) any { return some(x.load.RequestRate) }),
		known("batch_size", whole, "inferences", "Inferences in one request.", func(x row) any { return someWhole(x.load.BatchSize) }),
	}
}

// metricsOf lists the metrics of every table, then the further ones of the goal.
func metricsOf(r analyze.Result) []measure.Metric {
	list := slices.Concat(measure.Metrics(), metricsOfSeveral(r))
	for _, m := range r.Goal.Metrics() {
		if !slices.Contains(list, m) && m != measure.Scale { // a column of the load
			list = append(list, m)
		}
	}
	return list
}

// figureColumns has three columns for each metric: the figure and both ends of its interval. They
// have the digits of result.json.
func figureColumns(r analyze.Result) []column {
	var list []column
	for _, m := range metricsOf(r) {
		info, _ := m.Info()
		figure := func(ending string, of func(value, lo, hi float64) float64) {
			list = append(list, known(string(m)+ending, number, string(info.Unit), m.About(), func(x row) any {
				e, isKnown := x.sample.Values[m]
				value, lo, hi := figures.Significant(e.Value), figures.Significant(e.Lo), figures.Significant(e.Hi)
				if !isKnown || ending != "" && lo == value && hi == value { // no interval is known
					return nil
				}
				return of(value, lo, hi)
			}))
		}
		figure("", func(value, _, _ float64) float64 { return value })
		figure(loEnding, func(_, lo, _ float64) float64 { return lo })
		figure(hiEnding, func(_, _, hi float64) float64 { return hi })
	}
	return list
}

// countColumns says what the figures rest on. All are empty for a failed trial and in an import.
func countColumns() []column {
	count := func(name, unit, about string, of func(analyze.Sample) int) column {
		return known(name, whole, unit, about, func(x row) any {
			if x.sample.Windows == 0 {
				return nil
			}
			return int64(of(x.sample))
		})
	}
	return []column{
		count("windows", "windows", "Measurement windows.", func(s analyze.Sample) int { return s.Windows }),
		count("launches", "launches", "Engine launches behind the figures.", func(s analyze.Sample) int { return s.Launches }),
		count("requests", "requests", "Requests that were answered without error.", func(s analyze.Sample) int { return s.Requests }),
		count("errors", "requests", "Requests that failed.", func(s analyze.Sample) int { return s.Errors }),
		known("mean_batch", number, "inferences", "Mean size of the executed batches. Empty without the server's statistics.", func(x row) any { return some(math.Round(x.sample.MeanBatch*1000) / 1000) }),
		known("window_time", number, seconds, "Length of all windows together.", func(x row) any { return someTime(x.sample.WindowTime) }),
		known("flags", text, "", "Reasons to trust the figures less, with `; ` between them.", func(x row) any {
			var texts []string
			for _, f := range x.sample.Flags {
				texts = append(texts, string(f))
			}
			return someText(strings.Join(texts, "; "))
		}),
	}
}

// timeColumns says when a trial was measured, and what else took time.
func timeColumns() []column {
	return []column{
		known("elapsed", number, seconds, "From the campaign's start to the end of the trial, without pauses between resumed runs.", func(x row) any { return someTime(x.event.Elapsed) }),
		known("launch_time", number, seconds, "Start of the engine process until it was ready. Empty if it ran already.", func(x row) any { return someTime(x.event.Measurement.Times.Launch) }),
		known("reconfigure_time", number, seconds, "Loading of another configuration into a running engine. Empty without one.", func(x row) any { return someTime(x.event.Measurement.Times.Reconfigure) }),
		known("warm_up_time", number, seconds, "Load before the first window.", func(x row) any { return someTime(x.event.Measurement.Times.WarmUp) }),
	}
}
