// Package verify serves an exported model repository with the bundled engine, and compares it with
// its report. It checks that the server is ready, that it has the export's models, that they
// answer, and that throughput and accuracy match the report.
//
// It comes after package export, and reads its export.json. It does not change the export.
package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/export"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/ort/addon"
	"tuner/runner"
)

// Status is the outcome of a check.
type Status string

// The outcomes.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped" // the check's text has the reason
)

// Summary is what `tuner export verify --format json` prints.
type Summary struct {
	Checks []Check `json:"checks"` // checks in the order in which they were made
}

// Check is one check with its outcome.
type Check struct {
	Model string `json:"model,omitempty"` // name of the model; absent for the whole server
	// what was checked: load, health, ready, metadata, configuration, inference, throughput, limits or
	// accuracy
	Name   string `json:"check"`
	Status Status `json:"status"` // outcome of the check
	Text   string `json:"text"`   // what was found, for people; the reason of a skipped check
}

// Accuracy compares a model's outputs with those of the original. file is its ONNX file, or the folder of a model
// without one, such as an ensemble. It blocks while inferences run, and returns the context's error soon after the
// context ends. A difference in the outputs is a status. An error means that no comparison was possible, and ends
// the verification.
type Accuracy func(ctx context.Context, m export.ManifestModel, file string) (Status, string, error)

// Options configure a verification.
type Options struct {
	Runner      runner.Options // its launcher serves the repositories
	Build       func(export.ManifestModel) Build
	Fingerprint string        // of this machine
	GPUs        int           // number of GPUs of this machine
	Windows     int           // number of windows for throughput, ≥ 1
	Window      time.Duration // length of each window
	Accuracy    Accuracy
	Input       string // folder of the campaign; "": the one that the manifest names
	// Libraries that the runner's launcher opens beside ONNX Runtime, by absolute paths
	Libraries addon.Libraries
}

// Build is the ONNX Runtime that serves a model here.
type Build struct {
	// Name: flavour@version; figures of a build other than the reported one are not judged
	Name    string
	Library string
}

// tolerance is the allowed relative loss of throughput against the report: the machine is the same,
// the time is another.
const tolerance = 0.10

// Verify checks the export in a folder. Models that cannot be served or do not answer are failed
// checks. The exit code exit.Usage of an error means that the folder has no export.
func Verify(ctx context.Context, dir string, o Options) ([]Check, error) {
	manifest, err := export.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	repository, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(manifest.Repository)))
	if err != nil {
		return nil, fmt.Errorf("cannot resolve %q: %w", dir, err)
	}
	open, err := openRepository(dir, repository, manifest, o.Libraries)
	if err != nil {
		return nil, err
	}
	defer open.close()
	return verify(ctx, dir, open.dir, manifest, o)
}

// verify checks the models of a manifest in a repository.
func verify(ctx context.Context, dir, repository string, manifest export.Manifest, o Options) ([]Check, error) {
	v := &verifier{options: o, repository: repository}
	var subjects []subject
	for _, m := range manifest.Models {
		s, err := open(repository, m, o.Input)
		if err != nil {
			return nil, exit.Usagef("cannot verify %q: %w", dir, err)
		}
		s.build = o.Build(m)
		subjects = append(subjects, s)
	}
	for _, group := range byLibrary(subjects) {
		if err := v.serve(ctx, group); err != nil {
			return v.checks, err
		}
	}
	if v.failed() {
		return v.checks, nil
	}
	for _, group := range together(subjects) {
		if err := v.load(ctx, group); err != nil {
			return v.checks, err
		}
	}
	for _, s := range subjects {
		for _, f := range s.folders() {
			status, text, err := o.Accuracy(ctx, f.reported, f.file)
			if err != nil {
				return v.checks, err
			}
			v.addCheck(f.reported.Name, "accuracy", status, text)
		}
	}
	return v.checks, nil
}

type verifier struct {
	options    Options
	repository string
	checks     []Check
}

func (v *verifier) addCheck(model, name string, status Status, text string) {
	v.checks = append(v.checks, Check{model, name, status, text})
}

// expect adds a check. It passed if problem is "".
func (v *verifier) expect(model, name, passed, problem string) {
	if problem != "" {
		v.addCheck(model, name, Failed, problem)
		return
	}
	v.addCheck(model, name, Passed, passed)
}

func (v *verifier) failed() bool {
	return slices.ContainsFunc(v.checks, func(c Check) bool { return c.Status == Failed })
}

