package session

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
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/perf"
	"tuner/perf/paflags"
	"tuner/runner/meter"
	"tuner/runner/payload"
	"tuner/runner/wire"
)

// server is the server that is measured. It serves control requests. Infer requests use connections
// of package wire.
type server struct {
	api.Control
	wire       wire.Options
	format     wire.Format
	timeout    time.Duration // limit for a control request
	statistics bool          // it has statistics
}

// openServer connects to the server and asks for its extensions.
func openServer(ctx context.Context, plan paflags.Plan) (*server, error) {
	c, err := control(plan.Wire)
	if err != nil {
		return nil, err
	}
	s := &server{Control: c, wire: plan.Wire, format: plan.Format, timeout: plan.Timeout}
	about, err := ask(ctx, s, c.ServerMetadata)
	if err != nil {
		_ = c.Close()                        // the first error matters more
		if plan.Wire.Protocol != wire.HTTP { // HTTP's client reports a refusal itself
			err = cmp.Or(wire.Refusal(ctx, plan.Wire), err)
		}
		return nil, fmt.Errorf("cannot measure the server at %s: %w; check that it runs there and speaks %s",
			plan.Wire.Address, err, map[string]string{"http": "HTTP", "grpc": "gRPC"}[plan.Settings.Protocol])
	}
	s.statistics = slices.Contains(about.Extensions, api.ExtensionStatistics)
	return s, nil
}

// ask makes a control request and waits for its answer, for at most the timeout.
func ask[T any](ctx context.Context, s *server, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("it gave no answer within %v", s.timeout))
	defer cancel()
	answer, err := question(ctx)
	if err != nil && ctx.Err() != nil {
		return answer, context.Cause(ctx)
	}
	return answer, err
}

// describe asks about a model. A missing model is a usage error.
func (s *server) describe(ctx context.Context, name, version string) (payload.Model, error) {
	m := payload.Model{Name: name, Version: version}
	var err error
	m.Metadata, err = ask(ctx, s, func(ctx context.Context) (api.ModelMetadata, error) { return s.ModelMetadata(ctx, name) })
	var answered *api.StatusError
	if errors.As(err, &answered) {
		return m, exit.Usagef("the server at %s has no model %q: %v%s", s.wire.Address, name, err, s.known(ctx))
	}
	if err != nil {
		return m, fmt.Errorf("cannot ask the server at %s about model %q: %w", s.wire.Address, name, err)
	}
	if version != "" && !slices.Contains(m.Metadata.Versions, version) {
		return m, exit.Usagef("model %q has no version %q; it has %s", name, version, strings.Join(m.Metadata.Versions, ", "))
	}
	m.Config, err = ask(ctx, s, func(ctx context.Context) (*modelconfig.Config, error) { return s.ModelConfig(ctx, name) })
	if err != nil && !errors.As(err, &answered) { // a server without that extension has no configurations
		return m, fmt.Errorf("cannot ask the server at %s about the configuration of model %q: %w", s.wire.Address, name, err)
	}
	return m, nil
}

// known lists the server's models; "" if the server does not list them.
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

// checkServing refuses models that cannot be measured by requests without state.
func checkServing(m payload.Model, streaming bool) error {
	switch {
	case m.Config.GetSequenceBatching() != nil:
		return exit.Usagef("model %q keeps state between requests (sequence_batching): such models are not measured", m.Name)
	case m.Config.GetModelTransactionPolicy().GetDecoupled() && !streaming:
		return exit.Usagef("model %q may answer a request several times (decoupled): measure it with -i grpc --streaming", m.Name)
	}
	return nil
}

// readGraph reads the model's file. It returns nil if the user names none.
func readGraph(path string) (*onnx.Model, error) {
	if path == "" {
		return nil, nil
	}
	graph, err := onnx.Read(path)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("--model-file: %w", err))
	}
	return graph, nil
}

// prepare encodes the requests for a model.
func (s *server) prepare(m payload.Model, source payload.Source) (payload.Set, perf.Target, error) {
	target := perf.Target{Target: wire.Target{Options: s.wire, AnswerSize: m.AnswerSize(source.Batch)}}
	set, err := payload.Make(m, source)
	if err != nil {
		return set, target, exit.With(exit.Usage, err)
	}
	for _, r := range set.Requests {
		prepared, err := wire.Prepare(s.wire, r.Infer, s.format, r.Expected)
		var bad *wire.InputError
		switch {
		case errors.As(err, &bad):
			return set, target, exit.Usagef("%s: %v", r.Origin, err)
		case err != nil:
			return set, target, err
		}
		target.Requests = append(target.Requests, prepared)
	}
	return set, target, nil
}

// composing lists the models that an ensemble calls, directly or through other ensembles, each
// once.
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

// together lists the models whose statistics are added up: those that the user names, else those of
// an ensemble.
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

// control opens the connection for control requests to the server.
func control(w wire.Options) (api.Control, error) {
	if w.Protocol == wire.HTTP {
		return api.OpenHTTP(w.Address, w.Access()), nil
	}
	return api.OpenGRPC(w.Address, w.Access())
}
