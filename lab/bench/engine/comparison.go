package main

import (
	"fmt"
	"strings"

	"tuner/lab/bench/sidebyside"
	"tuner/measure/stats"
)

// comparison is one line of a table: one figure of both sides in every round.
type comparison struct {
	Name   string
	Unit   string
	Rounds []round
	Of     func(figures) float64 // above zero
	Scale  float64               // factor that converts the figure to Unit
	Goal   string                // of the ratio; "" for none
}

// kind returns the figure that a line is about: what stands behind the last colon of its name.
func (c comparison) kind() string { return c.Name[strings.LastIndex(c.Name, ": ")+2:] }

// values lists the figure of both sides, round by round.
func (c comparison) values() (tuner, triton []float64) {
	for _, r := range c.Rounds {
		tuner = append(tuner, c.Scale*c.Of(r.Tuner))
		triton = append(triton, c.Scale*c.Of(r.Triton))
	}
	return tuner, triton
}

// noise returns two disturbances of the rounds. foreign is the median share of the machine that
// other processes took. idle is the median number of cores that the idle server used.
func (c comparison) noise() (foreign, idle float64) {
	var f, i []float64
	for _, r := range c.Rounds {
		f = append(f, (r.Tuner.Foreign+r.Triton.Foreign)/2)
		i = append(i, (r.Tuner.Idle+r.Triton.Idle)/2)
	}
	return stats.Median(f), stats.Median(i)
}

// line returns the comparison's line of the table.
func (c comparison) line() sidebyside.Line {
	tuner, triton := c.values()
	foreign, idle := c.noise()
	return sidebyside.Line{
		Name: c.Name, Unit: c.Unit, Ours: tuner, Theirs: triton, Goal: c.Goal,
		Disturbed: []string{fmt.Sprintf("%.0f %%", 100*foreign), fmt.Sprintf("%.2f", idle)},
	}
}

// report prints comparisons, if there are any, as a table, and records them.
func (b *bench) report(title string, list []comparison) error {
	var lines []sidebyside.Line
	for _, c := range list {
		lines = append(lines, c.line())
	}
	return sidebyside.Table{
		Benchmark: "Peers", Ours: sidebyside.Side{Name: "tuner", Key: "tuner"}, Theirs: sidebyside.Side{Name: "Triton", Key: "triton"},
		Disturbances: []string{"foreign CPU", "idle server, cores"}, Out: b.out, Record: b.record,
	}.Report(title, lines)
}

// The figures of comparisons.

func throughput(f figures) float64 { return f.Throughput }

func p50(f figures) float64 { return f.P50 }

func p99(f figures) float64 { return f.P99 }

func p999(f figures) float64 { return f.P999 }

func cpuPerThousand(f figures) float64 { return f.CPU }

func meanBatch(f figures) float64 { return f.Batch }

func infer(f figures) float64 { return f.Infer }

func memory(f figures) float64 { return f.Memory }

func around(f figures) float64 { return f.Around }

// shortestAdded replaces an added latency that is not above zero, when the model's time exceeds the
// latency. So ratios stay defined.
const shortestAdded = 1e-6

// added returns the median latency minus the model's mean time. A disturbed machine lengthens the
// mean more.
func added(f figures) float64 { return max(shortestAdded, f.P50-f.Infer) }

// addedMean returns the mean latency minus the model's time. Both means include the same
// disturbances of the model's runs, so these cancel out.
func addedMean(f figures) float64 { return max(shortestAdded, f.Mean-f.Infer) }