// byLibrary groups the models that one server can serve, in their order.
func byLibrary(subjects []subject) [][]subject {
	var groups [][]subject
	for _, s := range subjects {
		i := slices.IndexFunc(groups, func(g []subject) bool { return g[0].build.Library == s.build.Library })
		if i < 0 {
			groups = append(groups, []subject{s})
			continue
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// serve loads models with the same ONNX Runtime into one server, and sends it a client's requests.
func (v *verifier) serve(ctx context.Context, subjects []subject) error {
	engine, err := v.launcher(subjects...).Launch(ctx, runner.Server{Repository: v.repository, Library: subjects[0].build.Library})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v.addCheck("", "load", Failed, err.Error()+otherBuilds(subjects))
		return nil
	}
	defer engine.Stop(context.WithoutCancel(ctx))
	client, err := runner.HTTP(engine.Address())
	if err != nil {
		return err
	}
	ready, err := client.ServerReady(ctx)
	v.expect("", "health", "the server is live and ready", problem(err, !ready, "the server is not ready"))
	for _, s := range subjects {
		for _, f := range s.folders() {
			v.probe(ctx, client, f)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return client.Close()
}

// otherBuilds names the models whose ONNX Runtime differs from the one of the tuning, as the end of
// a text; "" without any.
func otherBuilds(subjects []subject) string {
	text := ""
	for _, s := range subjects {
		if s.otherBuild() {
			text += fmt.Sprintf("; model %q was tuned on %s, but %s serves it here: name the tuned build with --ort-library, or install it with 'tuner runtime install'",
				s.reported.Name, s.tunedOn(), s.build.Name)
		}
	}
	return text
}

// launcher starts engines that serve the models of the repository.
func (v *verifier) launcher(subjects ...subject) runner.Launcher {
	l := runner.Loaded{Launcher: v.options.Runner.Launcher, Dial: v.options.Runner.Dial}
	for _, s := range subjects {
		for _, f := range s.folders() {
			if f.reported.Name == s.reported.Name || s.config.GetEnsembleScheduling() == nil { // an ensemble's are loaded with it
				l.Models = append(l.Models, f.reported.Name)
			}
		}
	}
	return l
}

// probe requests one model's readiness, metadata, configuration, and an inference where it gets requests itself.
func (v *verifier) probe(ctx context.Context, client api.Client, s subject) {
	name := s.reported.Name
	ready, err := client.ModelReady(ctx, name)
	v.expect(name, "ready", "the model is ready", problem(err, !ready, "the model is not ready"))

	metadata, err := client.ModelMetadata(ctx, name)
	served := tensorNames(metadata.Inputs) + " → " + tensorNames(metadata.Outputs)
	want := configNames(s.config.GetInput()) + " → " + configNames(s.config.GetOutput())
	v.expect(name, "metadata", served, problem(err, served != want, fmt.Sprintf("the server serves %s, the configuration has %s", served, want)))

	config, err := client.ModelConfig(ctx, name)
	v.expect(name, "configuration", "the server serves config.pbtxt as it is",
		problem(err, err == nil && !s.isServedAs(config, v.options.GPUs), "the server serves another configuration than config.pbtxt"))

	if len(s.requests) == 0 { // the pipeline's request calls it
		return
	}
	outputs, err := infer(ctx, client, s)
	answer := fmt.Sprintf("answered with %d of %d outputs", outputs, len(s.config.GetOutput()))
	v.expect(name, "inference", answer, problem(err, outputs != len(s.config.GetOutput()), answer))
}

// problem returns the error's text. Without an error it returns text if holds is set, and else "".
func problem(err error, holds bool, text string) string {
	switch {
	case err != nil:
		return err.Error()
	case holds:
		return text
	}
	return ""
}

// infer sends one request and returns the number of outputs.
func infer(ctx context.Context, client api.Client, s subject) (int, error) {
	request, err := client.Encode(s.requests[0])
	if err != nil {
		return 0, err
	}
	answer, err := client.Infer(ctx, request)
	if err != nil {
		return 0, err
	}
	outputs, err := answer.Outputs()
	return len(outputs), err
}

func tensorNames(list []api.TensorMetadata) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func configNames[T interface{ GetName() string }](list []T) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.GetName()
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// judge compares a throughput with the reported one. It fails if the upper end of the interval is
// below the report by more than the tolerance. It only reports figures of another server, machine
// or ONNX Runtime.
func (v *verifier) judge(s subject, now measure.Estimate) (Status, string) {
	then := s.reported.Throughput
	text := fmt.Sprintf("%s [%s, %s] at %s; reported %s", measure.Throughput.Format(now.Value), measure.Throughput.Format(now.Lo),
		measure.Throughput.Format(now.Hi), s.reported.Load, measure.Throughput.Format(then.Value))
	if reason := v.unjudged(s); reason != "" {
		return Skipped, text + reason
	}
	if now.Hi < (1-tolerance)*then.Value {
		return Failed, fmt.Sprintf("%s: more than %.0f %% below", text, 100*tolerance)
	}
	return Passed, text
}

// unjudged says why figures do not compare with the report, as the end of a text; "" if they do.
func (v *verifier) unjudged(s subject) string {
	switch {
	case s.reported.Server != "":
		return fmt.Sprintf(" by %s, but this is the bundled engine: not judged", s.reported.Server)
	case v.options.Fingerprint != s.reported.Machine:
		return " on another machine: not judged"
	case s.otherBuild():
		return fmt.Sprintf(" on %s, but this is %s: not judged", s.tunedOn(), s.build.Name)
	case s.values != "":
		return fmt.Sprintf(" with random values, since %s: not judged", s.values)
	}
	return ""
}

// doubts names the disturbances of windows, as the end of a text; "" without any.
func doubts(windows []measure.Window) string {
	var list []string
	for _, w := range windows {
		for _, f := range w.Flags {
			if !slices.Contains(list, f.Text()) {
				list = append(list, f.Text())
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; less certain: " + strings.Join(list, ", ")
}
