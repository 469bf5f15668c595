// Soak checks that the engine loses no answer and leaks no resource. It starts `tuner serve` twice,
// with model control by requests and by poll mode, and sends mixed load for the given time. Clients of
// every protocol compare every answer with the right one. They ask plain models, ensembles, models
// whose requests form sequences, and one with a response cache. Tensors come in JSON, in binary form,
// compressed and through shared memory, over HTTP, gRPC, its streams, the generate extension and
// SageMaker's path. Requests are traced. Meanwhile models are loaded again and unloaded, and their files
// change. Some clients leave in the middle of a request, or read slowly. Others send invalid bytes, or
// one byte at a time. Every second half minute a siege joins them: clients that do not read their
// answers or say nothing, bodies that unpack to a gigabyte, and a process under load that is killed
// every 10 s. The program watches the memory, the file descriptors, the threads and the goroutines of
// both engines. Each runs in a control group, as in a container: the kernel kills it if it takes more
// memory than the limit.
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
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	"tuner/lab/program"
	"tuner/model/onnx/build"
	"tuner/runner"
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
		e := engines{folder: folder, main: filepath.Join(folder, "models"), polled: filepath.Join(folder, "polled")}
		if err := errors.Join(writeRepository(e.main, o.models), writePolled(e.polled, o.models)); err != nil {
			return err
		}
		c, err := collect(ctx)
		if err != nil {
			return err
		}
		defer c.close()
		e.collector = c
		return soak(ctx, o, &e, out)
	})
}

// soak starts both engines, sends the load and judges the results.
func soak(ctx context.Context, o options, e *engines, out io.Writer) error {
	defer e.stop(context.WithoutCancel(ctx))
	explicit, cloud, err := e.explicit(ctx, o)
	if err != nil {
		return err
	}
	polling, err := e.polling(ctx, o)
	if err != nil {
		return err
	}
	t := &tally{}
	s, err := newSite(ctx, o, explicit.Address(), t)
	if err != nil {
		return errors.Join(err, errors.New(explicit.LastWords()))
	}
	defer s.close()
	s.cloud, s.collector = cloud, e.collector
	p, err := newPolled(polling.Address(), t, o.pause, e.polled)
	if err != nil {
		return err
	}
	defer p.close()
	watches := []*watch{newWatch("", explicit, t, out), newWatch("poll mode: ", polling, t, out)}
	s.begin = time.Now()
	p.begin = s.begin
	load, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	var group errgroup.Group
	for _, work := range slices.Concat(s.everyone(), p.everyone()) {
		group.Go(func() error { work(load); return nil })
	}
	for _, w := range watches {
		group.Go(func() error { w.follow(load); return nil })
	}
	select {
	case <-load.Done():
	case <-explicit.Done():
	case <-polling.Done():
	}
	cancel()
	_ = group.Wait() // its members report to the tally
	s.conclude(context.WithoutCancel(ctx))
	for _, engine := range []runner.Engine{explicit, polling} {
		engine.Stop(context.WithoutCancel(ctx))
		if exit := engine.Exit().Text; exit != "exit status 0" {
			t.fail("an engine did not end as it should: %s\n%s", exit, engine.LastWords())
		}
	}
	fmt.Fprintln(out, t.latencies())
	return errors.Join(t.verdict(out), watches[0].verdict(), watches[1].verdict())
}

// The models. Clients of the volatile one must tolerate its absence.
const (
	minilm   = "minilm"
	simple   = "simple"
	volatile = "volatile"
	text     = "text"
	wide     = "wide"    // answers of 64 KiB and more, which gRPC sends from the model's memory
	failing  = "failing" // every run of it throws
	cached   = "cached"  // simple with a response cache
	chained  = "chained" // an ensemble: simple twice
	nested   = "nested"  // an ensemble: chained, then simple
	direct   = "direct"  // sums of sequences, each in a slot of its own
	oldest   = "oldest"  // the same, in batches of any sequences
)

