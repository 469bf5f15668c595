package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/meter"
	"tuner/modelconfig"
	"tuner/onnx"
	"tuner/payload"
	"tuner/perf"
	"tuner/wire"
)

// server is the server to be measured, as far as questions go.
type server struct {
	api.Control
	wire       wire.Options
	format     wire.Format
	timeout    time.Duration // of a question
	statistics bool          // it has them
}

// openServer asks whether there is a server.
func openServer(ctx context.Context, plan perfPlan, timeout time.Duration) (*server, error) {
	c, err := control(plan.wire)
	if err != nil {
		return nil, err
	}
	s := &server{Control: c, wire: plan.wire, format: plan.format, timeout: timeout}
	about, err := ask(ctx, s, c.ServerMetadata)
	if err != nil {
		_ = c.Close()                        // that it could not be asked tells more
		if plan.wire.Protocol != wire.HTTP { // whose client tells it
			err = cmp.Or(wire.Refusal(ctx, plan.wire), err)
		}
		return nil, fmt.Errorf("the server at %s cannot be measured: %w; is it running there, and does it speak %s?",
			plan.wire.Address, err, map[string]string{"http": "HTTP", "grpc": "gRPC"}[plan.settings.Protocol])
	}
	s.statistics = slices.Contains(about.Extensions, api.ExtensionStatistics)
	return s, nil
}

// ask puts a question that must not wait for ever.
func ask[T any](ctx context.Context, s *server, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("it gave no answer within %v", s.timeout))
	defer cancel()
	answer, err := question(ctx)
	if err != nil && ctx.Err() != nil {
		return answer, context.Cause(ctx)
	}
	return answer, err
}

// describe asks about a model. An error of the server's is the user's to mend.
func (s *server) describe(ctx context.Context, name, version string) (payload.Model, error) {
	m := payload.Model{Name: name, Version: version}
	var err error
	m.Metadata, err = ask(ctx, s, func(ctx context.Context) (api.ModelMetadata, error) { return s.ModelMetadata(ctx, name) })
	var answered *api.StatusError
	if errors.As(err, &answered) {
		return m, usageErrorf("the server at %s has no model %q to measure: %v%s", s.wire.Address, name, err, s.known(ctx))
	}
	if err != nil {
		return m, fmt.Errorf("cannot ask the server at %s about model %q: %w", s.wire.Address, name, err)
	}
	if version != "" && !slices.Contains(m.Metadata.Versions, version) {
		return m, usageErrorf("model %q has no version %q; it has %s", name, version, strings.Join(m.Metadata.Versions, ", "))
	}
	m.Config, err = ask(ctx, s, func(ctx context.Context) (*modelconfig.Config, error) { return s.ModelConfig(ctx, name) })
	if err != nil && !errors.As(err, &answered) { // a server without that extension has no configurations
		return m, fmt.Errorf("cannot ask the server at %s about the configuration of model %q: %w", s.wire.Address, name, err)
	}
	return m, nil
}

// known lists the server's models, where it tells them.
func (s *server) known(ctx context.Context) string {
	index, err := ask(ctx, s, s.Index)
	if err != nil || len(index) == 0 {
		return ""
	}
	var names []string
	for _, entry := range index {
		names = append(names, entry.Name)
	}
	slices.Sort(names)
	return "; it knows " + strings.Join(slices.Compact(names), ", ")
}

// checkServing refuses models that need what is not there.
func checkServing(m payload.Model, streaming bool) error {
	switch {
	case m.Config.GetSequenceBatching() != nil:
		return usageErrorf("model %q keeps state between requests (sequence_batching): such models are not measured", m.Name)
	case m.Config.GetModelTransactionPolicy().GetDecoupled() && !streaming:
		return usageErrorf("model %q answers requests any number of times (decoupled): that takes -i grpc --streaming", m.Name)
	}
	return nil
}

// readGraph reads the model's file where the user names it.
func readGraph(path string) (*onnx.Model, error) {
	if path == "" {
		return nil, nil
	}
	graph, err := onnx.Read(path)
	if err != nil {
		return nil, withExit(exitUsage, fmt.Errorf("--model-file: %w", err))
	}
	return graph, nil
}

// prepare makes the requests for a model.
func (s *server) prepare(m payload.Model, source payload.Source) (payload.Set, perf.Target, error) {
	target := perf.Target{Target: wire.Target{Options: s.wire, AnswerSize: m.AnswerSize(source.Batch)}}
	set, err := payload.Make(m, source)
	if err != nil {
		return set, target, withExit(exitUsage, err)
	}
	for _, r := range set.Requests {
		prepared, err := wire.Prepare(s.wire, r.Infer, s.format, r.Expected)
		var bad *wire.InputError
		switch {
		case errors.As(err, &bad):
			return set, target, usageErrorf("%s: %v", r.Origin, err)
		case err != nil:
			return set, target, err
		}
		target.Requests = append(target.Requests, prepared)
	}
	return set, target, nil
}

// composing lists the models that an ensemble calls, and those below, each once.
func (s *server) composing(ctx context.Context, c *modelconfig.Config) ([]meter.Model, error) {
	var models []meter.Model
	for _, step := range c.GetEnsembleScheduling().GetStep() {
		name := step.GetModelName()
		inner, err := ask(ctx, s, func(ctx context.Context) (*modelconfig.Config, error) { return s.ModelConfig(ctx, name) })
		if err != nil {
			return nil, fmt.Errorf("cannot ask about model %q of the ensemble: %w", name, err)
		}
		below := []meter.Model{{Name: name}}
		if v := step.GetModelVersion(); v > 0 { // −1: the latest
			below[0].Version = strconv.FormatInt(v, 10)
		}
		if inner.GetEnsembleScheduling() != nil {
			if below, err = s.composing(ctx, inner); err != nil {
				return nil, err
			}
		}
		models = append(models, below...)
	}
	slices.SortFunc(models, func(a, b meter.Model) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(models), nil
}

// together lists the models whose statistics are added up: those that the user names, or an ensemble's.
func (s *server) together(ctx context.Context, m payload.Model, named []meter.Model) ([]meter.Model, error) {
	if len(named) == 0 {
		return s.composing(ctx, m.Config)
	}
	for _, n := range named {
		if _, err := s.describe(ctx, n.Name, n.Version); err != nil {
			return nil, fmt.Errorf("--bls-composing-models: %w", err)
		}
	}
	return named, nil
}
