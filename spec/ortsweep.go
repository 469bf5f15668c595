package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/spec/document"
)

// Sweep is an ortsweep.yaml with its defaults filled in: what `tuner ortsweep` searches. It is a
// profile.yaml with only artifact and engine knobs. Instead of loads, objective and constraints it
// has the measure of a session. It is immutable.
type Sweep struct {
	Profile
	Measure  string // SweepLatency or SweepThroughput
	Batch    int    // rows per request, ≥ 1
	Sessions int    // number of parallel sessions, ≥ 1; 1 for latency

	// usual: the file has no space. Space then adds threads once the cores are known, and
	// WithRuntimes adds builds.
	usual bool
}

// The measures of a sweep.
const (
	SweepLatency    = "latency"    // mean compute time of one execution, one session, one client
	SweepThroughput = "throughput" // rows per second of all sessions, none of which is ever idle
)

// usualSweep is the space of an ortsweep.yaml without one. The machine's cores add
// intra_op_threads.
func usualSweep() string {
	text := "execution_provider: auto\nprecision: [" + strings.Join(recipe.Usual(false), ", ") + "]\n"
	for _, s := range sessionoption.Swept() {
		values := strings.Join(s.Values, ", ")
		if sessionoption.IsEntry(s.Name) { // its values are texts
			values = `"` + strings.Join(s.Values, `", "`) + `"`
		}
		text += fmt.Sprintf("%s: [%s]\n", s.Name, values)
	}
	return text
}

// ParseSweep reads an ortsweep.yaml. path is its file name for errors. Relative paths in the file
// are relative to its folder. The error is a document.Errors with every mistake of the
// file.
func ParseSweep(path string, text []byte) (Sweep, error) {
	d := document.New(path, "`tuner ortsweep MODEL` needs no file")
	s := Sweep{Profile: profileDefaults(), Measure: SweepLatency, Batch: 1, Sessions: 1}
	s.Path, s.Text, s.DeployTarget = path, slices.Clone(text), TargetTuner
	s.Search = Search{Budget: search.Budget{Time: 3 * time.Minute}, Seed: 1, Window: 250 * time.Millisecond}
	root, ok := d.Open(text)
	if !ok || isForeign(root) {
		return Sweep{}, d.Err()
	}
	s.Accuracy.Unchecked = isUnchecked(root)
	r := sweepReader{profileReader{p: &s.Profile}, &s}
	given := root.Mapping(r.fields(), r.ofProfile)
	if _, has := given["space"]; !has {
		r.usualSpace(path)
	}
	r.check(root, given)
	r.checkSweep(given)
	if err := d.Err(); err != nil {
		return Sweep{}, err
	}
	if s.Accuracy.Limit == nil && s.hasVariants() { // the winner is deployed with its provider
		s.Accuracy.Limit = DefaultLimit()
	}
	named := s.Output != ""
	s.Profile = s.defaulted()
	if !named {
		s.Output = document.RelativeTo(path, filepath.Join("out", s.Name+"-ortsweep"))
	}
	return s, nil
}

// sweepReader reads the fields of an ortsweep.yaml into s, and those of a profile into the profile
// in it.
type sweepReader struct {
	profileReader
	s *Sweep
}

// ofBoth lists the fields with the same meaning in a profile.yaml.
func ofBoth() []string {
	return []string{"model", "config", addon.FileField, "name", "output", "deploy_target", "space", "accuracy", "constraints"}
}

func (r sweepReader) fields() []document.Field {
	shared := slices.DeleteFunc(r.profileReader.fields(), func(f document.Field) bool { return !slices.Contains(ofBoth(), f.Name) })
	count := func(target *int) func(document.Value) {
		return func(v document.Value) {
			if n, ok := v.Whole(1, 1<<20); ok {
				*target = int(n)
			}
		}
	}
	return append(shared,
		document.Field{Name: "measure", Read: func(v document.Value) { setWord(v, &r.s.Measure, []string{SweepLatency, SweepThroughput}) }},
		document.Field{Name: "batch", Read: count(&r.s.Batch)},
		document.Field{Name: "sessions", Read: count(&r.s.Sessions)},
		document.Field{Name: "search", Read: r.search},
		document.Field{Name: "load", Read: func(v document.Value) { v.Mapping([]document.Field{{Name: "inputs", Read: r.inputs}}, r.ofProfile) }},
	)
}

