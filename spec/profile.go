// Package spec reads the user's files (docs/reference describes every field). profile.yaml
// describes what to search, and analyze.yaml describes the results. gate.yaml describes a gate, and
// ortsweep.yaml a sweep of session settings. The package stands at the beginning of the data flow.
// It turns text into values for search, profile and analyze. Package document reads the YAML, and
// package knobs the section `space:`.
//
// Reading is strict. All mistakes of a file are reported together, each with its line, the allowed
// values and a hint. Reading is also pure: it opens no file and does not inspect the machine.
// Therefore a campaign that is resumed from its journal reads the same. Facts about the machine
// come in as search.Facts, through Profile.Space and Profile.Settings.
package spec

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"tuner/internal/words"
	"tuner/model/modelconfig"
	"tuner/ort/addon"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec/document"
	"tuner/spec/goals"
	"tuner/spec/knobs"
	"tuner/spec/mixture"
	"tuner/spec/scale"
)

// Profile is a profile.yaml with its defaults filled in. It is immutable. File names are relative
// to the working folder, like the profile's own name.
type Profile struct {
	Path         string // of the YAML file
	Text         []byte // of the YAML file; shared, must not be changed
	Name         string // served name of the model
	Output       string // folder of the campaign: journal, results
	DeployTarget string // TargetTriton or TargetTuner
	// Mode: ModeOnline, ModeOffline, or "": sets goal and load if the file has none
	Mode     string
	Model    ModelSource
	Runner   Runner
	Finals   *Runner // runner that confirms the finalists and the default; nil: Runner
	Search   Search
	Knobs    []search.Knob   // in the file's order; nil without a space: see Space
	Load     search.LoadAxis // nil Levels for auto: see Space
	Inputs   Inputs
	Goal     search.Goal
	Accuracy Accuracy
	// Pipeline is the folder of a model that calls others: an ensemble, or a model with business logic of
	// its own. Models are then its stages, and Load, Inputs and Goal are its own. "": none.
	Pipeline string
	// Models are several models on one server, each as a profile of it alone: Name, Model, Knobs,
	// Load with one level, Inputs, Accuracy, and the constraints of its own. Their Path is for messages.
	// Empty for one model, which then is this profile's. Otherwise this profile has no Model, Knobs, Load
	// and Inputs, and its Goal names the models' metrics with their names.
	Models []Profile
	// Scales are the factors of the traffic of several models, ascending.
	Scales []float64
	// Isolation says how several models share the cores: search.IsolationShared, joint.IsolationCores, or both;
	// empty for the default, shared.
	Isolation []search.Value
}

// ModelSource has the places of the model's files.
type ModelSource struct {
	Path string // ONNX file, or Triton model folder
	// Config: config.pbtxt of the default configuration, for an ONNX file; "" for Triton's
	// auto-completion
	Config string
	// Precisions maps each name of the precision knob to its ONNX file. The original maps to Path by
	// default. If Path is a folder, that means the folder's own model file.
	Precisions map[string]string
	// Convert lists the precisions to make from the original, in the file's order: some of
	// recipe.Made.
	Convert []string
	// Libraries that the server opens beside ONNX Runtime
	Libraries addon.Libraries
}

// The deployment targets of a configuration: a stock Triton server, or this program's own engine
// with all its options.
const (
	TargetTriton = "triton"
	TargetTuner  = "tuner"
)

// Runner describes the measured server and the connection to it. Fields of other modes are zero.
type Runner struct {
	Mode     string // RunnerBundled, RunnerLocal or RunnerRemote
	Protocol string // ProtocolGRPC or ProtocolHTTP

	Server      string            // local: path of tritonserver, or of a program with the same options
	Args        []string          // local: additional options
	Environment map[string]string // local: variables in addition to the program's own
	Log         string            // local: file to which its output is appended; "" for none

	URL        string // remote: [SCHEME://]HOST[:PORT], see Address
	MetricsURL string // remote: address of its metrics page; "" for none
	// Repository: remote: the server's model repository as a folder here; "": files are sent to the
	// server
	Repository string
	// Headers: remote: header fields of every request (gRPC: metadata); $NAME stands for an
	// environment variable
	Headers map[string]string
	TLS     TLSFiles // remote
}

// DefaultServer is the default program of RunnerLocal.
const DefaultServer = "tritonserver"

