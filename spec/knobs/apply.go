package knobs

import (
	"errors"
	"fmt"
	"strings"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/sessionoption"
	"tuner/search"
)

// Apply returns the configuration that serves the candidate: a copy of base with the candidate's
// knobs. base should be complete (modelconfig.Complete). The default candidate gives base.
// Precision and runtime are not part of a configuration: they select the model file and the
// server's library.
func Apply(base *modelconfig.Config, c search.Candidate) (*modelconfig.Config, error) {
	if c.IsDefault() {
		return base, nil
	}
	a := applier{candidate: c, config: modelconfig.Clone(base)}
	if err := a.fields(); err != nil { // first, since some are session options, which the knobs change
		return nil, fmt.Errorf("cannot configure %s: %w", c, err)
	}
	var err error
	if a.options, err = modelconfig.ORTOptions(a.config); err != nil {
		return nil, fmt.Errorf("cannot read the session options of model %q: %w", base.GetName(), err)
	}
	a.serving = servingOf(a.config, a.options, c)
	steps := []func() error{a.sessionKnobs, a.provider, a.providerOptions, a.instances, a.batching}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("cannot configure %s: %w", c, err)
		}
	}
	applied := modelconfig.SetORTOptions(a.config, a.options)
	if err := modelconfig.Validate(applied); err != nil {
		return nil, fmt.Errorf("cannot configure %s: %w", c, err)
	}
	return applied, nil
}

// applier is a configuration under construction.
type applier struct {
	candidate search.Candidate
	config    *modelconfig.Config
	options   modelconfig.Options
	serving   search.Serving // values of batcher, instances and threads to write
}

// servingOf reads a candidate whose knobs are set in a configuration with these session options.
func servingOf(config *modelconfig.Config, o modelconfig.Options, c search.Candidate) search.Serving {
	facts := search.Facts{
		Batching: true, BaseMaxBatchSize: int(config.GetMaxBatchSize()), BaseInstances: modelconfig.Instances(config, 1),
		Base: baseWith(config, o),
	}
	return search.Space{Facts: facts}.Serving(c)
}

// whole reads an integer knob. set is false if the candidate does not set it.
func (a *applier) whole(knob string) (n int, set bool, err error) {
	v, set := a.candidate.Get(knob)
	if !set {
		return 0, false, nil
	}
	n, err = v.Int()
	if err == nil && (n < 0 || n > 1<<31-1) {
		err = fmt.Errorf("%d is not a number from 0 to %d", n, 1<<31-1)
	}
	return n, true, err
}

// sessionKnobs sets ONNX Runtime's session options.
func (a *applier) sessionKnobs() error {
	for _, s := range a.candidate.Settings() {
		if err := a.sessionKnob(s.Knob, s.Value); err != nil {
			return fmt.Errorf("%s: %w", s.Knob, err)
		}
	}
	return nil
}

func (a *applier) sessionKnob(knob string, v search.Value) error {
	if option, known := sessionoption.Find(knob); known {
		return a.options.Set(option, string(v))
	}
	if sessionoption.IsEntry(knob) {
		a.options.SetEntry(knob, string(v))
	}
	return nil
}

// provider moves the model to an execution provider, with the settings of a stock Triton.
func (a *applier) provider() error {
	name, set := a.candidate.Get(search.KnobExecutionProvider)
	if !set {
		return nil
	}
	kind := a.options.UseProvider(string(name))
	for _, g := range a.groups() {
		if g.Kind != kind {
			g.Kind, g.Gpus = kind, nil
		}
	}
	return nil
}

// providerOptions sets the options of execution providers. The search does not set those of
// providers other than the chosen one.
func (a *applier) providerOptions() error {
	for _, s := range a.candidate.Settings() {
		if of, option, ok := search.ProviderOption(s.Knob); ok {
			a.options.SetProviderOption(of, option, string(s.Value))
		}
	}
	return nil
}

