package target

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"tuner/internal/exit"
	"tuner/measure"
	"tuner/model/modelrepo"
	"tuner/runner"
	"tuner/runner/meter"
	"tuner/search"
	"tuner/spec"
)

// CheckMetrics finds the metrics of the goal that one of the servers cannot measure, before
// anything is launched. file is the profile's name.
func (s Servers) CheckMetrics(ctx context.Context, file string, goal search.Goal) error {
	for _, one := range s.all() {
		sources, where := meter.ReadSources, "on this machine"
		if one.remote != nil {
			page, err := meter.ReadPage(ctx, meter.PageURL(one.runner.MetricsURL))
			if err != nil {
				return exit.Usagef("%s: %s.metrics_url: %v", file, one.field, err)
			}
			sources, where = func() meter.Sources { return page }, "on the server at "+one.info.Where
		}
		if err := CheckMetrics(file, goal, sources(), where); err != nil {
			return err
		}
	}
	return nil
}

// CheckMetrics finds the metrics of a goal that a server's sources do not have. file is the
// profile's name. where names the server's place, such as this machine.
func CheckMetrics(file string, goal search.Goal, sources meter.Sources, where string) error {
	var problems []error
	for _, m := range goal.Metrics() {
		if lack := sources.Lack(m); lack != "" {
			problems = append(problems, fmt.Errorf("%s: %s: %s cannot be measured %s: %s", file, goalField(goal, m), m, where, lack))
		}
	}
	return exit.With(exit.Usage, errors.Join(problems...))
}

// goalField returns the field of a profile that names a metric of its goal.
func goalField(goal search.Goal, m measure.Metric) string {
	for _, c := range goal.Constraints {
		if c.Metric == m {
			return "constraints." + string(m)
		}
	}
	if len(goal.Objective.Terms) > 1 {
		return "weights." + string(m)
	}
	return "objective"
}

// Ask lets the servers load the model. It returns the facts together with the providers that they
// cannot load. If a server does not serve the model at all, the error says what the user must
// change.
func (s Servers) Ask(ctx context.Context, p spec.Profile, model Model, facts search.Facts) (search.Facts, error) {
	for _, one := range s.all() {
		if one.runner.IsBundled() {
			continue
		}
		if err := one.inspect(ctx, model); err != nil {
			return facts, one.unusable(ctx, p.Path, err)
		}
		tried, about, err := try(ctx, p, model, facts, runner.New(one.options))
		if err != nil {
			return facts, one.unusable(ctx, p.Path, err)
		}
		facts, one.info.Name, one.info.Version = tried, about.Name, about.Version
	}
	return facts, nil
}

// Describe describes the servers of a campaign for people, and what the campaign would do to them.
// The bundled engine needs no description. Remote servers are asked for their state of the model.
func (s Servers) Describe(ctx context.Context, p spec.Profile, model Model) ([]string, error) {
	var lines []string
	for _, one := range s.all() {
		if err := one.inspect(ctx, model); err != nil {
			return nil, one.unusable(ctx, p.Path, err)
		}
		if text := one.text(model.Name); text != "" {
			lines = append(lines, one.field+": "+text)
		}
	}
	return lines, nil
}

// text says what the campaign would do to a server. "" for the bundled engine.
func (s *server) text(model string) string {
	switch {
	case s.runner.IsBundled():
		return ""
	case s.remote == nil:
		return s.info.Where + " is launched for each engine process, on ports of loopback; which execution providers it has is found out then"
	}
	files := "its files are sent with each load"
	switch {
	case s.before.Known:
		files = "it has the model's files; those of other precisions are sent with each load"
	case s.remote.Place != "":
		files = "its files are put into " + s.remote.Place + " and removed at the end"
	}
	after := "not loaded, as it is now"
	if s.before.Config != nil {
		after = "loaded, as it is now"
	}
	return fmt.Sprintf("%s: model %q is loaded with one configuration after the other; %s; in the end it is %s", s.info, model, files, after)
}

// unusable returns the error for a server that cannot be measured, with the requirements.
func (s *server) unusable(ctx context.Context, file string, err error) error {
	return exit.OrInterrupted(ctx, exit.Usagef("%s: %s: cannot measure the server %s: %v\n    hint: %s", file, s.field, s.info.Where, err, s.hint()))
}

// hint describes the requirements for a server.
func (s *server) hint() string {
	if s.remote == nil {
		return "it must take tritonserver's options and have a backend for ONNX models; its own options go into args: [--backend-directory=DIR]"
	}
	protocol := "gRPC"
	if s.runner.Protocol == spec.ProtocolHTTP {
		protocol = "HTTP"
	}
	return fmt.Sprintf("it must run there in explicit model control (--model-control-mode=explicit), speak %s, and let this client load models (headers, tls)", protocol)
}

// askTime bounds a request to a remote server.
const askTime = 10 * time.Second

// inspect asks a remote server for its state of the model. It decides whether files travel with a
// load: they do if the server does not have the model.
func (s *server) inspect(ctx context.Context, model Model) error {
	if s.remote == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("it gave no answer within %v", askTime))
	defer cancel()
	state, err := s.remote.Inspect(ctx)
	if err != nil {
		return err
	}
	s.before, s.info.Name, s.info.Version = &state, state.Server.Name, state.Server.Version
	place := s.remote.Place
	if place != "" && modelrepo.Wrote(place, model.Name) { // left behind by a campaign that was killed
		state.Known = false
	}
	if state.Known { // tuner must not replace a folder that it did not write
		s.remote.Place = ""
	}
	original, err := modelrepo.Digest(model.Source, model.Config)
	if err != nil {
		return err
	}
	isKnown := state.Known
	s.remote.Sends = func(repository string) bool { return !isKnown || filepath.Base(repository) != original }
	return nil
}