// TLSFiles are the PEM files of TLS connections. All may be "".
type TLSFiles struct {
	CA          string // trusted authorities; "": the system's
	Certificate string // the client's certificate, with its chain
	Key         string
}

// The values of Runner's fields.
const (
	RunnerBundled = "bundled" // this program's engine
	RunnerLocal   = "local"   // a tritonserver that is launched for each pool
	RunnerRemote  = "remote"  // a server that is running already
	ProtocolGRPC  = "grpc"
	ProtocolHTTP  = "http"
)

// Search configures the search.
type Search struct {
	Strategy string // one of plan.Names, or of plan.OfSeveral
	Budget   search.Budget
	Seed     uint64
	Window   time.Duration // length of one measurement window
	Earlier  []string      // output folders or journals of earlier campaigns to reuse
	// Confidence is the required probability, between 0.5 and 1, that the recommended configuration
	// keeps the constraints. 0 is the search's default (verdict.Confidence).
	Confidence float64
	// Until is a relative gain between 0 and 1. The search ends when no other configuration is
	// likely to be better by more than that. 0 means no limit: the search continues while any trial
	// is worthwhile.
	Until float64
}

// Inputs describes the content of requests.
type Inputs struct {
	// Data is a file or folder with rows from which requests are drawn; "" for random values. The
	// rows have the sizes then, and the file names none.
	Data string
	// Shape sets the sizes of inputs with symbolic dimensions in a request, without the batch
	// dimension. Every dimension is ≥ 1. With Data, the sizes are known once the rows are read.
	Shape map[string][]int64
	// Mix has the shapes of requests that differ; the zero value for one shape. Shape has the sizes
	// that it leaves out.
	Mix mixture.Mix
	// Pad has the values with which inputs are padded; 0 for those that it leaves out.
	Pad map[string]int64
	// Examples has the inputs whose shape is tuner's example and not the user's, with the reason for
	// its sizes: "a text of 128 tokens". Of an input without a size of its own, the values are examples:
	// "texts of 1 to 3 English sentences". Reports show this. Files of earlier versions have no reasons.
	Examples map[string]string
}

// ParseProfile reads a profile.yaml. path is its file name for errors. Relative paths in the file
// are relative to its folder. The error is a document.Errors with every mistake of the
// file.
func ParseProfile(path string, text []byte) (Profile, error) {
	return readProfile(path, document.New(path, initHint), text)
}

// RecordedProfile is ParseProfile for the text in a journal. Settings that were allowed when the
// campaign began are still accepted.
func RecordedProfile(path string, text []byte) (Profile, error) {
	return readProfile(path, document.NewRecorded(path), text)
}

// initHint helps with a profile.yaml or analyze.yaml that is empty or no text.
const initHint = "`tuner run MODEL` tunes a model without a file, and `tuner init MODEL` writes files for it"

func readProfile(path string, d *document.Document, text []byte) (Profile, error) {
	p := profileDefaults()
	p.Path, p.Text = path, slices.Clone(text)
	root, ok := d.Open(text)
	if !ok || isForeign(root) {
		return Profile{}, d.Err()
	}
	p.Accuracy.Unchecked = isUnchecked(root)
	r := profileReader{p: &p}
	switch {
	case hasField(root, pipelineField):
		return r.readPipeline(d, root)
	case hasField(root, modelsField):
		return r.readSeveral(d, root)
	}
	r.check(root, root.Mapping(r.fields(), r.misplaced))
	if err := d.Err(); err != nil {
		return Profile{}, err
	}
	return p.defaulted(), nil
}

// isForeign recognizes files of Triton Model Analyzer and results of tuner, which would otherwise
// give a page of unknown fields.
func isForeign(v document.Value) bool {
	for _, key := range v.Keys() {
		switch key.Node.Value {
		case "ranked_by":
			key.Fail(document.Error{Problem: "belongs to a result of tuner: this file is what a campaign wrote, and no file to start from",
				Hint: "name the profile.yaml or the analyze.yaml; `tuner analyze FOLDER` reads the campaign's folder, `tuner compare` its results"})
			return true
		case "profile_models", "report_model_configs":
			key.Fail(document.Error{Problem: "belongs to Triton Model Analyzer's files, which profile and analyze read",
				Hint: "`tuner init MODEL` writes a file of tuner's own for the same model"})
			return true
		}
	}
	return false
}

// profileReader reads the fields of a profile.yaml into p.
type profileReader struct {
	p *Profile
	// strategies lists the allowed strategies; nil: those for one model
	strategies []string
}