// groups returns the instance groups. For a configuration without any it returns one on the CPU.
func (a *applier) groups() []*configpb.ModelInstanceGroup {
	if len(a.config.InstanceGroup) == 0 {
		a.config.InstanceGroup = []*configpb.ModelInstanceGroup{{Kind: configpb.ModelInstanceGroup_KIND_CPU}}
	}
	return a.config.InstanceGroup
}

// instances sets the count of the instance group, and keeps its kind and host policy.
func (a *applier) instances() error {
	if _, set, err := a.whole(search.KnobInstanceCount); err != nil || !set {
		return err
	}
	groups := a.groups()
	if len(groups) > 1 {
		return fmt.Errorf("the model's configuration has %d instance groups; %s needs a single one", len(groups), search.KnobInstanceCount)
	}
	groups[0].Count = int32(a.serving.Instances / a.serving.Devices)
	return nil
}

// batching sets the batch size and the dynamic batcher. If the batch size changes, the base's
// preferred sizes no longer fit and are dropped. The server then prefers full batches.
func (a *applier) batching() error {
	if err := a.checkBatcherKnobs(); err != nil {
		return err
	}
	a.config.MaxBatchSize = int32(a.serving.MaxBatch)
	if !a.serving.Dynamic {
		if a.serving.MaxBatch == 0 && a.config.GetDynamicBatching() != nil {
			a.config.SchedulingChoice = nil
		}
		return nil
	}
	b, err := a.batcher()
	if err != nil {
		return err
	}
	b.PreferredBatchSize = nil
	if sizes := a.serving.Preferred; len(sizes) > 0 {
		b.PreferredBatchSize = mapped(sizes, func(n int) int32 { return int32(n) })
	}
	b.MaxQueueDelayMicroseconds = uint64(a.serving.Delay.Microseconds())
	return nil
}

// checkBatcherKnobs refuses invalid values of the batcher's knobs, and knobs that need a batcher if
// nothing is batched.
func (a *applier) checkBatcherKnobs() error {
	if _, _, err := a.whole(search.KnobMaxBatchSize); err != nil {
		return err
	}
	if v, set := a.candidate.Get(search.KnobPreferredBatchSize); set {
		if _, err := v.Ints(); err != nil {
			return err
		}
	}
	if v, set := a.candidate.Get(search.KnobMaxQueueDelay); set {
		if _, err := v.Duration(); err != nil {
			return err
		}
	}
	if a.serving.MaxBatch == 0 && a.candidate.NeedsBatcher() {
		return fmt.Errorf("batching needs a %s above 0", search.KnobMaxBatchSize)
	}
	return nil
}

// batcher returns the dynamic batcher. For a configuration without a scheduler it makes a new one.
func (a *applier) batcher() (*configpb.ModelDynamicBatching, error) {
	switch s := a.config.SchedulingChoice.(type) {
	case *configpb.ModelConfig_DynamicBatching:
		return s.DynamicBatching, nil
	case nil:
		b := &configpb.ModelDynamicBatching{}
		a.config.SchedulingChoice = &configpb.ModelConfig_DynamicBatching{DynamicBatching: b}
		return b, nil
	}
	return nil, errors.New("the model's configuration has another scheduler than dynamic_batching")
}

// fields sets parameters and ModelConfig fields, and refuses other names that are no knobs.
func (a *applier) fields() error {
	for _, s := range a.candidate.Settings() {
		if _, isKnob := search.KnobScope(s.Knob); isKnob {
			continue
		}
		if key, found := strings.CutPrefix(s.Knob, parametersField+"."); found {
			if a.config.Parameters == nil {
				a.config.Parameters = map[string]*configpb.ModelParameter{}
			}
			a.config.Parameters[key] = &configpb.ModelParameter{StringValue: string(s.Value)}
			continue
		}
		if err := setConfigField(a.config, s.Knob, s.Value); err != nil {
			return fmt.Errorf("%q: %w", s.Knob, err)
		}
	}
	for i, g := range a.config.GetInstanceGroup() {
		if g.GetName() == "" { // Triton completes a configuration in this way, and base is complete
			g.Name = fmt.Sprintf("%s_%d", a.config.GetName(), i)
		}
	}
	return nil
}
