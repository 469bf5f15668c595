package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tuner/engine/api"
	"tuner/internal/durable"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/ort/provider"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// try lets the server of r load the model with the default configuration, which a campaign needs.
// It then tries each further execution provider of the space. The returned facts mark providers
// that it does not load as unavailable, with the server's message as the reason. try also returns
// the server's metadata. It stops the server at the end.
func try(ctx context.Context, p spec.Profile, m Model, facts search.Facts, r *runner.Runner) (search.Facts, api.ServerMetadata, error) {
	var about api.ServerMetadata
	defer r.Close(context.WithoutCancel(ctx))
	scratch, err := durable.NewScratch("", "tuner-try-")
	if err != nil {
		return facts, about, fmt.Errorf("cannot make a folder for the model: %w", err)
	}
	defer scratch.Close() // what stays is removed by the next one
	folder, err := filepath.Abs(scratch.Dir)
	if err != nil {
		return facts, about, fmt.Errorf("cannot resolve the folder of the model: %w", err)
	}
	variant, err := modelrepo.Build(folder, m.Source, m.Config)
	if err != nil {
		return facts, about, err
	}
	failure, err := load(ctx, r, variant, p, m.Config, search.Candidate{})
	if err != nil {
		return facts, about, err
	}
	if failure != nil {
		return facts, about, fmt.Errorf("it does not serve model %q with the default configuration: %s", m.Name, failure.Reason)
	}
	if about, err = r.Server(ctx); err != nil {
		return facts, about, err
	}
	if !slices.Contains(about.Extensions, api.ExtensionStatistics) {
		return facts, about, errors.New("it has no statistics of its models (extension statistics), which show what requests wait for")
	}
	for _, other := range otherProviders(p.Space(facts)) {
		candidate := search.NewCandidate(search.Setting{Knob: search.KnobExecutionProvider, Value: other})
		failure, err := load(ctx, r, variant, p, m.Config, candidate)
		if err != nil {
			return facts, about, err
		}
		if failure != nil {
			reason, _, _ := strings.Cut(failure.Reason, "\n")
			facts = without(facts, string(other), fmt.Sprintf("%s %s does not load the model: %s", about.Name, about.Version, reason))
		}
	}
	return facts, about, nil
}

// load lets a server load a variant with a candidate's configuration.
func load(ctx context.Context, r *runner.Runner, v modelrepo.Variant, p spec.Profile, base *modelconfig.Config, c search.Candidate) (*measure.Failure, error) {
	config, err := knobs.Apply(base, c)
	if err != nil {
		return nil, fmt.Errorf("%s: space: %w", p.Path, err)
	}
	text, err := modelconfig.FormatJSON(config)
	if err != nil {
		return nil, fmt.Errorf("cannot print configuration: %w", err)
	}
	return r.Try(ctx, runner.Job{Repository: v.Dir, Model: v.Model, Config: string(text)})
}

// otherProviders lists the execution providers of a space, except the default's and those already
// known to be unavailable.
func otherProviders(space search.Space) []search.Value {
	base := cmp.Or(space.Facts.Base[search.KnobExecutionProvider], provider.CPU)
	var others []search.Value
	for _, k := range space.Knobs {
		if k.Name != search.KnobExecutionProvider {
			continue
		}
		for _, v := range k.Values {
			if _, out := space.Facts.Unavailable[string(v)]; !out && v != base {
				others = append(others, v)
			}
		}
	}
	return others
}

// without returns facts in which an execution provider is unavailable.
func without(facts search.Facts, provider, reason string) search.Facts {
	add := func(known map[string]string) map[string]string {
		all := maps.Clone(known)
		if all == nil {
			all = map[string]string{}
		}
		if _, out := all[provider]; !out {
			all[provider] = reason
		}
		return all
	}
	facts.Unavailable, facts.Runtimes = add(facts.Unavailable), slices.Clone(facts.Runtimes)
	for i := range facts.Runtimes {
		facts.Runtimes[i].Unavailable = add(facts.Runtimes[i].Unavailable)
	}
	return facts
}
