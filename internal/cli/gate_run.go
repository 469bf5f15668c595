package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/gate/flags"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/ortlib"
	"tuner/profile/preparation"
	"tuner/runner"
	"tuner/runner/target"
)

// judgeGate decides what can be decided without a measurement, and then measures.
func judgeGate(ctx context.Context, con console, o *flags.Options, s gate.Setup) (gate.Result, error) {
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
	builds, err := openGateBuilds(ctx, o, &s)
	if err != nil {
		return gate.Result{}, err
	}
	accuracy, err := compareOutputs(ctx, con, o, s, builds)
	if err != nil {
		return gate.Result{}, err
	}
	if accuracy != nil && accuracy.Miss != "" {
		result := finish(gate.Outcome{Verdict: decide.Fail, Reasons: []string{"accuracy: " + accuracy.Miss}}, nil)
		result.Accuracy = accuracy
		return result, nil
	}
	outcome, err := measureGate(ctx, con, o, s, reference)
	if err != nil {
		return gate.Result{}, err
	}
	result := finish(outcome, reference)
	result.Accuracy, result.Warnings = accuracy, append(notes, result.Warnings...)
	return result, nil
}

// revision is the commit that the CI system builds.
func revision() string { return cmp.Or(os.Getenv("GITHUB_SHA"), os.Getenv("CI_COMMIT_SHA")) }

// gateBuilds are the ONNX Runtime builds of the sides.
type gateBuilds struct{ baseline, candidate ortlib.Build }

// openGateBuilds finds and opens the ONNX Runtime of each side, and notes it in the setup.
func openGateBuilds(ctx context.Context, o *flags.Options, s *gate.Setup) (gateBuilds, error) {
	find := func(field, selector string, subject *gate.Subject) (ortlib.Build, error) {
		build, err := gateBuild(o, selector)
		if err != nil {
			return ortlib.Build{}, exit.With(exit.Usage, fmt.Errorf("%s: %s.runtime: %w", s.Spec.Path, field, err))
		}
		build, err = preparation.OpenBuild(ctx, build)
		subject.Runtime, subject.Library = build.Name(), build.Library
		return build, err
	}
	var b gateBuilds
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

// gateBuild finds the ONNX Runtime that a side names, or the usual one.
func gateBuild(o *flags.Options, selector string) (ortlib.Build, error) {
	if selector == "" {
		return ortlib.Resolve(o.ORTLibrary)
	}
	builds, err := ortlib.ResolveAll([]string{selector})
	if err != nil {
		return ortlib.Build{}, err
	}
	return builds[0], nil
}

// measureGate wires the engines and measures. On stderr it says how it goes.
func measureGate(ctx context.Context, con console, o *flags.Options, s gate.Setup, reference map[measure.Metric]gate.Reference) (gate.Outcome, error) {
	g := gate.Gate{Reference: reference, Criteria: gate.Criteria(s.Spec), Budget: s.Spec.Budget, Now: time.Now}
	var err error
	if g.Candidate, err = newGateSide(con, s, s.Candidate); err != nil {
		return gate.Outcome{}, err
	}
	if s.Baseline != nil {
		baseline, err := newGateSide(con, s, *s.Baseline)
		if err != nil {
			return gate.Outcome{}, err
		}
		g.Baseline = &baseline
	}
	if !o.Quiet {
		g.Observer = gateProgress{con.err, append(s.Spec.AllMetrics(), measure.Throughput)[0]}
		fmt.Fprintf(con.err, "gating %s at %s (budget %v), results in %s\n", s.Spec.Name, s.Load, s.Spec.Budget, s.Spec.Output)
	}
	return g.Run(ctx)
}

// newGateSide wires the engine of a side.
func newGateSide(con console, s gate.Setup, subject gate.Subject) (gate.Side, error) {
	options, err := gateEngine(con, subject)
	if err != nil {
		return gate.Side{}, err
	}
	options.Epoch = time.Now()
	job, err := s.Job(subject)
	return gate.Side{Engine: runner.New(options), Job: job}, err
}

// gateEngine are the options of a runner that launches a side's engine: this program's own, or another tuner's.
func gateEngine(con console, subject gate.Subject) (runner.Options, error) {
	return target.Engine(subject.Engine, con.err)
}

// gateProgress tells on stderr of every pair.
type gateProgress struct {
	out    io.Writer
	metric measure.Metric // that is shown
}

// Measured implements gate.Observer.
func (p gateProgress) Measured(pair gate.Pair, at gate.Progress) {
	var figures []string
	for _, side := range []measure.Measurement{pair.Baseline, pair.Candidate} {
		if v, ok := gate.Figure(p.metric, side); ok {
			figures = append(figures, p.metric.Format(v))
		}
	}
	fmt.Fprintf(p.out, "%6s  %d of at most %d: %s %s\n", words.Clock(at.Elapsed), at.Pairs, at.Most, p.metric, strings.Join(figures, " → "))
}
