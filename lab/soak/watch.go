package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"tuner/engine/api"
	"tuner/measure/stats"
	"tuner/runner"
)

const (
	lookEvery  = 5 * time.Second
	reportAt   = time.Minute
	fewSamples = 12 // too few to distinguish growth from chance

	// A run shorter than this cannot have enough readings in its last two thirds; a longer one
	// must.
	shortRun = 2 * fewSamples * lookEvery
)

// watch follows the resources of the engine's process.
type watch struct {
	name    string // before each line of the verdict; "": the main engine, whose figures are printed each minute
	pid     int
	metrics string // address
	tally   *tally
	out     io.Writer
	series  map[string][]float64
	lasted  time.Duration // of follow
}

// quantity is a resource that must not grow.
type quantity struct {
	name  string
	unit  string
	scale float64 // of the printed value
	width int     // of its column
	slack float64 // growth over the observed time that does not count as a leak, in its own unit
	share float64 // the same as a share of its median
	read  func(figures) float64
}

// figures are the values of the engine's metrics without labels by name, and its threads: the
// metrics count Go's threads only.
type figures map[string]float64

const threads = "threads"

// quantities lists what is watched. The resident memory contains the garbage of Go's heap, which
// grows to several times what lives and is collected again. What lives changes with the siege. The
// memory of C and C++ code changes less, and shows a smaller growth.
func quantities() []quantity {
	const mebi = 1 << 20
	const resident, live = "process_resident_memory_bytes", "go_gc_heap_live_bytes"
	return []quantity{
		{"resident memory", "MiB", mebi, 9, 24 * mebi, 0.25, func(f figures) float64 { return f[resident] }},
		{"live heap", "MiB", mebi, 9, 24 * mebi, 0.25, func(f figures) float64 { return f[live] }},
		{"native memory", "MiB", mebi, 9, 24 * mebi, 0.05, func(f figures) float64 {
			return f[resident] - (f["go_memstats_sys_bytes"] - f["go_memstats_heap_released_bytes"])
		}},
		{"descriptors", "", 1, 6, 16, 0.1, func(f figures) float64 { return f["process_open_fds"] }},
		{"threads", "", 1, 8, 8, 0.1, func(f figures) float64 { return f[threads] }},
		{"goroutines", "", 1, 10, 32, 0.1, func(f figures) float64 { return f["go_goroutines"] }},
	}
}

func newWatch(name string, engine runner.Engine, t *tally, out io.Writer) *watch {
	w := &watch{name: name, tally: t, out: out, series: map[string][]float64{}}
	if engine != nil {
		w.pid, w.metrics = engine.PID(), engine.Address().Metrics
	}
	return w
}

// follow reads the process until ctx ends, and prints a line each minute.
func (w *watch) follow(ctx context.Context) {
	if w.name == "" {
		w.head()
	}
	begin := time.Now()
	defer func() { w.lasted = time.Since(begin) }()
	next := begin.Add(reportAt)
	for ctx.Err() == nil {
		pause(ctx, lookEvery)
		if ctx.Err() == nil {
			w.look(ctx)
		}
		if now := time.Now(); now.After(next) || ctx.Err() != nil {
			if w.name == "" {
				w.report(now.Sub(begin))
			}
			next = next.Add(reportAt)
		}
	}
}

func (w *watch) head() {
	fmt.Fprintf(w.out, "%8s %9s %9s %6s %5s %6s %6s %9s %9s %8s %9s %9s %9s %6s %8s %10s\n", "time", "asked", "checked", "absent", "lost", "wrong",
		"failed", "nonsense", "vanished", "reloads", "RSS MiB", "live", "native", "fds", "threads", "goroutines")
}

var metric = regexp.MustCompile(`(?m)^(\w+) (\S+)$`)

// look adds a value to each series. It adds none while the engine's metrics cannot be read.
func (w *watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	page, err := api.Metrics(ctx, w.metrics)
	tasks, unread := os.ReadDir(fmt.Sprintf("/proc/%d/task", w.pid))
	if err != nil || unread != nil {
		return
	}
	seen := figures{threads: float64(len(tasks))}
	for _, match := range metric.FindAllSubmatch(page, -1) {
		seen[string(match[1])], _ = strconv.ParseFloat(string(match[2]), 64) // the engine writes numbers
	}
	for _, q := range quantities() {
		w.series[q.name] = append(w.series[q.name], q.read(seen))
	}
}

func (w *watch) report(elapsed time.Duration) {
	c := w.tally.now()
	fmt.Fprintf(w.out, "%8s %9d %9d %6d %5d %6d %6d %9d %9d %8d", elapsed.Round(time.Second), c.asked, c.checked, c.absent, c.lost, c.wrong,
		c.failed, c.nonsense, c.vanished, c.reloads)
	for _, q := range quantities() {
		if values := w.series[q.name]; len(values) > 0 {
			fmt.Fprintf(w.out, " %*.0f", q.width, values[len(values)-1]/q.scale)
		}
	}
	fmt.Fprintln(w.out)
}

// verdict prints the course of each quantity after the first third of the time. It returns an error
// if one grew, or has too few readings.
func (w *watch) verdict() error {
	var faults []error
	for _, q := range quantities() {
		values := w.series[q.name]
		values = values[len(values)/3:]
		if len(values) < fewSamples {
			few := fmt.Errorf("%s%s: %d readings are too few to tell whether it grows", w.name, q.name, len(values))
			fmt.Fprintln(w.out, few)
			if w.lasted >= shortRun {
				faults = append(faults, few)
			}
			continue
		}
		slope, middle := stats.Slope(values), stats.Median(values)
		steps := float64(len(values) - 1)
		growth, most := slope.Value*steps, max(q.slack, q.share*middle)
		fmt.Fprintf(w.out, "%s%s: median %.0f, highest %.0f %s, growth %+.1f (%+.1f to %+.1f) in %v, allowed %.0f\n", w.name, q.name,
			middle/q.scale, slices.Max(w.series[q.name])/q.scale, q.unit, growth/q.scale, slope.Lo*steps/q.scale, slope.Hi*steps/q.scale, time.Duration(steps)*lookEvery, most/q.scale)
		if growth > most {
			faults = append(faults, fmt.Errorf("%s%s grew by %.1f %s", w.name, q.name, growth/q.scale, q.unit))
		}
	}
	return errors.Join(faults...)
}
