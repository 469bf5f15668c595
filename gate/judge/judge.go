// Package judge runs one gate on this machine. It reads the saved baseline, opens the ONNX Runtime
// of each side, compares the outputs of both models, and measures.
//
// It stands between the command line and package gate, which owns the turns and the verdict.
// Decisions that need no measurement come first. It writes no result.
package judge

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/ort/ortlib"
	"tuner/profile/preparation"
	"tuner/runner"
	"tuner/runner/target"
)

// Options configure a gate.
type Options struct {
	AllowOtherMachine bool   // allow a baseline that was saved on another machine
	ORTLibrary        string // for sides that name none
	Warnings          io.Writer
	// Progress: receives lines for people during the comparison of outputs; nil: no progress
	Progress func(text string)
	Begin    func() gate.Observer // called before the first pair; nil: no observer
}

// Run makes the decisions that need no measurement, and then measures.
func Run(ctx context.Context, s gate.Setup, o Options) (gate.Result, error) {
	now := time.Now()
	finish := func(outcome gate.Outcome, reference map[measure.Metric]gate.Reference) gate.Result {
		return gate.NewResult(s, outcome, reference, now, revision())
	}
	reference, notes, refused, err := gate.SavedReference(s, o.AllowOtherMachine)
	if err != nil {
		return gate.Result{}, err
	}
	if refused != "" {
		return finish(gate.Outcome{Verdict: decide.Inconclusive, Reasons: []string{refused}}, nil), nil
	}
	builds, err := o.openBuilds(ctx, &s)
	if err != nil {
		return gate.Result{}, err
	}
	accuracy, misses, err := o.compareAll(ctx, s, builds)
	if err != nil {
		return gate.Result{}, err
	}
	if len(misses) > 0 {
		result := finish(gate.Outcome{Verdict: decide.Fail, Reasons: misses}, nil)
		result.Accuracy = accuracy
		return result, nil
	}
	outcome, err := o.measure(ctx, s, reference)
	if err != nil {
		return gate.Result{}, err
	}
	result := finish(outcome, reference)
	result.Accuracy, result.Warnings = accuracy, append(notes, result.Warnings...)
	return result, nil
}

// revision returns the commit that the CI system builds.
func revision() string { return cmp.Or(os.Getenv("GITHUB_SHA"), os.Getenv("CI_COMMIT_SHA")) }

// sideBuilds are the ONNX Runtime builds of the sides.
type sideBuilds struct{ baseline, candidate ortlib.Build }

// openBuilds finds and opens the ONNX Runtime of each side, and records it in the setup.
func (o Options) openBuilds(ctx context.Context, s *gate.Setup) (sideBuilds, error) {
	find := func(field, selector string, subject *gate.Subject) (ortlib.Build, error) {
		build, err := Build(selector, o.ORTLibrary)
		if err != nil {
			return ortlib.Build{}, exit.With(exit.Usage, fmt.Errorf("%s: %s.runtime: %w", s.Spec.Path, field, err))
		}
		build, err = preparation.OpenBuild(ctx, build)
		subject.Runtime, subject.Library = build.Name(), build.Library
		return build, err
	}
	b, err := findBuilds(s, find)
	for i := range s.Models {
		m := &s.Models[i]
		m.Tool, m.Candidate.Runtime, m.Candidate.Library = s.Tool, s.Candidate.Runtime, s.Candidate.Library
		if m.Baseline != nil {
			m.Baseline.Runtime, m.Baseline.Library = s.Baseline.Runtime, s.Baseline.Library
		}
	}
	return b, err
}

// findBuilds finds the build of each side. Sides that name the same have one.
func findBuilds(s *gate.Setup, find func(field, selector string, subject *gate.Subject) (ortlib.Build, error)) (sideBuilds, error) {
	var b sideBuilds
	var err error
	if b.candidate, err = find("candidate", s.Spec.Candidate.Runtime, &s.Candidate); err != nil || s.Baseline == nil {
		return b, err
	}
	if s.Spec.Baseline.Runtime == s.Spec.Candidate.Runtime {
		b.baseline, s.Baseline.Runtime, s.Baseline.Library = b.candidate, s.Candidate.Runtime, s.Candidate.Library
		return b, nil
	}
	b.baseline, err = find("baseline", s.Spec.Baseline.Runtime, s.Baseline)
	return b, err
}

// Build finds the ONNX Runtime for a side's selector. With "" it uses the flag's, or else the
// default one.
func Build(selector, flag string) (ortlib.Build, error) {
	if selector == "" {
		return ortlib.Resolve(flag)
	}
	builds, err := ortlib.ResolveAll([]string{selector})
	if err != nil {
		return ortlib.Build{}, err
	}
	return builds[0], nil
}

// measure launches the engines and measures them in turn.
func (o Options) measure(ctx context.Context, s gate.Setup, reference map[measure.Metric]gate.Reference) (gate.Outcome, error) {
	g := gate.Gate{Reference: reference, Criteria: gate.Criteria(s.Spec), Budget: s.Spec.Budget, Now: time.Now}
	var err error
	if g.Candidate, err = o.side(s.Candidate, s.CandidateJob); err != nil {
		return gate.Outcome{}, err
	}
	if s.Baseline != nil {
		baseline, err := o.side(*s.Baseline, s.BaselineJob)
		if err != nil {
			return gate.Outcome{}, err
		}
		g.Baseline = &baseline
	}
	if o.Begin != nil {
		g.Observer = o.Begin()
	}
	return g.Run(ctx)
}

// side prepares the engine of a side: this program's own, or another tuner's.
func (o Options) side(subject gate.Subject, prepare func() (runner.Job, error)) (gate.Side, error) {
	options, err := target.Engine(subject.Engine, subject.Libraries, o.Warnings)
	if err != nil {
		return gate.Side{}, err
	}
	options.Epoch = time.Now()
	job, err := prepare()
	return gate.Side{Engine: runner.New(options), Job: job}, err
}
