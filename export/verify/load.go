package verify

import (
	"context"
	"fmt"
	"strings"

	"tuner/export/tuned"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/runner"
	"tuner/search"
	"tuner/search/verdict"
)

// together groups the models that were measured together. They are served by one process again, so
// they must have one ONNX Runtime here. A model that was measured alone is a group of its own.
func together(subjects []subject) [][]subject {
	type company struct{ input, library string }
	return tuned.Together(subjects, func(s subject) (company, bool) {
		return company{s.reported.Input, s.build.Library}, s.reported.Together
	})
}

// load measures models at their reported loads, on a fresh server: a model alone, or several together.
func (v *verifier) load(ctx context.Context, group []subject) error {
	options := v.options.Runner
	options.Launcher = v.launcher(group...)
	r := runner.New(options)
	defer r.Close(context.WithoutCancel(ctx))
	job := v.job(group[0])
	if len(group) > 1 {
		job = runner.Job{Pool: job.Pool, Repository: job.Repository, Library: job.Library, Windows: job.Windows, Window: job.Window}
		for _, s := range group {
			job.Parts = append(job.Parts, v.job(s))
		}
	}
	job.Policies = v.policies(group)
	m, err := r.Measure(ctx, job)
	if err != nil {
		return err
	}
	for _, s := range group {
		own := m
		if len(group) > 1 {
			own = m.Of(s.reported.Name).Alone()
		}
		v.compare(s, own)
	}
	return nil
}

// policies returns the host policies with which models were measured; none on another machine, which has other
// processors.
func (v *verifier) policies(group []subject) []isolation.Policy {
	if v.options.Fingerprint != group[0].reported.Machine {
		return nil
	}
	var list []isolation.Policy
	for _, s := range group {
		list = append(list, s.policies...)
	}
	return list
}

// job is the load on one model.
func (v *verifier) job(s subject) runner.Job {
	percentiles := []measure.Metric{measure.LatencyP99}
	for _, l := range s.reported.Limits {
		if _, isPercentile := l.Metric.Quantile(); isPercentile && l.Metric != measure.LatencyP99 {
			percentiles = append(percentiles, l.Metric)
		}
	}
	return runner.Job{
		Pool: "export", Repository: v.repository, Library: s.build.Library, Model: s.reported.Name, Instances: s.instances(v.options.GPUs),
		MaxBatch: s.maxBatch(), Requests: s.requests,
		AnswerSize: modelconfig.AnswerSize(s.config, s.reported.Load.BatchSize), Load: s.reported.Load, Arrivals: s.arrivals, Windows: v.options.Windows, Window: v.options.Window,
		Percentiles: percentiles,
	}
}

// compare adds the checks of a model's measurement: its throughput, and its limits.
func (v *verifier) compare(s subject, m measure.Measurement) {
	name := s.reported.Name
	if m.Failure != nil {
		v.addCheck(name, "throughput", Failed, fmt.Sprintf("%s: %s", m.Failure.Stage, m.Failure.Reason))
		return
	}
	now, ok := m.Estimate(measure.Throughput)
	if !ok {
		v.addCheck(name, "throughput", Failed, "no request was completed")
		return
	}
	status, text := v.judge(s, now)
	v.addCheck(name, "throughput", status, text+doubts(m.Windows))
	if len(s.reported.Limits) > 0 {
		status, text = v.limits(s, m)
		v.addCheck(name, "limits", status, text)
	}
}

// limits compares a model's figures with the limits of its campaign. A limit is missed if the whole interval
// of its figure is beyond it.
func (v *verifier) limits(s subject, m measure.Measurement) (Status, string) {
	status := Passed
	var texts []string
	for _, l := range s.reported.Limits {
		e, ok := m.Estimate(l.Metric)
		if !ok {
			status = worse(status, Skipped)
			texts = append(texts, fmt.Sprintf("%s: too few requests, or not measured", verdict.ConstraintText(l)))
			continue
		}
		text := fmt.Sprintf("%s: %s", verdict.ConstraintText(l), verdict.Interval(l.Metric, e))
		if isBeyond(l, e) {
			status, text = Failed, text+", missed"
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, "; ")
	switch reason := v.unjudged(s); {
	case reason != "":
		return Skipped, text + reason
	case s.unlike != "":
		return Skipped, fmt.Sprintf("%s, but %s: not judged", text, s.unlike)
	}
	return status, text
}

// worse returns the status that says more against an export.
func worse(a, b Status) Status {
	if a == Failed {
		return a
	}
	return b
}

// isBeyond reports whether a whole interval misses a limit.
func isBeyond(l search.Constraint, e measure.Estimate) bool {
	return l.Max != nil && e.Lo > *l.Max || l.Min != nil && e.Hi < *l.Min
}
