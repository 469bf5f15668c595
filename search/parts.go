package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// Several models on one server are tuned together. A space then has a part for each model: an
// ordinary space of its own, with the model's knobs and facts. The folding rules look at parts alone.
// The names of models stand before the names of their knobs.

// Part is one of several models of a space.
type Part struct {
	Model string // name under which the model is served (IsModelName)
	// Space is that of the model alone, with its own knobs and facts. Its load has one level, at which
	// the model's traffic has scale 1.
	Space Space
}

// Joint makes the candidates of several models (package joint). Its methods are those of Candidates.
type Joint interface {
	PoolCount() (n int, exact bool)
	Batchers() int
	BatcherCombinations() (n int, ok bool)
	PoolWalk() func() (Candidate, bool)
	Member(pool Candidate, i int) Candidate
	Draw(random *rand.Rand) (Candidate, bool)
	Folds() []Fold
}

// reservedHeads are words before the dot in knobs of a single model: prefixes of session entries and
// messages of Triton's ModelConfig. Names of execution providers are others.
var reservedHeads = [...]string{
	strings.TrimSuffix(sessionoption.Prefix, "."), "parameters", "dynamic_batching", "sequence_batching", "optimization", "model_transaction_policy",
	"model_warmup", "response_cache", "ensemble_scheduling", "version_policy", "model_metrics", "model_operations",
}

// IsModelName reports whether several models may have a name: letters, digits, _ and -, a letter or
// digit first. A name must not be a word that stands before a dot in a knob of a single model.
func IsModelName(name string) bool {
	for i, r := range name {
		isWord := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !isWord && (i == 0 || r != '_' && r != '-') {
			return false
		}
	}
	return name != "" && !slices.Contains(reservedHeads[:], name) && len(provider.Of(name).Options) == 0
}

// JoinKnob puts a model's name before the name of its knob. Without a model it is the knob.
func JoinKnob(model, knob string) string {
	if model == "" {
		return knob
	}
	return model + "." + knob
}

// SplitKnob returns the model that a knob belongs to, and the knob's name without it. The model is ""
// for a knob of the server, or of a single model.
func SplitKnob(name string) (model, knob string) {
	if _, isPlain := scopeOf(name); isPlain {
		return "", name
	}
	head, rest, found := strings.Cut(name, ".")
	if !found || rest == "" || !IsModelName(head) {
		return "", name
	}
	return head, rest
}

// Of returns the configuration of one of several models, without its name before the knobs. It is the
// model's default configuration if the candidate sets none of its knobs. With "" it has the
// settings of the server.
func (c Candidate) Of(model string) Candidate {
	var own []Setting
	for _, s := range c.settings {
		if name, knob := SplitKnob(s.Knob); name == model {
			own = append(own, Setting{knob, s.Value})
		}
	}
	return Candidate{own}
}

// Joined returns the candidate with the configuration of one of several models replaced. The order of
// the settings is the space's.
func (s Space) Joined(c Candidate, model string, own Candidate) Candidate {
	all := map[string]Value{}
	for _, x := range c.settings {
		if name, _ := SplitKnob(x.Knob); name != model {
			all[x.Knob] = x.Value
		}
	}
	for _, x := range own.settings {
		all[JoinKnob(model, x.Knob)] = x.Value
	}
	var settings []Setting
	for _, k := range s.Knobs {
		if v, has := all[k.Name]; has {
			settings = append(settings, Setting{k.Name, v})
			delete(all, k.Name)
		}
	}
	for _, x := range slices.Concat(c.settings, own.named(model)) { // knobs that the space does not list
		if v, has := all[x.Knob]; has {
			settings = append(settings, Setting{x.Knob, v})
			delete(all, x.Knob)
		}
	}
	return Candidate{settings}
}

// named returns the settings with a model's name before the knobs.
func (c Candidate) named(model string) []Setting {
	named := c.Settings()
	for i := range named {
		named[i].Knob = JoinKnob(model, named[i].Knob)
	}
	return named
}

// Part returns the part of a model; false if the space has none.
func (s Space) Part(model string) (Part, bool) {
	i := slices.IndexFunc(s.Parts, func(p Part) bool { return p.Model == model })
	if i < 0 {
		return Part{}, false
	}
	return s.Parts[i], true
}

// IsSeveral reports whether the space is that of several models.
func (s Space) IsSeveral() bool { return len(s.Parts) > 0 }

// IsPipeline reports whether the space is that of the stages of a pipeline: models that all get the load
// of one, which calls them.
func (s Space) IsPipeline() bool { return s.IsSeveral() && s.Load.Mix.IsZero() }

// base returns a knob's value in the default configuration, as Facts.base does.
func (s Space) base(name string) (Value, bool) {
	if !s.IsSeveral() {
		return s.Facts.base(name)
	}
	model, knob := SplitKnob(name)
	if model == "" {
		return IsolationShared, name == KnobIsolation
	}
	p, ok := s.Part(model)
	if !ok {
		return "", false
	}
	return p.Space.Facts.base(knob)
}

// Instances returns the number of instances of a candidate on all its devices, of all models
// together.
func (s Space) Instances(c Candidate) int {
	if !s.IsSeveral() {
		return s.Facts.Instances(c)
	}
	n := 0
	for _, p := range s.Parts {
		n += p.Space.Facts.Instances(c.Of(p.Model))
	}
	return n
}

// IsMixed reports whether the requests of a model have several shapes.
func (s Space) IsMixed() bool {
	return s.Facts.Mix != nil || slices.ContainsFunc(s.Parts, func(p Part) bool { return p.Space.Facts.Mix != nil })
}

// canonicalParts is Canonical for several models.
func (s Space) canonicalParts(raw Candidate) (c Candidate, illegal string) {
	c = Candidate{raw.Of("").settings}
	for _, p := range s.Parts {
		own, illegal := p.Space.Canonical(raw.Of(p.Model))
		if illegal != "" {
			return Candidate{}, fmt.Sprintf("%s: %s", p.Model, illegal)
		}
		c.settings = append(c.settings, own.named(p.Model)...)
	}
	return c, ""
}

// Movable returns a space with at least one knob: a model without knobs has its default configuration,
// written as the number of its instances.
func Movable(s Space) Space {
	if len(s.Knobs) > 0 {
		return s
	}
	count := IntValue(s.Facts.Instances(Candidate{}))
	s.Knobs = []Knob{{Name: KnobInstanceCount, Scope: ScopePool, Values: []Value{count}}}
	s.Facts.Base = map[string]Value{KnobInstanceCount: count}
	return s
}
