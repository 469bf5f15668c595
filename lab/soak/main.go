// Soak checks that the engine loses no answer and leaks no resource. It starts `tuner serve`, and
// sends it mixed load for the given time. Clients of every protocol compare every answer with the
// right one. Meanwhile models are loaded again and unloaded. Some clients leave in the middle of a
// request. Others send invalid bytes, or one byte at a time. Every second half minute a siege joins
// them: clients that do not read their answers or say nothing, bodies that unpack to a gigabyte, and
// a process under load that is killed every 10 s. The program watches the memory, the file
// descriptors, the threads and the goroutines of the engine. The engine runs in a control group, as
// in a container: the kernel kills it if it takes more memory than the limit.
//
// It ends with exit code 1 if an answer was lost or wrong, if the engine died or grew, or if the
// data do not suffice. A binary that was built with -race reports data races by its exit code. It
// prints the 99th percentile of the latencies beside the siege and without it, and does not judge
// them.
//
//	go -C lab run ./soak -duration 30m
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/engine/api"
	"tuner/internal/memgroup"
	"tuner/lab/program"
	"tuner/ort/ortlib"
	"tuner/runner"
	"tuner/runner/target"
)

// options are the flags.
type options struct {
	duration time.Duration
	tuner    string
	models   string
	pause    time.Duration // of a client between two requests
	memory   int64         // limit of the engine's control group, MiB; 0: none
}

func main() { program.Main("soak", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.DurationVar(&o.duration, "duration", 30*time.Minute, "how long")
	f.Tuner(&o.tuner)
	f.StringVar(&o.models, "models", "models", "folder of the sample models (samplemodels: minilm and all-small)")
	f.DurationVar(&o.pause, "pause", 5*time.Millisecond, "mean pause of a client between two requests")
	f.Int64Var(&o.memory, "memory", 2048, "limit of the engine's memory, MiB; needs root; 0: none")
}

func run(ctx context.Context, o options, out, _ io.Writer) error {
	return program.InFolder("", "soak", func(folder string) error {
		repository := filepath.Join(folder, "models")
		if err := writeRepository(repository, o.models); err != nil {
			return err
		}
		library, err := ortlib.Resolve("")
		if err != nil {
			return err
		}
		binary, leave, err := limited(o, folder)
		if err != nil {
			return err
		}
		defer leave()
		engine, err := target.Bundled{Binary: binary, Start: time.Minute, Drain: time.Minute}.Launch(ctx, runner.Server{Repository: repository, Library: library.Library})
		if err != nil {
			return err
		}
		defer engine.Stop(context.WithoutCancel(ctx))
		return soak(ctx, o, engine, out)
	})
}

// limited returns a program that runs tuner in a control group with the memory limit. leave removes
// the group once the program has ended.
func limited(o options, folder string) (binary string, leave func(), err error) {
	if o.memory == 0 {
		return o.tuner, func() {}, nil
	}
	group, err := memgroup.New("soak", o.memory<<20)
	if err != nil {
		return "", nil, fmt.Errorf("cannot limit the engine's memory (-memory 0 sets no limit): %w", err)
	}
	program, err := filepath.Abs(o.tuner)
	binary = filepath.Join(folder, "tuner.sh")
	script := fmt.Sprintf("#!/bin/sh\n%s && exec '%s' \"$@\"\n", group.Enter(), program)
	if err := errors.Join(err, os.WriteFile(binary, []byte(script), 0o755)); err != nil {
		_ = group.Close() // the first error matters
		return "", nil, fmt.Errorf("cannot limit the engine's memory: %w", err)
	}
	return binary, func() { _ = group.Close() }, nil // the next start of the machine removes it anyway
}

// soak sends the load and judges the results.
func soak(ctx context.Context, o options, engine runner.Engine, out io.Writer) error {
	s, err := newSite(ctx, o, engine.Address())
	if err != nil {
		return errors.Join(err, errors.New(engine.LastWords()))
	}
	defer s.close()
	watch := newWatch(engine.PID(), engine.Address().Metrics, s.tally, out)
	s.begin = time.Now()
	load, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	var group errgroup.Group
	for _, work := range s.everyone() {
		group.Go(func() error { work(load); return nil })
	}
	group.Go(func() error { watch.follow(load); return nil })
	select {
	case <-load.Done():
	case <-engine.Done():
		cancel()
		s.tally.fail("the engine ended by itself: %s\n%s", engine.Exit().Text, engine.LastWords())
	}
	_ = group.Wait() // its members report to the tally
	engine.Stop(context.WithoutCancel(ctx))
	if exit := engine.Exit().Text; exit != "exit status 0" {
		s.tally.fail("the engine did not end as it should: %s\n%s", exit, engine.LastWords())
	}
	fmt.Fprintln(out, s.tally.latencies())
	return errors.Join(s.tally.verdict(out), watch.verdict())
}

// The models. Clients of the volatile one must tolerate its absence.
const (
	minilm   = "minilm"
	simple   = "simple"
	volatile = "volatile"
	text     = "text"
	failing  = "failing" // every run of it throws
)

// writeRepository makes a repository of links to the sample models.
func writeRepository(repository, models string) error {
	for name, file := range map[string]string{minilm: "minilm", simple: "simple", volatile: "simple", text: "identity_string", failing: "failing"} {
		folder := filepath.Join(repository, name, "1")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("cannot make a model repository: %w", err)
		}
		data, err := os.ReadFile(filepath.Join(models, file+".onnx"))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "model.onnx"), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("cannot add model %s to the repository: %w", name, err)
		}
	}
	return nil
}

