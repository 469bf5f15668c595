// Package spans shows a running campaign to an OpenTelemetry collector: a span for the campaign, below
// it one for each trial, and below that one for each launch of an engine and each window. It observes
// package profile, and decides nothing. Spans are made after a trial has ended. Package collector sends
// them, so a campaign never waits for a collector.
package spans

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"tuner/internal/collector"
	"tuner/measure"
	"tuner/profile"
	"tuner/search"
)

// Names of spans.
const (
	campaignSpan    = "campaign"
	trialSpan       = "trial"
	launchSpan      = "launch"
	reconfigureSpan = "reconfigure" // of an engine that runs already
	windowSpan      = "window"
)

// service is the service.name that OTEL_SERVICE_NAME replaces, and the name of the tracer.
const service = "tuner"

// sendingEnd bounds the time for which a campaign that has ended waits until its last spans are sent.
const sendingEnd = 2 * time.Second

// About describes a campaign.
type About struct {
	Model    string
	Strategy string
	Server   string // in words
	Output   string // folder
	Version  string // of the program
	Goal     search.Goal
	Earlier  int           // trials of earlier runs
	Past     time.Duration // that these took
	Now      func() time.Time
}

// Around returns an observer that makes spans and passes everything on to another one, and the function
// that the caller must call at the campaign's end. If the environment names no collector, it returns
// that other observer alone. Its log has a line if the collector takes no spans.
func Around(ctx context.Context, inner profile.Observer, a About, log *slog.Logger) (profile.Observer, func(profile.Outcome, error), error) {
	if !collector.IsNamed() {
		return inner, func(profile.Outcome, error) {}, nil
	}
	provider, err := collector.New(ctx, collector.Options{Defaults: []attribute.KeyValue{
		attribute.String("service.name", service), attribute.String("service.version", a.Version),
	}}, log)
	if err != nil {
		return nil, nil, err
	}
	o := begin(inner, a, provider)
	return o, func(outcome profile.Outcome, err error) {
		o.end(outcome, err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendingEnd)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("the last spans are lost", "error", err)
		}
	}, nil
}

// observer makes the spans of a campaign.
type observer struct {
	profile.Observer
	about    About
	tracer   oteltrace.Tracer
	campaign oteltrace.Span
	metrics  []measure.Metric // of trials and windows
	epoch    time.Time        // to which the times of windows refer
	begun    time.Time        // when the present trial or block began
	opened   time.Duration    // into the block: launches of the seats that have been told
}

func begin(inner profile.Observer, a About, provider *sdktrace.TracerProvider) *observer {
	now := a.Now()
	o := &observer{Observer: inner, about: a, tracer: provider.Tracer(service), epoch: now.Add(-a.Past), begun: now}
	o.metrics = []measure.Metric{measure.Throughput, measure.LatencyP99}
	for _, m := range a.Goal.Metrics() {
		if m != measure.Throughput && m != measure.LatencyP99 {
			o.metrics = append(o.metrics, m)
		}
	}
	o.campaign = o.start(nil, campaignSpan, now,
		attribute.String("tuner.model", a.Model), attribute.String("tuner.strategy", a.Strategy),
		attribute.String("tuner.server", a.Server), attribute.String("tuner.output", a.Output), attribute.Int("tuner.earlier_trials", a.Earlier))
	return o
}

// start begins a span below another one; nil: below none.
func (o *observer) start(above oteltrace.Span, name string, at time.Time, attributes ...attribute.KeyValue) oteltrace.Span {
	ctx := context.Background()
	if above != nil {
		ctx = oteltrace.ContextWithSpan(ctx, above)
	}
	_, s := o.tracer.Start(ctx, name, oteltrace.WithTimestamp(at), oteltrace.WithAttributes(attributes...))
	return s
}

// Begun implements profile.Observer.
func (o *observer) Begun(action search.Action) {
	o.begun, o.opened = o.about.Now(), 0
	o.Observer.Begun(action)
}

// TrialEnded implements profile.Observer. The trials of a block take turns, so the span of each is as
// long as the block.
func (o *observer) TrialEnded(event search.Event, status profile.Status) {
	now := o.about.Now()
	s := o.start(o.campaign, trialSpan, o.begun, o.trialAttributes(event, status)...)
	o.launch(s, event.Measurement)
	for i, w := range event.Measurement.Windows {
		o.window(s, event.Trial, i, w)
	}
	if f := event.Measurement.Failure; f != nil {
		s.SetStatus(codes.Error, string(f.Stage)+": "+f.Reason)
	}
	s.End(oteltrace.WithTimestamp(now))
	if event.Trial.Block == 0 { // of a block that was refused, each trial begins when the last one has ended
		o.begun, o.opened = now, 0
	}
	o.Observer.TrialEnded(event, status)
}

