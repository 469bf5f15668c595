package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/measure"
	"tuner/ort/addon"
	"tuner/search"
	"tuner/search/joint"
	"tuner/search/plan"
	"tuner/spec/document"
	"tuner/spec/goals"
	"tuner/spec/knobs"
	"tuner/spec/scale"
)

// Several models on one server are tuned together. Each has the fields of a profile that belong to a
// model, below its name in `models:`. All other fields are the server's and stay at the top.

// modelsField is the name of the section.
const modelsField = "models"

// MostModels is the largest number of models that are tuned together: the space is the product of
// theirs.
const MostModels = 16

// IsSeveral reports whether the profile is about several models on one server.
func (p Profile) IsSeveral() bool { return len(p.Models) > 0 }

// ModelNames lists the names of several models, in the file's order; none for one model.
func (p Profile) ModelNames() []string {
	return mapped(p.Models, func(m Profile) string { return m.Name })
}

// OwnTraffic lists the names of several models that each have traffic of their own; none for one model, and
// for the stages of a pipeline.
func (p Profile) OwnTraffic() []string {
	if p.IsPipeline() {
		return nil
	}
	return p.ModelNames()
}

// hasField reports whether a file has a field.
func hasField(root document.Value, name string) bool {
	return slices.ContainsFunc(root.Keys(), func(key document.Value) bool { return key.Node.Value == name })
}

// ofModel lists fields that belong to a model of several.
func ofModel() []string { return []string{"model", "config", "name", "space", "load", "accuracy"} }

// notOfSeveral lists fields that are not supported beside several models.
func notOfSeveral() []string {
	return []string{"mode", "price", "finals", addon.FileField, addon.ProviderField}
}

// readSeveral reads a profile of several models.
func (r profileReader) readSeveral(d *document.Document, root document.Value) (Profile, error) {
	nothing := func(document.Value) {}
	r.strategies, r.p.Search.Strategy = plan.OfSeveral(), ""
	fields := r.fields()
	for i, f := range fields { // several reads them, or refuses them
		if slices.Contains(slices.Concat(ofModel(), notOfSeveral(), []string{"objective", "weights", "constraints"}), f.Name) {
			fields[i].Read = nothing
		}
	}
	given := root.Mapping(fields, r.misplaced)
	checkObjective(given)
	r.checkServers(given)
	r.several(root, given)
	r.chooseStrategy(given["search"])
	if err := d.Err(); err != nil {
		return Profile{}, err
	}
	return r.p.defaultedSeveral(), nil
}

// chooseStrategy sets the strategy that the file leaves open, and reports one that does not know the
// goal.
func (r profileReader) chooseStrategy(section document.Value) {
	fitting := plan.OfSeveralFor(r.p.Goal)
	switch name := r.p.Search.Strategy; {
	case name == "":
		r.p.Search.Strategy = fitting[0]
	case !slices.Contains(fitting, name) && len(r.p.Goal.Objective.Terms) > 0:
		section.Child("strategy").Fail(document.Error{Problem: fmt.Sprintf("%q searches for the largest scale, which is not the objective", name),
			Allowed: strings.Join(fitting, ", "), Hint: "write objective: scale, or choose another strategy"})
	}
}

// ownFields lists the fields of a model in a profile of several.
func (r profileReader) ownFields() []document.Field {
	return []document.Field{
		{Name: "model", Read: r.model},
		{Name: "config", Read: func(v document.Value) { r.file(v, &r.p.Model.Config) }},
		{Name: "load", Read: r.load},
		{Name: "space", Read: r.space},
		{Name: "constraints", Read: func(v document.Value) {
			r.p.Goal.Constraints = ownConstraints(goals.Constraints(v, r.accuracyLimit), v)
		}},
		{Name: "accuracy", Read: r.accuracy},
	}
}

// ownConstraints reports limits of a model on figures that only the server has.
func ownConstraints(list []search.Constraint, v document.Value) []search.Constraint {
	for _, c := range list {
		if goals.IsServers(c.Metric) {
			v.Child(string(c.Metric)).Fail(document.Error{Problem: fmt.Sprintf("limits %s, which is a figure of the server and not of one model", c.Metric),
				Hint: fmt.Sprintf("write constraints: {%s: …} at the top of the file", c.Metric)})
		}
	}
	return list
}

// several reads the section models, and the fields at the top that depend on it. given are the
// fields of the file.
func (r profileReader) several(root document.Value, given map[string]document.Value) {
	section := given[modelsField]
	for _, name := range slices.Concat(ofModel(), notOfSeveral()) {
		field, has := given[name]
		switch {
		case !has:
		case slices.Contains(notOfSeveral(), name):
			field.Fail(document.Error{Problem: "is not supported beside models", Hint: "remove the line"})
		default:
			field.Fail(document.Error{Problem: "belongs to a model", Hint: fmt.Sprintf("write models: {NAME: {%s: …}}", name)})
		}
	}
	r.ownModels(section)
	if earlier := root.Child("search"); len(r.p.Search.Earlier) > 0 {
		earlier.Child("earlier").Fail(document.Error{Problem: "is not supported beside models: no campaign of several models can be reused yet", Hint: "remove the line"})
	}
	if mode := r.p.Runner.Mode; mode == RunnerRemote {
		given["runner"].Child("mode").Fail(document.Error{Problem: "is not supported beside models", Allowed: RunnerBundled + ", " + RunnerLocal})
	}
	r.p.Goal = goals.OfSeveral(given, mapped(r.p.Models, func(m Profile) goals.Model { return goals.Model{Name: m.Name, Constraints: m.Goal.Constraints} }))
	if r.p.Scales == nil {
		r.p.Scales = scale.Default()
	}
	if section.Mistakes() == 0 {
		r.checkTogether(section)
	}
}

