package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/modelconfig"
	"tuner/provider"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// TryServer has the server of r load the subject's original model: with the default configuration, without which there is no campaign (an
// InputError), and with each further execution provider of the space. Those that it does not load are unavailable in the facts that are
// returned, with the server's words as the reason. The server is stopped again; what it says of itself is returned, too.
func TryServer(ctx context.Context, p spec.Profile, s Subject, facts search.Facts, r *runner.Runner) (search.Facts, api.ServerMetadata, error) {
	var about api.ServerMetadata
	defer r.Close(context.WithoutCancel(ctx))
	folder, err := os.MkdirTemp("", "tuner-try-")
	if err != nil {
		return facts, about, fmt.Errorf("cannot make a folder for the model: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // a temporary one
	variant, err := s.build(folder, s.Files[0])
	if err != nil {
		return facts, about, err
	}
	try := func(c search.Candidate) (*measure.Failure, error) {
		config, err := spec.Apply(s.Config, c)
		if err != nil {
			return nil, &InputError{fmt.Errorf("%s: space: %w", p.Path, err)}
		}
		text, err := modelconfig.FormatJSON(config)
		if err != nil {
			return nil, fmt.Errorf("cannot print configuration: %w", err)
		}
		return r.Try(ctx, runner.Job{Repository: variant.Dir, Model: variant.Model, Config: string(text)})
	}
	failure, err := try(search.Candidate{})
	if err != nil {
		return facts, about, err
	}
	if failure != nil {
		return facts, about, &InputError{fmt.Errorf("it does not serve model %q with the default configuration: %s", s.Name, failure.Reason)}
	}
	if about, err = r.Server(ctx); err != nil {
		return facts, about, err
	}
	if !slices.Contains(about.Extensions, api.ExtensionStatistics) {
		return facts, about, &InputError{errors.New("it gives no statistics of its models (extension statistics), which say what the requests waited for")}
	}
	for _, provider := range otherProviders(p.Space(facts)) {
		failure, err := try(search.NewCandidate(search.Setting{Knob: search.KnobExecutionProvider, Value: provider}))
		if err != nil {
			return facts, about, err
		}
		if failure != nil {
			reason, _, _ := strings.Cut(failure.Reason, "\n")
			facts = without(facts, string(provider), fmt.Sprintf("%s %s does not load the model: %s", about.Name, about.Version, reason))
		}
	}
	return facts, about, nil
}

// otherProviders lists the execution providers of a space that nothing is known against, but for the default's.
func otherProviders(space search.Space) []search.Value {
	base := space.Facts.Base[search.KnobExecutionProvider]
	if base == "" {
		base = provider.CPU
	}
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

// without returns the facts of a machine on which an execution provider does not work.
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
