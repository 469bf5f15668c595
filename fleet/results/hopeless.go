package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tuner/analyze"
	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/durable"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
)

// Standing is a model on a machine with the outlook on its cost, from the part that was delivered so far.
type Standing struct {
	Model, Machine string
	Repeat         int
	Part           *record.Part // nil if the campaign has its result
	Elapsed        time.Duration
	Outlook        Outlook
}

// betweenMachines is the factor by which machines of one type may differ. Machines of clouds differ by
// several per cent, and some by more (arXiv 2309.11959).
const betweenMachines = 1.1

// Hopeless returns the standings of campaigns that cannot become the cheapest of their model, and for
// each the numbers that say so. A campaign is judged after a first time. Another type must be
// cheaper by more than machines of one type differ.
func Hopeless(list []Standing, first time.Duration) (ended []Standing, why []string) {
	for _, x := range list {
		if x.Part == nil || x.Elapsed < first {
			continue
		}
		best, by := offer{}, ""
		for _, other := range list {
			if other.Model != x.Model || other.Machine == x.Machine {
				continue
			}
			if found, ok := x.Outlook.isBeatenBy(other.Outlook); ok && (by == "" || found.cost.Mean < best.cost.Mean) {
				best, by = found, other.Machine
			}
		}
		if by != "" {
			ended = append(ended, x)
			why = append(why, fmt.Sprintf("after %s no configuration is likely to cost less than %.4g of a million inferences, and on %s one costs %s",
				x.Elapsed.Round(time.Second), x.Outlook.least(), by, best.text()))
		}
	}
	return ended, why
}

// Standings reads what has been delivered of each item. A journal that says nothing yet leaves all open.
func Standings(p fleet.Plan, deliveries []record.Delivery, replay Analyzer) ([]Standing, error) {
	dir, err := os.MkdirTemp("", "tuner-fleet-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for what has been delivered: %w", durable.Cause(err))
	}
	var list []Standing
	for _, part := range p.Parts {
		for index, item := range part.Items {
			x := Standing{Model: item.Model, Machine: part.Machine, Repeat: item.Repeat}
			for _, d := range deliveries {
				if d.Item != (record.Item{Job: record.JobName(p.Run, part.Machine), Index: index}) {
					continue
				}
				text := d.Journal
				if x.Part = d.Part; x.Part != nil {
					text = x.Part.Journal
				}
				file := filepath.Join(dir, fmt.Sprint(len(list)), journal.FileName)
				if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600)); err != nil {
					return nil, errors.Join(fmt.Errorf("cannot write what has been delivered: %w", durable.Cause(err)), os.RemoveAll(dir))
				}
				if r, err := replay(filepath.Dir(file)); err == nil { // it is too short otherwise
					x = x.of(r, part.Hourly)
				}
			}
			list = append(list, x)
		}
	}
	return list, os.RemoveAll(dir)
}

// of returns the standing with what an analysis says. The bound is about the objective, so it is one of
// the cost only if that is throughput or cost.
func (x Standing) of(r analyze.Result, hourly float64) Standing {
	x.Elapsed = r.Account.Elapsed
	if hourly > 0 && isThroughput(r.Goal) {
		x.Outlook = OutlookOf(r.Verdict, func(throughput float64) float64 { return costAt(hourly, throughput) })
	}
	return x
}

// isThroughput reports whether a goal's objective is the throughput, or what follows from it.
func isThroughput(g search.Goal) bool {
	terms := g.Objective.Terms
	return len(terms) == 1 && (terms[0].Metric == measure.Throughput || terms[0].Metric == measure.Cost)
}