// ownModels reads the models.
func (r profileReader) ownModels(section document.Value) {
	section.Mapping(nil, func(key, v document.Value) bool {
		if m, ok := r.ownModel(key, v); ok {
			r.p.Models = append(r.p.Models, m)
		}
		return true
	})
	CheckNumberOfModels(section, "NAME: {model: FILE, load: {request_rate: …}, …}")
	files := map[string]string{}
	for _, m := range r.p.Models {
		if other, twice := files[m.Model.Path]; twice {
			section.Child(m.Name).Child("model").Fail(document.Error{Problem: "is the file of " + other + ", too", Hint: "serve the model once, with the sum of both rates"})
		}
		files[m.Model.Path] = m.Name
	}
}

// ownModel reads one model. The result is a profile of it alone.
func (r profileReader) ownModel(key, v document.Value) (Profile, bool) {
	if !IsNameOfSeveral(key) {
		return Profile{}, false
	}
	m := r.newModel(key.Node.Value)
	m.Accuracy.Unchecked = isUnchecked(v)
	own := profileReader{p: &m}
	before := v.Mistakes()
	given := v.Mapping(own.ownFields(), misplacedOfModel)
	if v.Node.Kind != yaml.MappingNode {
		return Profile{}, false
	}
	if _, has := given["model"]; !has {
		v.Require("model", "an ONNX file or a Triton model folder", "add model: FILE")
	}
	own.checkSpaceOf(given)
	own.checkBatch(given)
	own.checkAccuracy(given)
	own.checkShare(v, given)
	if v.Mistakes() > before {
		return Profile{}, false
	}
	m = m.defaulted()
	m.Path = fmt.Sprintf("%s: %s.%s", r.p.Path, modelsField, m.Name)
	return m, true
}

// CheckNumberOfModels reports a section that has no model, or too many. entry shows the form of a model's entry.
func CheckNumberOfModels(section document.Value, entry string) {
	switch n := len(section.Node.Content) / 2; {
	case section.Node.Kind != yaml.MappingNode:
	case n == 0:
		section.Fail(document.Error{Problem: "has no model", Allowed: entry + ", at least one"})
	case n > MostModels:
		section.Fail(document.Error{Problem: fmt.Sprintf("has %d models", n), Allowed: fmt.Sprintf("at most %d", MostModels)})
	}
}

// IsNameOfSeveral reports whether a key can name one of several models. Another key is a mistake of the file.
func IsNameOfSeveral(key document.Value) bool {
	name := key.Node.Value
	if !search.IsModelName(name) {
		key.Fail(document.Error{Problem: "cannot be the name of one of several models", Allowed: "letters, digits, _ and - (not first); no word that begins a knob, such as session or parameters"})
		return false
	}
	if _, isMetric := measure.Metric(name).Info(); isMetric || name == string(measure.Scale) {
		key.Fail(document.Error{Problem: "collides with the metric of that name, since names stand before metrics", Hint: "choose another name"})
		return false
	}
	return true
}

// newModel returns the profile of one of several models alone, before its fields are read.
func (r profileReader) newModel(name string) Profile {
	m := profileDefaults()
	m.Path, m.Name, m.Output = r.p.Path, name, r.p.Output
	m.DeployTarget, m.Runner, m.Search = r.p.DeployTarget, r.p.Runner, r.p.Search
	m.Goal = search.Goal{Objective: goals.Single(measure.Throughput)}
	return m
}

// misplacedOfModel reports fields of the server below a model.
func misplacedOfModel(key, _ document.Value) bool {
	name := key.Node.Value
	if !slices.Contains(document.Names(profileReader{p: &Profile{}}.fields()), name) {
		return false
	}
	hint := "write it at the top of the file"
	if name == "name" {
		hint = "the model is served under its key in models"
	}
	key.Fail(document.Error{Problem: "does not belong to one of several models", Hint: hint})
	return true
}

// checkShare checks the traffic of one of several models: one rate or concurrency.
func (r profileReader) checkShare(v document.Value, given map[string]document.Value) {
	load, has := given["load"]
	axis := r.p.Load
	const allowed = "{request_rate: 120}, or {concurrency: 8}"
	switch {
	case !has:
		v.Require("load", allowed, "say how much traffic the model has; `scale` multiplies it")
	case load.Mistakes() > 0:
	case len(axis.Levels) != 1:
		load.Fail(document.Error{Problem: "must be one rate or concurrency: the traffic at scale 1", Allowed: allowed, Hint: "the range is `scale: {min: …, max: …}`, for all models"})
	case axis.Arrivals.HasPeriod():
		load.Child("arrivals").Fail(document.Error{Problem: "repeats, which is not supported beside models: common windows would have to hold whole periods of all", Allowed: "poisson, constant, {gamma: {cv: NUMBER}}"})
	}
}

