// Package ortsweep finds the best settings of an ONNX Runtime session for one model without a
// batching server. The settings are execution provider, build, precision, threads, execution mode,
// graph optimization, memory, spinning, session entries, and provider options.
//
// It stands beside profile. It takes a sweep's specification, races candidates on engine processes
// (package race decides, runner measures), and writes a result with files. It does not know
// batchers or loads, and never runs ONNX Runtime itself.
package ortsweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/ortsweep/race"
	"tuner/ortsweep/snippet"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// Setup has everything on which a sweep depends. Its Profile is the sweep's.
type Setup struct {
	profile.Setup
	Sweep spec.Sweep

	device modelconfig.Device // of a session on the CPU in an engine process
}

// Check returns the reason why a model cannot be swept. batching means that its first dimension is
// a batch of any size, and its configuration has batches. Errors are profile.InputErrors.
func Check(sweep spec.Sweep, s profile.Subject, batching bool) error {
	if sweep.Batch > 1 && !batching {
		reason := "the model has no symbolic batch dimension; choose a batch of 1, or make the dimension symbolic (`tuner convert` does where the graph allows)"
		if s.Config.GetMaxBatchSize() == 0 && profile.Signature(s.Model).CanBatch() {
			reason = fmt.Sprintf("max_batch_size of its configuration is 0; raise it to %d and leave the batch dimension out of dims, or choose a batch of 1", sweep.Batch)
		}
		return &profile.InputError{Err: fmt.Errorf("%s: cannot run %q with batch %d: %s", spec.Place(sweep.Path, "batch", "batch"), s.Files[0].Source.Path, sweep.Batch, reason)}
	}
	if n := len(s.Config.InstanceGroup); n > 1 {
		return &profile.InputError{Err: fmt.Errorf("%s: config: cannot sweep a configuration of %d instance groups; leave one", sweep.Path, n)}
	}
	return nil
}

// NewSetup makes the default: the user's configuration without its batcher, with as many instances
// as sessions. Errors are Check's.
func NewSetup(sweep spec.Sweep, s profile.Setup) (Setup, error) {
	if err := Check(sweep, s.Subject, s.Facts.Batching); err != nil {
		return Setup{}, err
	}
	config := modelconfig.Clone(s.Subject.Config)
	config.SchedulingChoice = nil
	if s.Facts.Batching {
		config.MaxBatchSize = max(config.MaxBatchSize, int32(sweep.Batch))
	}
	if len(config.InstanceGroup) == 0 {
		config.InstanceGroup = []*configpb.ModelInstanceGroup{{Kind: configpb.ModelInstanceGroup_KIND_CPU}}
	}
	config.InstanceGroup[0].Count = int32(sweep.Sessions)
	s.Profile, s.Subject.Config = sweep.Profile, config
	s.Facts.BaseInstances, s.Facts.BaseMaxBatchSize, s.Facts.GPUs = sweep.Sessions, int(config.MaxBatchSize), 1
	return Setup{Setup: s, Sweep: sweep, device: deviceOf(runtime.NumCPU())}, nil // a child inherits the affinity of its parent
}

// deviceOf returns the device that the engine finds where it may use so many cores.
func deviceOf(cores int) modelconfig.Device {
	return modelconfig.Device{Cores: cores, Bound: !hostinfo.IsWhole(cores)}
}

// pin puts the sessions of a configuration on one GPU, the first in its list. An instance group
// makes its count of instances on each GPU, and a sweep's programs use one device.
func pin(config *modelconfig.Config) {
	for _, g := range config.GetInstanceGroup() {
		if g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU {
			g.Gpus = append(g.Gpus, 0)[:1]
		}
	}
}

// config returns the configuration of a candidate, with its sessions on one device.
func (s Setup) config(c search.Candidate) (*modelconfig.Config, error) {
	config, err := knobs.Apply(s.Subject.Config, c)
	if err != nil {
		return nil, err
	}
	config = modelconfig.Clone(config) // for the default it is the default's own
	pin(config)
	return config, nil
}