// search reads the fields of a profile's search that apply here.
func (r sweepReader) search(v document.Value) {
	s := &r.p.Search
	v.Mapping([]document.Field{
		{Name: "budget", Read: func(v document.Value) {
			if d, ok := v.DurationWithin(shortestBudget, longestBudget); ok {
				s.Budget.Time = d
			}
		}},
		{Name: "seed", Read: func(v document.Value) {
			if n, ok := v.Whole(0, 1<<62); ok {
				s.Seed = uint64(n)
			}
		}},
		{Name: "window", Read: func(v document.Value) {
			if d, ok := v.DurationWithin(shortestWindow, longestWindow); ok {
				s.Window = d
			}
		}},
	}, r.ofProfile)
}

// ofProfile accepts the fields that only a profile.yaml has.
func (r sweepReader) ofProfile(key, _ document.Value) bool {
	all := append(document.Names(r.profileReader.fields()), "strategy", "earlier", "concurrency", "client_batch_size", "request_rate")
	if !slices.Contains(all, key.Node.Value) {
		return false
	}
	e := document.Error{Problem: "belongs to a profile.yaml: ortsweep measures sessions without a batching server"}
	if key.Node.Value == "client_batch_size" {
		e.Hint = "write batch: N"
	}
	key.Fail(e)
	return true
}

// usualSpace reads the default space for a file without one.
func (r sweepReader) usualSpace(path string) {
	d := document.New(path, "")
	if root, ok := d.Open([]byte(usualSweep())); ok {
		r.space(root)
	}
	r.s.usual = true
}

// checkSweep reports knobs that are not a session's, constraints other than accuracy, and more than
// one session for latency.
func (r sweepReader) checkSweep(given map[string]document.Value) {
	space := given["space"]
	for _, k := range r.p.Knobs {
		if k.Scope == search.ScopeArtifact || k.Scope == search.ScopeEngine {
			continue
		}
		e := document.Error{Problem: fmt.Sprintf("%s is not a setting of a session", k.Name), Allowed: "artifact and engine knobs (docs/reference/ortsweep.md)",
			Hint: "a profile.yaml searches what a server does with sessions"}
		if k.Name == search.KnobInstanceCount {
			e.Hint = "write sessions: N"
		}
		space.Fail(e)
	}
	if len(r.p.Goal.Constraints) > 0 {
		given["constraints"].Fail(document.Error{Problem: "names another constraint than accuracy", Allowed: "accuracy",
			Hint: "ortsweep has one figure, that of `measure:`; a profile.yaml searches within constraints"})
	}
	if r.s.Measure == SweepLatency && r.s.Sessions > 1 {
		given["sessions"].Fail(document.Error{Problem: "contradicts measure: latency, which is that of one session",
			Hint: "write measure: throughput, or remove the line"})
	}
}

// Space returns the sweep's space on the machine and with the model that facts describe.
func (s Sweep) Space(facts search.Facts) search.Space {
	p := s.Profile
	if s.usual {
		threads := search.Knob{Name: search.KnobIntraOpThreads, Scope: search.ScopeEngine, Values: intValues(powers(max(1, facts.Cores)))}
		p.Knobs = append([]search.Knob{threads}, p.Knobs...)
	}
	space := p.Space(facts)
	space.Load = search.LoadAxis{Levels: []float64{1}, BatchSize: s.Batch}
	return space
}

// WithRuntimes returns the sweep over several ONNX Runtime builds, the default's first, if its file
// has no space. A file with a space names its builds itself.
func (s Sweep) WithRuntimes(selectors []string) Sweep {
	if !s.usual || len(selectors) < 2 {
		return s
	}
	builds := search.Knob{Name: search.KnobRuntime, Scope: search.ScopeArtifact,
		Values: mapped(selectors, func(name string) search.Value { return search.Value(name) })}
	s.Knobs = append([]search.Knob{builds}, s.Knobs...)
	return s
}
