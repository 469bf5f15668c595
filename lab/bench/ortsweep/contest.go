package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure/stats"
	"tuner/ortsweep"
	"tuner/ortsweep/race"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/search"
	"tuner/spec"
)

// contest measures candidates like the verb, but all of them.
type contest struct {
	setup   ortsweep.Setup
	engines *ortsweep.Engines
}

// open prepares the same sweep on the model files of a race.
func open(ctx context.Context, o options, dir string, r raceResult) (*contest, error) {
	sweep, err := spec.ParseSweep(filepath.Join(dir, "exhaustive.yaml"), []byte(sweepText(o, 1)))
	if err != nil {
		return nil, err
	}
	sweep.Output = filepath.Join(dir, "exhaustive")
	sweep.Model.Convert = nil // they exist already
	sweep.Model.Precisions = map[string]string{}
	for _, f := range r.Model.Files {
		sweep.Model.Precisions[f.Precision] = f.Path
	}
	subject, err := profile.OpenSubject(sweep.Profile, profile.Place{})
	if err != nil {
		return nil, err
	}
	requests, err := profile.Requests(sweep.Profile, subject)
	if err != nil {
		return nil, err
	}
	host := hostinfo.Read(ctx)
	setup, err := ortsweep.NewSetup(sweep, profile.Setup{Profile: sweep.Profile, Subject: subject, Facts: profile.FactsOf(subject, host),
		Runtime: journal.RuntimeInfo{Flavour: "measured", Library: o.library}})
	if err != nil {
		return nil, err
	}
	engine := func() ortsweep.Engine {
		return runner.New(runner.Options{Launcher: target.Bundled{Binary: o.tuner}, Dial: runner.GRPC, Wire: runner.Over(runner.OverGRPC), Log: slog.New(slog.DiscardHandler),
			Epoch: time.Now(), WarmUp: ortsweep.WarmUp})
	}
	return &contest{setup, ortsweep.NewEngines(setup, requests, engine, host.Memory.Usable()/4)}, nil
}

func (c *contest) close(ctx context.Context) { c.engines.Close(context.WithoutCancel(ctx)) }

// seconds measures one window of a candidate.
func (c *contest) seconds(ctx context.Context, candidate search.Candidate, window time.Duration, fresh bool) (float64, error) {
	f, err := c.engines.Measure(ctx, race.Trial{Candidate: candidate, Window: window, Fresh: fresh})
	if err == nil && f.Failure != "" {
		err = fmt.Errorf("cannot measure %s: %s", candidate, f.Failure)
	}
	return f.Value, err
}

// exhaustive holds every candidate's figure.
type exhaustive struct {
	standings []standing // best first
	elapsed   time.Duration
}

// exhaustive measures every candidate in random order, each next to windows of the default. The
// default's windows serve only the comparison: they do not count as time.
func (c *contest) exhaustive(ctx context.Context, o options, messages io.Writer) (exhaustive, error) {
	all, _ := c.setup.Candidates(1 << 12)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var e exhaustive
	for i, candidate := range all {
		var own, base []float64
		for range o.windows {
			reference, err := c.seconds(ctx, search.Candidate{}, o.window, false)
			if err != nil {
				return e, err
			}
			begin := time.Now()
			seconds, err := c.seconds(ctx, candidate, o.window, false)
			if err != nil {
				return e, err
			}
			e.elapsed += time.Since(begin)
			own, base = append(own, seconds), append(base, reference)
		}
		e.standings = append(e.standings, standing{candidate, stats.PairedRatio(base, own)})
		fmt.Fprintf(messages, "exhaustive %d of %d: %s: %.3f × the default\n", i+1, len(all), candidate, e.standings[i].gain.Value)
	}
	slices.SortStableFunc(e.standings, func(a, b standing) int { return cmp.Compare(b.gain.Value, a.gain.Value) })
	return e, nil
}

// meeting holds candidates, the default first, that were measured in turn on fresh launches.
type meeting struct {
	candidates []search.Candidate
	figures    stats.Blocks // rows per second, up to a common factor
}

// meet measures candidates and the default in turn on fresh launches. Every other round has the
// reverse order.
func (c *contest) meet(ctx context.Context, o options, candidates []search.Candidate, messages io.Writer) (meeting, error) {
	all := append([]search.Candidate{{}}, candidates...)
	speeds := make([][]float64, len(all))
	for round := range o.rounds {
		for at := range all {
			i := at
			if round%2 == 1 {
				i = len(all) - 1 - at
			}
			seconds, err := c.seconds(ctx, all[i], o.window, true)
			if err != nil {
				return meeting{}, err
			}
			speeds[i] = append(speeds[i], 1/seconds)
		}
		fmt.Fprintf(messages, "comparison, round %d of %d\n", round+1, o.rounds)
	}
	return meeting{all, stats.NewBlocks(speeds)}, nil
}