// checkSpaceOf checks the knobs of a space against the server.
func (r profileReader) checkSpaceOf(given map[string]document.Value) {
	space, has := given["space"]
	if !has {
		return
	}
	isForTriton := r.p.DeployTarget == TargetTriton
	if isForTriton {
		knobs.CheckProviders(space, r.p.Knobs)
	}
	knobs.CheckFields(space, r.p.Knobs, r.p.UsesBundled(), isForTriton)
	knobs.CheckPlugIn(space, r.p.Knobs, false)
	if _, has := r.p.knob(search.KnobRuntime); has {
		space.Child(search.KnobRuntime).Fail(document.Error{Problem: "is not supported beside models, whose server has one build", Hint: "remove the line"})
	}
}

// checkTogether reports what no load can satisfy, and an objective that nothing bounds.
func (r profileReader) checkTogether(section document.Value) {
	if len(r.p.Scales) == 0 {
		return // a mistake in them was reported
	}
	most := slices.Max(r.p.Scales)
	seeksScale := slices.ContainsFunc(r.p.Goal.Objective.Terms, func(t search.Term) bool { return t.Metric == measure.Scale })
	for _, m := range r.p.Models {
		v := section.Child(m.Name)
		isBounded := false
		for _, c := range m.Goal.Constraints {
			info, _ := c.Metric.Info()
			isBounded = isBounded || info.Unit == measure.Seconds && c.Max != nil
			offered := m.Load.Levels[0] * float64(m.Load.BatchSize) * most
			if m.Load.Rate && c.Min != nil && info.Unit == measure.InferPerSecond && *c.Min > offered {
				v.Child("constraints").Child(string(c.Metric)).Fail(document.Error{
					Problem: fmt.Sprintf("cannot hold together with load: at scale %.4g, the highest, clients ask for %.4g inferences/s", most, offered),
					Hint:    "lower the limit, or raise request_rate or scale.max"})
			}
		}
		if seeksScale && !isBounded {
			v.Fail(document.Error{Problem: "has no limit on a latency, so nothing says how far its traffic can grow",
				Hint: "add constraints: {latency_p99: 50ms}, or choose weights for the objective"})
		}
	}
}

// isolation reads how several models share the cores.
func (r profileReader) isolation(v document.Value) {
	for _, e := range v.List() {
		if word, ok := e.Word([]string{string(search.IsolationShared), joint.IsolationCores}); ok {
			r.p.Isolation = document.AppendOnce(e, r.p.Isolation, search.Value(word))
		}
	}
}

// checkOfSeveral reports fields of several models in a profile of one.
func checkOfSeveral(given map[string]document.Value) {
	for _, name := range []string{"scale", "isolation"} {
		if v, has := given[name]; has {
			v.Fail(document.Error{Problem: "belongs to a profile of several models", Hint: "write models: {NAME: {model: FILE, …}}, or remove the line"})
		}
	}
}

// severalSpace is Space for several models. The facts of each are in facts.Parts.
func (p Profile) severalSpace(facts search.Facts) search.Space {
	parts := mapped(p.Models, func(m Profile) search.Part {
		return search.Part{Model: m.Name, Space: m.Space(facts.Parts[m.Name])}
	})
	if p.IsPipeline() {
		return joint.Pipeline(parts, p.Load, facts)
	}
	s, err := joint.Space(parts, joint.Isolation(p.Isolation, len(p.Models), facts.Cores), p.Scales, facts)
	if err != nil {
		panic("spec: " + err.Error()) // the reader has checked names and loads
	}
	return s
}

// DividesCores reports whether the models of a profile may have cores of their own.
func (p Profile) DividesCores() bool { return slices.Contains(p.Isolation, joint.IsolationCores) }

// CheckCores returns an error if the models of a profile cannot have cores of their own on a machine, as
// its isolation asks.
func (p Profile) CheckCores(cores int) error {
	if err := joint.CheckDivisions(len(p.Models), cores); p.DividesCores() && err != nil {
		return fmt.Errorf("%s: isolation: %w", p.Path, err)
	}
	return nil
}

// defaultedSeveral is defaulted for several models.
func (p Profile) defaultedSeveral() Profile {
	p.Name = strings.Join(p.ModelNames(), "+")
	p.Output = cmp.Or(p.Output, document.RelativeTo(p.Path, "out/"+p.Name))
	if len(p.Isolation) == 1 && p.Isolation[0] == search.IsolationShared {
		p.Isolation = nil
	}
	p.Models = slices.Clone(p.Models)
	for i := range p.Models {
		p.Models[i].Output, p.Models[i].Search = p.Output, p.Search
	}
	return p
}