func (r profileReader) fields() []document.Field {
	return []document.Field{
		{Name: "model", Read: r.model},
		{Name: "config", Read: func(v document.Value) { r.file(v, &r.p.Model.Config) }},
		{Name: addon.FileField, Read: func(v document.Value) { r.p.Model.Libraries.Operators = v.Files(r.p.Path) }},
		{Name: addon.ProviderField, Read: func(v document.Value) { r.file(v, &r.p.Model.Libraries.Provider) }},
		{Name: "name", Read: r.name},
		{Name: "output", Read: func(v document.Value) { r.file(v, &r.p.Output) }},
		{Name: "deploy_target", Read: func(v document.Value) { setWord(v, &r.p.DeployTarget, []string{TargetTriton, TargetTuner}) }},
		{Name: "mode", Read: func(v document.Value) { setWord(v, &r.p.Mode, modes()) }},
		{Name: "runner", Read: func(v document.Value) { r.runner(v, &r.p.Runner) }},
		{Name: "finals", Read: r.finals},
		{Name: "search", Read: r.search},
		{Name: "space", Read: r.space},
		{Name: "load", Read: r.load},
		{Name: "objective", Read: func(v document.Value) { r.p.Goal.Objective = goals.Objective(v) }},
		{Name: "weights", Read: func(v document.Value) { r.p.Goal.Objective = goals.Weights(v) }},
		{Name: "constraints", Read: func(v document.Value) { r.p.Goal.Constraints = goals.Constraints(v, r.accuracyLimit) }},
		{Name: "price", Read: func(v document.Value) { r.p.Goal.Price = goals.Price(v) }},
		{Name: "accuracy", Read: r.accuracy},
		{Name: pipelineField, Read: func(document.Value) {}}, // read by readPipeline
		{Name: modelsField, Read: func(document.Value) {}},   // read by several
		{Name: "scale", Read: func(v document.Value) { r.p.Scales = scale.Read(v) }},
		{Name: "isolation", Read: r.isolation},
	}
}

// sections maps fields that people write at the top of a profile to the sections that have them.
func sections() map[string]string {
	return map[string]string{
		"strategy": "search", "budget": "search", "seed": "search", "window": "search", "confidence": "search", "until": "search", "earlier": "search",
		"concurrency": "load", "request_rate": "load", "arrivals": "load", "client_batch_size": "load", "inputs": "load",
		"protocol": "runner", "server": "runner", "url": "runner",
	}
}

// synonyms are words that people write at the top of a profile for fields with other names, with the
// line to write.
func synonyms() map[string]string {
	return map[string]string{"time": "search: {budget: 5m}", "goal": "objective: throughput", "limits": "constraints: {latency_p99: 50ms}", "metric": "objective: throughput"}
}

// misplaced reports a field of a section, or of a later version, at the top of the file.
func (r profileReader) misplaced(key, _ document.Value) bool {
	name := key.Node.Value
	section, line := sections()[name], synonyms()[name]
	switch {
	case line != "":
		key.Fail(document.Error{Problem: "unknown field", Hint: "write " + line})
		return true
	case name == "knobs":
		key.Fail(document.Error{Problem: "unknown field", Hint: "write the knobs into the section space"})
		return true
	case section == "" && slices.Contains(knobs.Names(), name):
		section = "space"
	case slices.Contains([]string{"formats", "plots", "top", "rank", "at", "input", "inference_output_fields", "gpu_output_fields", "server_output_fields"}, name):
		key.Fail(document.Error{Problem: "belongs in analyze.yaml", Hint: "`tuner analyze -f analyze.yaml` writes the results"})
		return true
	case section == "":
		near := words.Nearest(name, slices.Sorted(maps.Keys(sections())))
		if near == "" || words.Nearest(name, document.Names(r.fields())) != "" {
			return false
		}
		key.Fail(document.Error{Problem: "unknown field", Hint: fmt.Sprintf("did you mean %s: {%s: …}?", sections()[near], near)})
		return true
	}
	key.Fail(document.Error{Problem: "belongs in the section " + section, Hint: fmt.Sprintf("write %s: {%s: …}", section, name)})
	return true
}

// setWord reads one of the allowed words into target. After a mistake, target keeps its default.
func setWord(v document.Value, target *string, allowed []string, later ...string) {
	if word, ok := v.Word(allowed, later...); ok {
		*target = word
	}
}

