package planning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/capacity/verify"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/preparation"
	"tuner/report/result"
	"tuner/runner"
	"tuner/runner/target"
)

// DefaultReplay is the length of the piece of the worst hour that is replayed.
const DefaultReplay = time.Minute

// verifyPlan replays the worst hour of the chosen fleet on servers here, and writes into the plan what it
// found.
func (o *Options) verifyPlan(ctx context.Context, q capacity.Question, p *capacity.Plan, results []named, replicas []replica.Replica) error {
	of, chosen := chosenOf(*p, results, replicas)
	temp, err := os.MkdirTemp("", "tuner-plan-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the model repository: %w", err)
	}
	defer os.RemoveAll(temp)
	s, err := openServed(of, chosen, temp)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	options, err := o.servers(ctx, s, of, chosen)
	if err != nil {
		return err
	}
	v, err := verify.Run(ctx, q, chosen, p.Best.Scaling, options)
	if err != nil {
		return exit.OrInterrupted(ctx, fmt.Errorf("cannot replay the worst hour: %w", err))
	}
	p.Verification = &v
	return nil
}

// served is a configuration in a model repository, with requests for it.
type served struct {
	repository, model string
	config            *modelconfig.Config
	requests          runner.Requests
	libraries         addon.Libraries // that servers of the campaign opened
}

// openServed writes the chosen configuration into a model repository in a folder, and makes the campaign's
// requests for it.
func openServed(of named, chosen replica.Replica, dir string) (served, error) {
	folder := filepath.Dir(of.file)
	c, err := campaign.Read(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return served{}, fmt.Errorf("a replay needs the campaign, whose journal is not in %q: copy its folder here, or plan without --verify", folder)
	}
	if err != nil {
		return served{}, fmt.Errorf("cannot read the campaign in %q: %w", folder, err)
	}
	if err := writeConfiguration(dir, folder, chosen.Configuration); err != nil {
		return served{}, err
	}
	s := served{repository: dir, model: c.Header.Model, libraries: c.Profile.Model.Libraries}
	repository, err := modelrepo.OpenModel(filepath.Join(dir, s.model))
	if err != nil {
		return served{}, err
	}
	if s.config, err = repository.Config(); err != nil {
		return served{}, err
	}
	s.requests, err = requestsOf(c, s, repository, chosen.Rows)
	return s, err
}

// requestsOf makes requests of rows as the campaign did.
func requestsOf(c campaign.Campaign, s served, repository modelrepo.Model, rows int) (runner.Requests, error) {
	file, err := repository.ModelFile()
	if err != nil {
		return nil, err
	}
	model, err := onnx.Read(file)
	if err != nil {
		return nil, err
	}
	data, err := profile.ReadRows(c.Profile, model)
	if err != nil {
		return nil, err
	}
	subject := profile.Subject{Name: s.model, Model: model, Config: s.config, Rows: data}
	if c.Header.Mix != nil {
		subject.Mix = c.Header.Mix.Kinds
	}
	asked := c.Profile
	asked.Load.BatchSize = rows
	return profile.Requests(asked, subject)
}

// servers says how the replay's servers are started.
func (o *Options) servers(ctx context.Context, s served, of named, chosen replica.Replica) (verify.Options, error) {
	is := func(c result.Configuration) bool { return c.Name == chosen.Configuration }
	setup := of.result.Configurations[slices.IndexFunc(of.result.Configurations, is)].Setup
	cores := hostinfo.Read(ctx).UsableCores()
	threads := replica.Threads(setup, cores)
	engine, what, err := o.engine(s)
	if err != nil {
		return verify.Options{}, err
	}
	library := ""
	if o.Server == "" {
		build, err := ortlib.ResolveTuned(o.ORTLibrary, setup.Runtime)
		if err != nil {
			return verify.Options{}, exit.With(exit.Usage, err)
		}
		if build, err = preparation.OpenBuild(ctx, build); err != nil {
			return verify.Options{}, exit.OrInterrupted(ctx, err)
		}
		library = build.Library
		what += " with ONNX Runtime " + build.Name()
	}
	launcher := runner.Loaded{Launcher: engine.Launcher, Dial: engine.Dial, Models: []string{s.model}}
	return verify.Options{
		Server: what, Dial: engine.Dial, Model: s.model, Wire: engine.Wire, Requests: s.requests, AnswerSize: modelconfig.AnswerSize(s.config, chosen.Rows),
		Engines: o.engines(cores, max(threads, 1)*chosen.Batcher.Instances), Threads: threads, Cores: cores, Length: o.Replay,
		Launch: func(ctx context.Context) (runner.Engine, error) {
			return launcher.Launch(ctx, runner.Server{Repository: s.repository, Library: library})
		},
		Say: func(text string) { fmt.Fprintln(o.Err, text) },
	}, nil
}

// engine returns what launches a server: tuner's own engine, or the program that the user named.
func (o *Options) engine(s served) (runner.Options, string, error) {
	if o.Server != "" {
		return runner.Options{Launcher: target.Local{Program: o.Server, Dial: runner.GRPC}, Dial: runner.GRPC, Wire: runner.Over(runner.OverGRPC)}, o.Server, nil
	}
	libraries, err := s.libraries.Resolve(addon.InFile())
	if err != nil {
		return runner.Options{}, "", exit.With(exit.Usage, err)
	}
	engine, err := target.Engine("", libraries, o.Err)
	return engine, "the bundled engine", err
}

// The default number of servers: as many as have cores of their own, and two or three.
const fewestEngines, mostEngines = 2, 3

// engines returns the number of servers. each is the number of cores that one computes on.
func (o *Options) engines(cores, each int) int {
	if o.Engines > 0 {
		return o.Engines
	}
	return min(max(int(math.Floor(float64(cores)/float64(each))), fewestEngines), mostEngines)
}