func (o *observer) trialAttributes(e search.Event, status profile.Status) []attribute.KeyValue {
	m := e.Measurement
	list := append(loadAttributes(e.Trial.Load),
		attribute.Int("tuner.trial", status.Trials), attribute.String("tuner.phase", string(e.Trial.Phase)),
		attribute.String("tuner.configuration", e.Trial.Candidate.Key()),
		attribute.Int("tuner.launch", m.Launch), attribute.Float64("tuner.warm_up", m.Times.WarmUp.Seconds()), attribute.StringSlice("tuner.flags", flagNames(m.Flags())))
	for _, s := range e.Trial.Candidate.Settings() {
		list = append(list, attribute.String("tuner.knob."+s.Knob, string(s.Value)))
	}
	if e.Trial.Block > 0 {
		list = append(list, attribute.Int("tuner.block", e.Trial.Block))
	}
	if e.Trial.Phase == search.PhaseService { // its windows have different batches, and no figure in common
		return list
	}
	return append(list, o.figures(m)...)
}

// launch makes the span of an engine that was launched or reconfigured for a trial. The engines of a
// block are made ready one after the other, before the first turn.
func (o *observer) launch(above oteltrace.Span, m measure.Measurement) {
	for _, part := range []struct {
		name string
		took time.Duration
		hits []measure.Stage // failures that end it
	}{
		{launchSpan, m.Times.Launch, []measure.Stage{measure.StageStart, measure.StageLoad}},
		{reconfigureSpan, m.Times.Reconfigure, []measure.Stage{measure.StageLoad}},
	} {
		if part.took == 0 {
			continue
		}
		s := o.start(above, part.name, o.begun.Add(o.opened), attribute.Int("tuner.launch", m.Launch))
		o.opened += part.took
		for _, stage := range part.hits {
			if m.Failure != nil && m.Failure.Stage == stage {
				s.SetStatus(codes.Error, m.Failure.Reason)
			}
		}
		s.End(oteltrace.WithTimestamp(o.begun.Add(o.opened)))
	}
}

func (o *observer) window(above oteltrace.Span, trial search.Trial, i int, w measure.Window) {
	at := o.epoch.Add(w.Start)
	load := trial.Load
	if size, ok := trial.SizeOf(i); ok {
		load.BatchSize = size
	}
	var model []attribute.KeyValue
	if w.Model != "" { // of several
		load, model = trial.Load.Of(w.Model), []attribute.KeyValue{attribute.String("tuner.model", w.Model)}
	}
	s := o.start(above, windowSpan, at, append(append(loadAttributes(load), model...),
		attribute.Int("tuner.requests", w.Requests), attribute.Int("tuner.errors", w.Errors), attribute.StringSlice("tuner.flags", flagNames(w.Flags)),
		attribute.Float64("tuner.steal", w.Steal), attribute.Float64("tuner.foreign", w.Foreign))...)
	s.SetAttributes(o.figures(measure.Measurement{Windows: []measure.Window{w}})...)
	if w.Errors > 0 {
		s.SetStatus(codes.Error, w.FirstError)
	}
	s.End(oteltrace.WithTimestamp(at.Add(w.Duration)))
}

// figures are the values of a measurement, under the names of their metrics and in base units.
func (o *observer) figures(m measure.Measurement) []attribute.KeyValue {
	var list []attribute.KeyValue
	for _, metric := range o.metrics {
		if value, ok := o.about.Goal.Value(m, metric); ok {
			list = append(list, attribute.Float64("tuner."+string(metric), value))
		}
	}
	return list
}

func loadAttributes(l measure.Load) []attribute.KeyValue {
	if l.Scale > 0 {
		return []attribute.KeyValue{attribute.Float64("tuner.load.scale", l.Scale)}
	}
	list := []attribute.KeyValue{attribute.Int("tuner.load.batch_size", l.BatchSize)}
	if l.Concurrency > 0 {
		return append(list, attribute.Int("tuner.load.concurrency", l.Concurrency))
	}
	return append(list, attribute.Float64("tuner.load.request_rate", l.RequestRate))
}

func flagNames(flags []measure.Flag) []string {
	names := make([]string, len(flags))
	for i, f := range flags {
		names[i] = string(f)
	}
	return names
}

// end ends the span of the campaign. A campaign that was interrupted has not failed.
func (o *observer) end(outcome profile.Outcome, err error) {
	if err != nil {
		o.campaign.SetStatus(codes.Error, err.Error())
	} else {
		o.campaign.SetAttributes(attribute.String("tuner.end", outcome.End.Reason), attribute.Bool("tuner.interrupted", outcome.End.Interrupted),
			attribute.Int("tuner.trials", outcome.Status.Trials), attribute.Int("tuner.failed_trials", outcome.Status.Failed))
	}
	if answer := outcome.Status.Answer(); err == nil && answer != nil {
		o.campaign.SetAttributes(loadAttributes(answer.Load)...)
		o.campaign.SetAttributes(attribute.String("tuner.configuration", answer.Candidate.Key()), attribute.Float64("tuner.kept", answer.Holds))
	}
	o.campaign.End(oteltrace.WithTimestamp(o.about.Now()))
}