// check detects missing fields, and fields that contradict each other.
func (r profileReader) check(root document.Value, given map[string]document.Value) {
	checkOfSeveral(given)
	if _, hasModel := given["model"]; !hasModel {
		root.Require("model", "an ONNX file or a Triton model folder", "add a line model: FILE")
	}
	checkObjective(given)
	r.defaultObjective(given)
	goals.CheckPrice(given)
	space, hasSpace := given["space"]
	isForTriton := r.p.DeployTarget == TargetTriton
	if hasSpace && isForTriton {
		knobs.CheckProviders(space, r.p.Knobs)
	}
	r.checkServers(given)
	if hasSpace {
		knobs.CheckFields(space, r.p.Knobs, r.p.UsesBundled(), isForTriton)
		knobs.CheckPlugIn(space, r.p.Knobs, r.p.Model.Libraries.Provider != "")
	}
	r.checkBatch(given)
	r.checkAccuracy(given)
}

// defaultObjective sets the latency as the objective if someone waits and the file names none.
func (r profileReader) defaultObjective(given map[string]document.Value) {
	_, hasObjective := given["objective"]
	_, hasWeights := given["weights"]
	if r.p.Mode == ModeOnline && !hasObjective && !hasWeights {
		r.p.Goal.Objective = goals.Single(search.Goal{Constraints: r.p.Goal.Constraints}.Latency())
	}
}

// checkObjective reports an objective that is given in both ways.
func checkObjective(given map[string]document.Value) {
	_, single := given["objective"]
	if weights, several := given["weights"]; single && several {
		weights.Fail(document.Error{Problem: "contradicts objective", Hint: "keep one of the two"})
	}
}

func (r profileReader) model(v document.Value) {
	if len(v.Node.Content) > 0 {
		v.Fail(document.Error{Problem: "must be one file name", Hint: "write model: FILE, or models: {NAME: {model: FILE, load: {request_rate: 120}}} for several on one server"})
		return
	}
	r.file(v, &r.p.Model.Path)
}

// file reads a file name into target, relative to the profile's folder.
func (r profileReader) file(v document.Value, target *string) {
	if name, ok := v.Text(); ok {
		*target = document.RelativeTo(r.p.Path, name)
	}
}

func (r profileReader) name(v document.Value) {
	name, ok := v.Text()
	if !ok {
		return
	}
	if modelconfig.ServableName(name) != name {
		v.Fail(document.Error{Problem: "is not usable as a model name and as a folder", Allowed: "letters, digits and _ . - (not first)"})
		return
	}
	r.p.Name = name
}

// The limits of a window. Shorter windows have too few requests, longer ones waste the budget.
const (
	shortestWindow = 50 * time.Millisecond
	longestWindow  = 5 * time.Minute
)

func (r profileReader) search(v document.Value) {
	s := &r.p.Search
	v.Mapping([]document.Field{
		{Name: "strategy", Read: func(v document.Value) { setWord(v, &s.Strategy, r.allowedStrategies()) }},
		{Name: "budget", Read: r.budget},
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
		{Name: "confidence", Read: func(v document.Value) { goals.Confidence(v, &s.Confidence) }},
		{Name: "until", Read: func(v document.Value) {
			if share, ok := v.OpenShare("without it the search continues while anything is worth a trial"); ok {
				s.Until = share
			}
		}},
		{Name: "earlier", Read: func(v document.Value) { s.Earlier = v.Files(r.p.Path) }},
	}, nil)
}

func (r profileReader) allowedStrategies() []string {
	if r.strategies != nil {
		return r.strategies
	}
	return plan.Names()
}

// The limits of a time budget.
const (
	shortestBudget = time.Second
	longestBudget  = 30 * 24 * time.Hour
)

// budget reads a time, or {time, trials}. A budget of only trials has no time limit.
func (r profileReader) budget(v document.Value) {
	readTime := func(v document.Value) {
		if d, ok := v.DurationWithin(shortestBudget, longestBudget); ok {
			r.p.Search.Budget.Time = d
		}
	}
	if len(v.Node.Content) == 0 {
		readTime(v)
		return
	}
	r.p.Search.Budget = search.Budget{}
	v.Mapping([]document.Field{
		{Name: "time", Read: readTime},
		{Name: "trials", Read: func(v document.Value) {
			if n, ok := v.Whole(1, 1_000_000); ok {
				r.p.Search.Budget.Trials = int(n)
			}
		}},
	}, nil)
}