// site holds the engine under test, and the common data of its clients.
type site struct {
	at     api.Announcement
	http   *api.HTTPClient
	grpc   *api.GRPCClient
	tally  *tally
	pause  time.Duration
	known  []sentence // answers of MiniLM
	packed []byte     // the body of a bomb
	tuner  string     // the program
	begin  time.Time  // of the load, and of the first shift
	phase  phase      // of the volatile model
}

func newSite(ctx context.Context, o options, at api.Announcement) (*site, error) {
	grpc, err := api.NewGRPC(at.GRPC)
	if err != nil {
		return nil, err
	}
	s := &site{at: at, http: api.NewHTTP(at.HTTP), grpc: grpc, tally: &tally{}, pause: o.pause, packed: pack(), tuner: o.tuner}
	for _, model := range []string{minilm, simple, volatile, text, failing} {
		if err := s.grpc.LoadModel(ctx, model, configuration(model, 0)); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot load %s: %w", model, err), s.close())
		}
	}
	if s.known, err = learn(ctx, s.http); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) close() error { return errors.Join(s.http.Close(), s.grpc.Close()) }

// everyone lists all concurrent users of the engine. Each ends with its context.
func (s *site) everyone() []func(context.Context) {
	all := []func(context.Context){s.reload, s.comeAndGo, s.scrape, s.halfBodies, s.leave, s.cancel, s.garbage, s.provoke, s.rawBytes(s.at.HTTP), s.rawBytes(s.at.GRPC), s.slow, s.patient}
	for _, work := range []func(context.Context){s.unread, s.bomb, s.silent, s.killed} {
		all = append(all, s.inShifts(work))
	}
	for seed := range uint64(2) {
		all = append(all,
			s.client(seed, simple, s.binary), s.client(seed, simple, s.json), s.client(seed, simple, s.unary), s.client(seed, simple, s.stream),
			s.client(seed, text, s.binary), s.client(seed, text, s.json), s.client(seed, text, s.unary), s.client(seed, text, s.stream),
			s.client(seed, minilm, s.binary), s.client(seed, minilm, s.unary),
			s.client(seed, volatile, s.json), s.client(seed, volatile, s.unary),
		)
	}
	return all
}
