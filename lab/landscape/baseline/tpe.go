package baseline

import (
	"fmt"
	global "math/rand"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/c-bata/goptuna"
	sampler "github.com/c-bata/goptuna/tpe"

	"tuner/search"
	"tuner/search/standings"
)

// tpe is goptuna's tree-structured Parzen estimator over the knobs and the load, with its defaults,
// as Model Analyzer uses Optuna's. A point that misses the constraints gets a value below every
// other, which falls with the violation.
type tpe struct {
	points
	study   *goptuna.Study
	pending *suggestion // asked and not yet told
	told    int
	draws   int // number so far in the study
}

// suggestion is a point that the study asks for.
type suggestion struct {
	trial int
	point point
}

// Values of points without a score. Scores are logarithms, and differ by less.
const (
	missing = -1000.0 // failed, or illegal
	missed  = -100.0  // minus the violation
)

func newTPE(p points) (*tpe, error) {
	study, err := goptuna.CreateStudy("space",
		goptuna.StudyOptionSampler(sampler.NewSampler(sampler.SamplerOptionSeed(int64(p.settings.Seed)+1))),
		goptuna.StudyOptionDirection(goptuna.StudyDirectionMaximize), goptuna.StudyOptionLogger(nil))
	if err != nil {
		return nil, fmt.Errorf("cannot make a study: %w", err)
	}
	return &tpe{points: p, study: study}, nil
}

// drawing is locked while a study draws. goptuna 0.9.0 draws from the process's random numbers
// whatever its seed (internal/random), so these are seeded before each draw.
var drawing sync.Mutex

// seeded runs a draw after it seeded the process's random numbers with the campaign's seed and the
// number of the draw. It needs GODEBUG=randseednop=0, which the module sets.
func (t *tpe) seeded(draw func()) {
	drawing.Lock()
	defer drawing.Unlock()
	t.draws++
	seed := rand.NewPCG(t.settings.Seed, uint64(t.draws)).Uint64()
	//lint:ignore SA1019 nothing else reaches these numbers
	global.Seed(int64(seed >> 1))
	draw()
}

// Ask returns the study's point. It is asked once, and kept until Tell gets its outcome.
func (t *tpe) Ask() search.Action {
	if len(t.candidates) == 0 {
		return search.Action{Stop: true, Why: "the space is empty"}
	}
	if t.pending == nil {
		s := t.suggest()
		t.pending = &s
	}
	return t.trial(t.pending.point, "tree-structured Parzen estimator")
}

// mostIllegal is the number of illegal combinations in a row after which one is drawn at random.
const mostIllegal = 50

// suggest asks the study for legal points only. The study learns that the others have no value.
func (t *tpe) suggest() suggestion {
	for range mostIllegal {
		var trial int
		var at point
		var legal bool
		t.seeded(func() { trial, at, legal = t.sample() })
		if legal {
			return suggestion{trial, at}
		}
		t.value(trial, missing)
	}
	random := rand.New(rand.NewPCG(t.settings.Seed, uint64(t.told)))
	return suggestion{-1, t.at(random.IntN(t.number()))}
}

// sample draws a value for every knob, and a level.
func (t *tpe) sample() (trial int, at point, legal bool) {
	trial, err := t.study.Storage.CreateNewTrial(t.study.ID)
	must(err)
	suggesting := goptuna.Trial{Study: t.study, ID: trial}
	raw := search.Candidate{}
	for knob, k := range t.settings.Space.Knobs {
		i := 0
		if t.ordinal[knob] {
			i, err = suggesting.SuggestInt(k.Name, 0, len(k.Values)-1)
		} else {
			i, err = categorical(&suggesting, k)
		}
		must(err)
		raw = raw.With(k.Name, k.Values[i])
	}
	level, err := suggesting.SuggestInt("load", 0, len(t.settings.Space.Load.Levels)-1)
	must(err)
	c, illegal := t.settings.Space.Canonical(raw)
	i, known := t.index[c.Key()]
	return trial, point{i, level}, illegal == "" && known && !t.isBroken(i)
}

// categorical suggests one of a knob's values without an order among them.
func categorical(trial *goptuna.Trial, k search.Knob) (int, error) {
	choices := make([]string, len(k.Values))
	for i, v := range k.Values {
		choices[i] = string(v)
	}
	chosen, err := trial.SuggestCategorical(k.Name, choices)
	return max(0, slices.Index(choices, chosen)), err
}

// Tell gives the study the value of its point.
func (t *tpe) Tell(e search.Event) {
	if t.pending == nil || e.Trial.Phase != search.PhaseSearch {
		return
	}
	p := standings.Judge(t.settings.Goal, e.Trial.Load, e.Measurement)
	value := missing
	switch {
	case p.Passes():
		value = p.Score
	case p.Scored:
		value = missed - p.Violation()
	}
	if t.pending.trial >= 0 {
		t.value(t.pending.trial, value)
	}
	t.pending = nil
	t.told++
}

// value ends a trial of the study.
func (t *tpe) value(trial int, value float64) {
	must(t.study.Storage.SetTrialValue(trial, value))
	must(t.study.Storage.SetTrialState(trial, goptuna.TrialStateComplete))
}

// must panics on an error that only a bug in this package can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Remaining returns the number of points without a draw, if each draw gave a new point.
func (t *tpe) Remaining() int { return max(1, t.number()-t.told) }
