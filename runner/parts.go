package runner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tuner/measure"
	"tuner/runner/load"
)

// each lists the jobs of the models: Parts, with what the job has in common, or the job of one model.
func (j Job) each() []Job {
	if len(j.Parts) == 0 {
		return []Job{j}
	}
	parts := slices.Clone(j.Parts)
	for i := range parts {
		parts[i].Window, parts[i].Turn = j.Window, j.Turn
	}
	return parts
}

// nameOf returns the name of a part's model in windows and failures: "" for a job of one model.
func (j Job) nameOf(part Job) string {
	if len(j.Parts) == 0 {
		return ""
	}
	return part.Model
}

// checkParts returns an error for models that cannot be measured, or not together.
func (j Job) checkParts() error {
	if len(j.Parts) > 0 && len(j.ServiceCurve) > 0 {
		return errors.New("cannot measure a service job of several models: each has a curve of its own")
	}
	var longest time.Duration
	for i, part := range j.each() {
		switch {
		case slices.ContainsFunc(j.each()[:i], func(other Job) bool { return other.Model == part.Model }):
			return fmt.Errorf("cannot measure two models under the name %q", part.Model)
		case part.Load.Concurrency < 1 && !(part.Load.RequestRate > 0):
			return j.named(part.Model, fmt.Errorf("cannot measure at %s: it is neither a concurrency nor a rate", part.Load))
		case len(part.Requests) == 0 && len(j.ServiceCurve) == 0:
			return j.named(part.Model, errors.New("cannot make a load without requests"))
		}
		longest = max(longest, part.period())
	}
	for _, part := range j.each() {
		if period := part.period(); period > 0 && longest%period != 0 {
			return j.named(part.Model, fmt.Errorf("cannot measure arrivals that repeat after %v in windows with others that repeat after %v: "+
				"the longest period must be a multiple of each", period, longest))
		}
	}
	return nil
}

// named returns an error that names the model, if the job has several.
func (j Job) named(model string, err error) error {
	if len(j.Parts) == 0 || err == nil {
		return err
	}
	return &load.PartError{Model: model, Cause: err}
}

// failureOf returns a failure that names one of several models; "" for none.
func failureOf(model string, f *measure.Failure) *measure.Failure {
	if model == "" || f == nil {
		return f
	}
	return &measure.Failure{Stage: f.Stage, Model: model, Reason: fmt.Sprintf("model %q: %s", model, f.Reason)}
}

// period returns the time after which an open loop's schedule repeats; 0 for none.
func (j Job) period() time.Duration {
	if j.Load.Concurrency > 0 {
		return 0
	}
	return j.Arrivals.Period(j.Load.RequestRate)
}

// whole returns the length of windows in whole periods of all models. The longest period is a multiple
// of the others.
func (j Job) whole(length time.Duration) time.Duration {
	parts := j.each()
	longest := parts[0]
	for _, part := range parts {
		if part.period() > longest.period() {
			longest = part
		}
	}
	if longest.period() == 0 {
		return length
	}
	return longest.Arrivals.Whole(length, longest.Load.RequestRate)
}

// enough returns the function that may cut the windows: it does where one model has enough. It is nil
// without such a function, or if the first part of a window does not stand for all of it.
func (j Job) enough() func(soFar []measure.Window) bool {
	parts := j.each()
	if slices.ContainsFunc(parts, func(p Job) bool { return p.period() > 0 }) ||
		!slices.ContainsFunc(parts, func(p Job) bool { return p.Enough != nil }) {
		return nil
	}
	return func(soFar []measure.Window) bool {
		for i, part := range parts {
			if part.Enough != nil && part.Enough(soFar[i]) {
				return true
			}
		}
		return false
	}
}

// interleave returns the windows of all models, each with its model's name: those between the first
// two edges, then those between the next.
func (j Job) interleave(of [][]measure.Window) []measure.Window {
	var all []measure.Window
	for k := range of[0] {
		for i, part := range j.each() {
			w := of[i][k]
			w.Model, w.Turn = j.nameOf(part), part.Turn
			all = append(all, w)
		}
	}
	return all
}

// windowsOf returns the windows of a part's model.
func (j Job) windowsOf(part Job, windows []measure.Window) []measure.Window {
	var own []measure.Window
	for _, w := range windows {
		if w.Model == j.nameOf(part) {
			own = append(own, w)
		}
	}
	return own
}

// flagFew flags the windows of models that hold too few requests for one of their percentiles.
func (j Job) flagFew(windows []measure.Window) []measure.Window {
	for _, part := range j.each() {
		if !holdFew(j.windowsOf(part, windows), part.Percentiles) {
			continue
		}
		for i := range windows {
			if windows[i].Model == j.nameOf(part) {
				windows[i].Flags = append(windows[i].Flags, measure.FlagFew)
			}
		}
	}
	return windows
}

// unanswered returns a failure if no request to one of the models succeeded. Where windows may be
// empty, some must have failed.
func (j Job) unanswered(windows []measure.Window) *measure.Failure {
	for _, part := range j.each() {
		if f := answeredNone(j.windowsOf(part, windows), part.Load); f != nil && !(j.MayBeEmpty && f.Stage == measure.StageHang) {
			return failureOf(j.nameOf(part), f)
		}
	}
	return nil
}