// writeRepository makes a repository of the sample models, of ensembles, and of models with sequences.
func writeRepository(repository, models string) error {
	for name, file := range map[string]string{minilm: "minilm", simple: "simple", volatile: "simple", text: "identity_string", wide: "identity_float", failing: "failing", cached: "simple"} {
		data, err := os.ReadFile(filepath.Join(models, file+".onnx"))
		if err == nil {
			err = writeModel(repository, name, data, "")
		}
		if err != nil {
			return fmt.Errorf("cannot add model %s to the repository: %w", name, err)
		}
	}
	sums, err := proto.Marshal(build.Accumulator().Proto())
	return errors.Join(err,
		writeModel(repository, chained, nil, ensemble(simple, simple)), writeModel(repository, nested, nil, ensemble(chained, simple)),
		writeModel(repository, direct, sums, summing("direct { }")), writeModel(repository, oldest, sums, summing("oldest { max_candidate_sequences: 8 }")))
}

// writeModel adds a model to a repository. An ensemble has no file, and another model may have no
// configuration.
func writeModel(repository, name string, file []byte, config string) error {
	folder := filepath.Join(repository, name)
	if err := os.MkdirAll(filepath.Join(folder, "1"), 0o755); err != nil {
		return fmt.Errorf("cannot make a model repository: %w", err)
	}
	if config != "" {
		if err := os.WriteFile(filepath.Join(folder, "config.pbtxt"), []byte(config), 0o644); err != nil {
			return err
		}
	}
	if file == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(folder, "1", "model.onnx"), file, 0o644)
}

// site holds the engine under test, and the common data of its clients.
type site struct {
	at     api.Announcement
	http   *api.HTTPClient
	grpc   *api.GRPCClient
	tally  *tally
	pause  time.Duration
	cloud  string     // address for SageMaker
	known  []sentence // answers of MiniLM
	packed []byte     // the body of a bomb
	tuner  string     // the program
	begin  time.Time  // of the load, and of the first shift
	phase  phase      // of the volatile model, or of the guest
	// gets the spans of the requests; nil: nobody does
	collector *collector
	regions   regions
}

func newSite(ctx context.Context, o options, at api.Announcement, t *tally) (*site, error) {
	grpc, err := api.NewGRPC(at.GRPC)
	if err != nil {
		return nil, err
	}
	s := &site{at: at, http: api.NewHTTP(at.HTTP), grpc: grpc, tally: t, pause: o.pause, packed: pack(), tuner: o.tuner}
	for _, model := range []string{minilm, simple, volatile, text, wide, failing, cached, nested, direct, oldest} {
		config := configuration(model, 0)
		if model == nested || model == direct || model == oldest {
			config = "" // that of the repository
		}
		if err := s.grpc.LoadModel(ctx, model, config); err != nil {
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
	all := []func(context.Context){s.reload, s.comeAndGo, s.scrape, s.retrace, s.halfBodies, s.leave, s.cancel, s.garbage, s.provoke, s.rawBytes(s.at.HTTP), s.rawBytes(s.at.GRPC), s.slow, s.patient, s.readSlowly}
	for _, work := range []func(context.Context){s.unread, s.bomb, s.silent, s.killed} {
		all = append(all, s.inShifts(work))
	}
	for seed := range uint64(2) {
		all = append(all,
			s.client(seed, simple, s.binary), s.client(seed, simple, s.json), s.client(seed, simple, s.unary), s.client(seed, simple, s.stream),
			s.client(seed, text, s.binary), s.client(seed, text, s.json), s.client(seed, text, s.unary), s.client(seed, text, s.stream),
			s.client(seed, minilm, s.binary), s.client(seed, minilm, s.unary),
			s.client(seed, wide, s.unary), s.client(seed, wide, s.stream), s.client(seed, wide, s.late),
			s.client(seed, volatile, s.json), s.client(seed, volatile, s.unary),
			s.client(seed, cached, s.binary), s.client(seed, cached, s.stream),
			s.client(seed, chained, s.json), s.client(seed, chained, s.unary), s.client(seed, nested, s.binary), s.client(seed, nested, s.stream),
			s.client(seed, simple, s.zipped("gzip")), s.client(seed, text, s.zipped("deflate")), s.client(seed, text, s.zippedUnary),
			s.client(seed, simple, s.invocations), s.client(seed, text, s.generate), s.client(seed, text, s.late),
			s.client(seed, simple, s.shared(false)), s.client(seed, chained, s.shared(true)),
		)
		for i := range uint64(3) { // more than direct has slots for
			n := 6*seed + 2*i // no two clients of a model have the same
			all = append(all, s.follow(n, direct, s.json), s.follow(n+1, direct, s.stream), s.follow(n, oldest, s.unarySteps))
		}
	}
	return all
}