// given returns the options that ONNX Runtime receives for a candidate's configuration.
func (s Setup) given(config *modelconfig.Config) (modelconfig.Options, []modelconfig.Provider, error) {
	options, err := modelconfig.ORTOptions(config)
	if err != nil {
		return options, nil, err
	}
	at := s.device
	for _, g := range config.GetInstanceGroup() {
		if g.GetKind() == configpb.ModelInstanceGroup_KIND_GPU {
			at.OnGPU, at.GPU = true, int(g.GetGpus()[0])
		}
	}
	return snippet.Given(options, at)
}

// Race returns the race of a sweep. Values of knobs that change nothing or are not available here
// are left out, and returned with the reasons.
func (s Setup) Race() (*race.Race, []race.Out) {
	canonical := s.canon()
	knobs, outs := canonical.prune()
	return race.New(race.Settings{
		Knobs: knobs, Canonical: canonical.of, HigherBetter: s.Sweep.Measure == spec.SweepThroughput,
		Budget: s.Sweep.Search.Budget.Time, Window: s.Sweep.Search.Window, Seed: s.Sweep.Search.Seed,
	}), outs
}

// canon determines which candidates have the same session.
type canon struct {
	setup Setup
	space search.Space
	// sessions: results of session by candidate's key, since a product needs many of them again
	sessions map[string]string
}

func (s Setup) canon() canon {
	return canon{setup: s, space: s.Sweep.Space(s.Facts), sessions: map[string]string{}}
}

// prune drops the values of knobs that no candidate needs: defaults, and execution providers that
// create no session with any build here. The latter are returned with the reason.
func (k canon) prune() (knobs []search.Knob, outs []race.Out) {
	for _, knob := range k.space.Knobs {
		var kept []search.Value
		for _, v := range knob.Values {
			alone := search.NewCandidate(search.Setting{Knob: knob.Name, Value: v})
			c, out := k.of(alone)
			switch {
			case out != "" && knob.Name == search.KnobExecutionProvider && k.unavailable(v):
				outs = append(outs, race.Out{Candidate: alone, Reason: out})
			case c.IsDefault() && out == "" && k.meansAlone(knob.Name):
			default:
				kept = append(kept, v)
			}
		}
		if len(kept) > 0 {
			knobs = append(knobs, search.Knob{Name: knob.Name, Scope: knob.Scope, Values: kept})
		}
	}
	return knobs, outs
}

// meansAlone reports whether a knob has an effect without another one. The default spinning of idle
// threads depends on the provider: with a provider that has its own pool they do not spin.
func (k canon) meansAlone(knob string) bool {
	if knob == sessionoption.AllowSpinning || knob == sessionoption.IntraSpinning {
		return !slices.ContainsFunc(provider.All(), func(p provider.Provider) bool { return p.HasPoolBeside() && k.tries(search.Value(p.Name)) })
	}
	_, _, isOption := search.ProviderOption(knob)
	return !isOption && sessionoption.Of(knob).Needs.Option == ""
}

// tries reports whether an execution provider is among the candidates.
func (k canon) tries(of search.Value) bool {
	_, out := k.of(search.NewCandidate(search.Setting{Knob: search.KnobExecutionProvider, Value: of}))
	return out == "" && slices.ContainsFunc(k.space.Knobs, func(o search.Knob) bool {
		return o.Name == search.KnobExecutionProvider && slices.Contains(o.Values, of)
	})
}

// unavailable reports whether no build has the execution provider.
func (k canon) unavailable(of search.Value) bool {
	if len(k.space.Facts.Runtimes) == 0 {
		return true // the rule has reported it
	}
	return !slices.ContainsFunc(k.space.Facts.Runtimes, func(r search.RuntimeFacts) bool {
		_, out := r.Unavailable[string(of)]
		return !out
	})
}

