// Package session prepares one run of `tuner perf` and runs it. It asks the server about the
// models, makes the requests, and opens the readings beside the load.
//
// It stands between the flags (perf/paflags) and the measurement (package perf). It prints nothing.
// The only file that it writes is the one with every request, which package perf fills while it
// measures.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/perf"
	"tuner/perf/output"
	"tuner/perf/paflags"
	"tuner/runner/meter"
	"tuner/runner/payload"
)

// Session is a run that is ready to begin. The caller must call Close.
type Session struct {
	plan    paflags.Plan
	options perf.Options
	set     payload.Set
	closers []func()
}

// Open asks the server about its models, and prepares the requests.
func Open(ctx context.Context, plan paflags.Plan) (*Session, error) {
	s := &Session{plan: plan}
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(ctx context.Context) error {
	graph, err := readGraph(s.plan.ModelFile)
	if err != nil {
		return err
	}
	server, err := openServer(ctx, s.plan)
	if err != nil {
		return err
	}
	// the connection is no longer in use
	s.closers = append(s.closers, func() { _ = server.Close() })
	model, err := server.describe(ctx, s.plan.Settings.Model, s.plan.Settings.Version)
	if err != nil {
		return err
	}
	model.Graph = graph
	if err := checkServing(model, s.plan.Settings.Streaming); err != nil {
		return err
	}
	var target perf.Target
	if s.set, target, err = server.prepare(model, s.plan.Source); err != nil {
		return err
	}
	composing, err := server.together(ctx, model, s.plan.Composing)
	if err != nil {
		return err
	}
	if target.Gauge, err = s.openGauge(ctx, server, s.plan.Gauge, model, composing...); err != nil {
		return exit.With(exit.Usage, err)
	}
	s.options = perf.Options{
		Settings: s.plan.Settings, Target: target, WarmUp: s.plan.WarmUp, Timeout: s.plan.Timeout,
		MaxInFlight: s.plan.MaxInFlight,
	}
	s.complete(ctx, server, model)
	s.options.Beside, err = s.beside(ctx, server)
	return err
}

// Close ends the control connections, and the readings.
func (s *Session) Close() {
	for _, c := range s.closers {
		c()
	}
}

// Settings returns those of the flags, completed by the server's answers.
func (s *Session) Settings() perf.Settings { return s.options.Settings }

// Notes describe the values of generated inputs for people.
func (s *Session) Notes() []string { return s.set.Notes }

// Problem returns the error that prevented a reading of the server or the machine; nil if there was
// none.
func (s *Session) Problem() error {
	if m, ok := s.options.Target.Gauge.(*meter.Meter); ok {
		return m.Problem()
	}
	return nil
}

// complete adds the values from server and machine to the settings.
func (s *Session) complete(ctx context.Context, server *server, m payload.Model) {
	settings := &s.options.Settings
	host := hostinfo.Read(ctx)
	settings.Machine = fmt.Sprintf("%s, %d threads", host.CPU.Model, host.UsableCores())
	settings.Statistics = server.statistics
	settings.Decoupled = m.Config.GetModelTransactionPolicy().GetDecoupled()
	settings.Cache = m.Config.GetResponseCache().GetEnable()
	settings.Streams, settings.Steps = s.set.Streams, s.set.Steps
}

// openGauge opens the readings beside a load. They end with the session.
func (s *Session) openGauge(ctx context.Context, server *server, o meter.Options, m payload.Model, composing ...meter.Model) (perf.Gauge, error) {
	o.Models = []meter.Subject{{Model: meter.Model{Name: m.Name, Version: m.Version}, Together: composing}}
	if server.statistics {
		o.Control = server
	}
	g, err := meter.Open(ctx, o)
	s.closers = append(s.closers, g.Close)
	return g, err
}

// beside prepares the loads on other models.
func (s *Session) beside(ctx context.Context, server *server) ([]perf.Beside, error) {
	var list []perf.Beside
	for _, w := range s.plan.With {
		model, err := server.describe(ctx, w.Model, w.Version)
		if err != nil {
			return nil, err
		}
		if err := checkServing(model, s.plan.Settings.Streaming); err != nil {
			return nil, err
		}
		w.Source.Seed = s.plan.Source.Seed
		_, target, err := server.prepare(model, w.Source)
		if err != nil {
			return nil, err
		}
		own := s.plan.Gauge
		target.Gauge, err = s.openGauge(ctx, server, meter.Options{Timeout: own.Timeout, PID: own.PID, Remote: own.Remote}, model)
		if err != nil {
			return nil, err
		}
		list = append(list, perf.Beside{Model: w.Model, Target: target, Load: w.Load})
	}
	return list, nil
}

// Run measures. Meanwhile it writes the file of every request, if the flags ask for it.
func (s *Session) Run(ctx context.Context, observer perf.Observer) (report perf.Report, err error) {
	s.options.Observer = observer
	if s.plan.Reports.Export == "" {
		return perf.Run(ctx, s.options)
	}
	failed := durable.WriteFile(s.plan.Reports.Export, func(w io.Writer) error {
		export := output.NewExport(w, s.options.Settings, s.set.Requests)
		s.options.Sink = export
		report, err = perf.Run(ctx, s.options)
		if len(report.Levels) == 0 {
			return errNothing
		}
		return export.Close()
	})
	if errors.Is(failed, errNothing) {
		failed = nil
	}
	return report, errors.Join(err, failed)
}

// errNothing prevents a file without any request.
var errNothing = errors.New("nothing was measured")
