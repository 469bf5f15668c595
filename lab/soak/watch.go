package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/measure/stats"
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
	slack float64 // growth over the observed time that does not count as a leak, in its own unit
	share float64 // the same as a share of its median
}

func quantities() []quantity {
	const mebi = 1 << 20
	return []quantity{
		{"memory", "MiB", mebi, 24 * mebi, 0.05},
		{"descriptors", "", 1, 16, 0.1},
		{"threads", "", 1, 8, 0.1},
		{"goroutines", "", 1, 32, 0.1},
	}
}

func newWatch(pid int, metrics string, t *tally, out io.Writer) *watch {
	return &watch{pid: pid, metrics: metrics, tally: t, out: out, series: map[string][]float64{}}
}

// follow reads the process until ctx ends, and prints a line each minute.
func (w *watch) follow(ctx context.Context) {
	fmt.Fprintf(w.out, "%8s %9s %9s %6s %5s %6s %6s %9s %9s %8s %8s %6s %8s %10s\n", "time", "asked", "checked", "absent", "lost", "wrong",
		"failed", "nonsense", "vanished", "reloads", "RSS MiB", "fds", "threads", "goroutines")
	begin := time.Now()
	defer func() { w.lasted = time.Since(begin) }()
	next := begin.Add(reportAt)
	for ctx.Err() == nil {
		pause(ctx, lookEvery)
		if ctx.Err() == nil {
			w.look(ctx)
		}
		if now := time.Now(); now.After(next) || ctx.Err() != nil {
			w.report(now.Sub(begin))
			next = next.Add(reportAt)
		}
	}
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// look adds a value to each series. It skips unreadable ones.
func (w *watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if usage, err := hostinfo.Process(w.pid); err == nil {
		w.series["memory"] = append(w.series["memory"], float64(usage.RSS))
	}
	for name, folder := range map[string]string{"descriptors": "fd", "threads": "task"} {
		if entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", w.pid, folder)); err == nil {
			w.series[name] = append(w.series[name], float64(len(entries)))
		}
	}
	if page, err := api.Metrics(ctx, w.metrics); err == nil {
		if match := goroutines.FindSubmatch(page); match != nil {
			n, _ := strconv.Atoi(string(match[1])) // digits
			w.series["goroutines"] = append(w.series["goroutines"], float64(n))
		}
	}
}

func (w *watch) report(elapsed time.Duration) {
	c := w.tally.now()
	fmt.Fprintf(w.out, "%8s %9d %9d %6d %5d %6d %6d %9d %9d %8d", elapsed.Round(time.Second), c.asked, c.checked, c.absent, c.lost, c.wrong,
		c.failed, c.nonsense, c.vanished, c.reloads)
	for i, q := range quantities() {
		width := []int{8, 6, 8, 10}[i]
		if values := w.series[q.name]; len(values) > 0 {
			fmt.Fprintf(w.out, " %*.0f", width, values[len(values)-1]/q.scale)
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
			few := fmt.Errorf("%s: %d readings are too few to tell whether it grows", q.name, len(values))
			fmt.Fprintln(w.out, few)
			if w.lasted >= shortRun {
				faults = append(faults, few)
			}
			continue
		}
		slope, middle := stats.Slope(values), stats.Median(values)
		steps := float64(len(values) - 1)
		growth, most := slope.Value*steps, max(q.slack, q.share*middle)
		fmt.Fprintf(w.out, "%s: median %.0f %s, growth %+.1f (%+.1f to %+.1f) in %v, allowed %.0f\n", q.name, middle/q.scale, q.unit,
			growth/q.scale, slope.Lo*steps/q.scale, slope.Hi*steps/q.scale, time.Duration(steps)*lookEvery, most/q.scale)
		if growth > most {
			faults = append(faults, fmt.Errorf("%s grew by %.1f %s", q.name, growth/q.scale, q.unit))
		}
	}
	return errors.Join(faults...)
}