// of returns the candidate with the fewest settings that has the same session as c, or the reason
// why c is left out.
func (k canon) of(c search.Candidate) (search.Candidate, string) {
	folded, out := k.space.Canonical(c)
	if out != "" {
		return search.Candidate{}, out
	}
	session, err := k.session(folded)
	if err != nil {
		return search.Candidate{}, err.Error()
	}
	for _, s := range folded.Settings() {
		less := search.NewCandidate(slices.DeleteFunc(folded.Settings(), func(o search.Setting) bool { return o == s })...)
		// A setting may be dropped only if the rules of the space keep the rest. For example, an
		// execution provider's option needs the provider.
		kept, out := k.space.Canonical(less)
		if same, err := k.session(less); out == "" && kept.Key() == less.Key() && err == nil && same == session {
			folded = less
		}
	}
	if len(folded.Settings()) == 0 {
		return search.Candidate{}, ""
	}
	return folded, ""
}

// session returns a text that is equal for candidates with the same session.
func (k canon) session(c search.Candidate) (string, error) {
	key := c.Key()
	if text, ok := k.sessions[key]; ok {
		return text, nil
	}
	config, err := k.setup.config(c)
	if err != nil {
		return "", err
	}
	options, providers, err := k.setup.given(config)
	if err != nil {
		return "", fmt.Errorf("cannot read the session options of %s: %w", c, err)
	}
	kinds := make([]configpb.ModelInstanceGroup_Kind, len(config.InstanceGroup))
	for i, g := range config.InstanceGroup {
		kinds[i] = g.Kind
	}
	text, err := json.Marshal(struct {
		Options            modelconfig.Options
		Providers          []modelconfig.Provider
		Kinds              []configpb.ModelInstanceGroup_Kind
		Precision, Runtime string
	}{normal(options), providers, kinds, precisionOf(c), k.runtimeOf(c)})
	if err != nil {
		return "", fmt.Errorf("cannot describe the session of %s: %w", c, err)
	}
	k.sessions[key] = string(text)
	return string(text), nil
}

// normal removes the settings that equal ONNX Runtime's defaults or have no effect. A session with
// such a setting then equals one without it.
func normal(o modelconfig.Options) modelconfig.Options {
	settings := o.Settings
	o.Settings, o.Session = nil, maps.Clone(o.Session)
	for _, option := range sessionoption.All() {
		if value := settings.Value(option.Name); value != option.Default && settings.Meets(option.Needs) {
			o.Settings = o.Settings.With(option.Name, value)
		}
		for _, key := range option.Entries {
			if o.Session[key] == option.Code(option.Default) {
				delete(o.Session, key)
			}
		}
	}
	if settings.Value(sessionoption.ExecutionMode) != sessionoption.Parallel {
		delete(o.Session, sessionoption.InterSpinning) // that pool has no threads
	}
	if len(o.Session) == 0 {
		o.Session = nil
	}
	return o
}

// precisionOf returns the precision that serves a candidate.
func precisionOf(c search.Candidate) string {
	if v, ok := c.Get(search.KnobPrecision); ok {
		return string(v)
	}
	return recipe.Original
}

// runtimeOf returns the name of the build that serves a candidate, by default the first one.
func (k canon) runtimeOf(c search.Candidate) string {
	if v, ok := c.Get(search.KnobRuntime); ok {
		return string(v)
	}
	if len(k.space.Facts.Runtimes) > 0 {
		return k.space.Facts.Runtimes[0].Name
	}
	return ""
}

// Candidates lists the distinct candidates of a sweep, the default first. If there are more than
// limit, the list is cut and whole is false.
func (s Setup) Candidates(limit int) (list []search.Candidate, whole bool) {
	canonical := s.canon()
	knobs, _ := canonical.prune()
	list = []search.Candidate{{}}
	seen := map[string]bool{list[0].Key(): true}
	var turn func(c search.Candidate, rest []search.Knob) bool
	turn = func(c search.Candidate, rest []search.Knob) bool {
		if len(rest) > 0 {
			if !turn(c, rest[1:]) {
				return false
			}
			for _, v := range rest[0].Values {
				if !turn(c.With(rest[0].Name, v), rest[1:]) {
					return false
				}
			}
			return true
		}
		if legal, out := canonical.of(c); out == "" && !seen[legal.Key()] {
			seen[legal.Key()] = true
			list = append(list, legal)
		}
		return len(list) <= limit
	}
	if whole = turn(search.Candidate{}, knobs); !whole {
		list = list[:limit]
	}
	return list, whole
}
