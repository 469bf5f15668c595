package judge

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"tuner/gate"
	"tuner/internal/checksum"
	"tuner/model/onnx"
	"tuner/model/precision"
	"tuner/model/precision/places"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
	"tuner/profile/preparation"
	"tuner/runner/target"
	"tuner/search"
	"tuner/spec/knobs"
)

// compareAll compares the outputs of each model that has a limit. misses are the reasons of those that miss it.
func (o Options) compareAll(ctx context.Context, s gate.Setup, builds sideBuilds) (list []gate.Accuracy, misses []string, err error) {
	for _, one := range s.Each() {
		a, err := o.compareOutputs(ctx, one, builds)
		if err != nil {
			return nil, nil, err
		}
		if a == nil {
			continue
		}
		if len(s.Models) > 0 {
			a.Model = one.Spec.Name
		}
		list = append(list, *a)
		if a.Miss != "" {
			misses = append(misses, a.Name()+": "+a.Miss)
		}
	}
	return list, misses, nil
}

// compareOutputs compares the candidate's outputs, on its execution provider, with those of the
// baseline's model on cpu. It returns nil if no limit needs this.
func (o Options) compareOutputs(ctx context.Context, s gate.Setup, builds sideBuilds) (*gate.Accuracy, error) {
	limit := s.Spec.Accuracy.Limit
	if limit == nil {
		return nil, nil
	}
	data, _, err := preparation.Data(s.Spec.Profile("limits.accuracy", s.Spec.Baseline), s.Baseline.Subject)
	if err != nil {
		return nil, err
	}
	place := search.Place{Provider: cmp.Or(string(knobs.Base(s.Candidate.Config)[search.KnobExecutionProvider]), provider.CPU)}
	// another build is not the reference, even for the same file
	if builds.candidate.Library != builds.baseline.Library || s.Candidate.Engine != s.Baseline.Engine {
		place.Runtime = builds.candidate.Name()
	}
	serving := places.Builds(func(name string) ortlib.Build {
		if name == place.String() {
			return builds.candidate
		}
		return builds.baseline
	})
	opener, engines, err := o.newOpener(s, place, serving)
	if err != nil {
		return nil, err
	}
	where := []string{place.String()}
	maker, err := serving.Maker(ctx, s.Tool+engines, s.Baseline.Model, opener, where,
		precision.Options{Data: data, Limit: limit, Progress: o.Progress, Libraries: s.Candidate.Libraries})
	if err != nil {
		return nil, err
	}
	variant, err := maker.Check(ctx, "candidate", s.Candidate.Model, where)
	if err != nil {
		return nil, err
	}
	return newAccuracy(s, variant, place.String(), data.Synthetic), nil
}

// sidesOpener opens the candidate's sessions on its engine, and all others on the baseline's
// engine.
type sidesOpener struct {
	place               search.Place // of the candidate
	baseline, candidate precision.Opener
}

// newOpener makes the opener of both sides. engines identifies engines other than this program's by
// their content.
func (o Options) newOpener(s gate.Setup, place search.Place, serving places.Builds) (opener precision.Opener, engines string, err error) {
	open := func(side string, subject gate.Subject) (precision.Opener, error) {
		options, err := target.Engine(subject.Engine, subject.Libraries, o.Warnings)
		if err != nil || subject.Engine == "" {
			return serving.OpenerOn(options, subject.Libraries), err
		}
		sum, err := checksum.File(subject.Engine)
		if err != nil {
			return nil, fmt.Errorf("cannot read the engine %q: %w", subject.Engine, err)
		}
		engines += fmt.Sprintf(", the %s's engine %s", side, sum)
		return serving.OpenerOn(options, subject.Libraries), nil
	}
	baseline, err := open("baseline", *s.Baseline)
	if err != nil {
		return nil, "", err
	}
	candidate, err := open("candidate", s.Candidate)
	return sidesOpener{place: place, baseline: baseline, candidate: candidate}, engines, err
}

// Open implements precision.Opener.
func (o sidesOpener) Open(ctx context.Context, m *onnx.Model, place string) (precision.Session, error) {
	if place == o.place.String() {
		return o.candidate.Open(ctx, m, place)
	}
	return o.baseline.Open(ctx, m, place)
}

// newAccuracy sums up a comparison. If none was made, both sides have the same file.
func newAccuracy(s gate.Setup, v precision.Variant, place string, synthetic bool) *gate.Accuracy {
	limit := s.Spec.Accuracy.Limit
	a := &gate.Accuracy{Limit: limit.String(), Value: math.NaN(), Miss: v.Rejected[place]}
	report, compared := v.Accuracy[place]
	switch {
	case !compared && a.Miss == "":
		a.Note = "the same file serves on both sides"
	case compared:
		a.Value, _ = limit.Check(report)
		a.Note = fmt.Sprintf("on %d rows", report.Rows)
		if synthetic {
			a.Note += " of random inputs; accuracy: {data: FILE} takes your own"
		}
	}
	return a
}
