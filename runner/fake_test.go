package runner

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/runner/load"
)

const ms = time.Millisecond

// lab launches fake engines and makes clients for them.
type lab struct {
	startError error         // error of Launch
	loadTakes  time.Duration // time of LoadModel
	loadError  error
	loading    func()        // called by LoadModel, if set
	deaf       bool          // never answers requests for the statistics
	service    time.Duration // time of a request of one row
	row        time.Duration // time of each further row
	// effect of the n-th request of an engine, beside the service time
	send    func(e *engine, n int) error
	pid     int          // PID of the next engines; 0: unknown
	refusal error        // error of requests by the client
	asked   atomic.Int64 // requests by clients, without those of loads

	engines []*engine
	loads   []string // configurations, in order
}

// engine is a fake server that executes each request by itself.
type engine struct {
	lab   *lab
	pid   int
	exit  Exit
	words string
	done  chan struct{}
	end   sync.Once
	stops int
	// killed is true if the last stop did not wait for the engine to end by itself.
	killed bool
	paused bool

	mu    sync.Mutex
	sent  int
	stats api.ModelStatistics
}

func (l *lab) Launch(ctx context.Context, s Server) (Engine, error) {
	time.Sleep(300 * ms)
	if l.startError != nil {
		return nil, l.startError
	}
	e := &engine{lab: l, pid: l.pid, done: make(chan struct{}), words: "last words", stats: api.ModelStatistics{Name: "m", Version: "1"}}
	l.engines = append(l.engines, e)
	return e, ctx.Err()
}

func (l *lab) last() *engine { return l.engines[len(l.engines)-1] }

// at returns the engine at an address.
func (l *lab) at(a api.Announcement) *engine {
	return l.engines[slices.IndexFunc(l.engines, func(e *engine) bool { return e.Address() == a })]
}

func (l *lab) dial(a api.Announcement) (api.Client, error) { return client{e: l.at(a)}, nil }

// Address encodes the engine's number.
func (e *engine) Address() api.Announcement {
	return api.Announcement{GRPC: strconv.Itoa(slices.Index(e.lab.engines, e))}
}
func (e *engine) PID() int              { return e.pid }
func (e *engine) Done() <-chan struct{} { return e.done }
func (e *engine) Exit() Exit            { return e.exit }
func (e *engine) LastWords() string     { return e.words }

func (e *engine) Stop(ctx context.Context) {
	e.stops++
	e.killed = ctx.Err() != nil
	e.die(Exit{Text: "exit status 0"})
}

// die ends the engine, once.
func (e *engine) die(exit Exit) {
	e.end.Do(func() {
		e.exit = exit
		close(e.done)
	})
}

// client implements the part of api.Client that the runner uses.
type client struct {
	api.Client
	e *engine
}

func (c client) LoadModel(ctx context.Context, _, config string, _ ...api.File) error {
	c.e.lab.loads = append(c.e.lab.loads, config)
	if c.e.lab.loading != nil {
		c.e.lab.loading()
	}
	select {
	case <-time.After(c.e.lab.loadTakes):
		return c.e.lab.loadError
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c client) Statistics(ctx context.Context, _ string) (api.Statistics, error) {
	if c.e.lab.deaf {
		<-ctx.Done()
		return api.Statistics{}, ctx.Err()
	}
	select {
	case <-c.e.done:
		return api.Statistics{}, errors.New("connection refused")
	default:
	}
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	s := c.e.stats
	s.BatchStats = append([]api.BatchStatistics(nil), s.BatchStats...)
	return api.Statistics{ModelStats: []api.ModelStatistics{s}}, nil
}

func (c client) Close() error { return nil }

func (c client) Encode(api.InferRequest) (*api.Encoded, error) { return new(api.Encoded), nil }

func (c client) Infer(ctx context.Context, _ *api.Encoded) (*api.InferResponse, error) {
	c.e.lab.asked.Add(1)
	if c.e.lab.refusal != nil {
		return nil, c.e.lab.refusal
	}
	return nil, c.e.infer(ctx, 1)
}

// wire prepares requests for the engine at an address.
func (l *lab) wire(a api.Announcement, requests Requests, _ int64) (Connections, error) {
	c := connections{e: l.at(a)}
	for _, r := range requests {
		rows := 1
		if len(r.Inputs) > 0 {
			rows = int(r.Inputs[0].Shape[0])
		}
		c.rows = append(c.rows, rows)
	}
	return c, nil
}

// connections opens connections to an engine.
type connections struct {
	e    *engine
	rows []int // rows of each request: the value of its first input, 1 without inputs
}

func (c connections) IsLarge() bool { return false }

func (c connections) Dial(context.Context, int) (load.Conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{connections: c, ctx: ctx, cancel: cancel}, nil
}

// conn sends one request after the other.
type conn struct {
	connections
	ctx    context.Context
	cancel func()
	sent   int // rows of the request in flight
}

func (c *conn) Slots() int          { return 1 }
func (c *conn) Send(_, request int) { c.sent = c.rows[request%len(c.rows)] }
func (c *conn) Broken() bool        { return c.ctx.Err() != nil }
func (c *conn) Interrupt()          { c.cancel() }
func (c *conn) Receive() (slot int, final, null bool, err error) {
	return 0, true, false, c.e.infer(c.ctx, c.sent)
}
func (c *conn) Close() error {
	c.cancel()
	return nil
}

// infer executes one request.
func (e *engine) infer(ctx context.Context, rows int) error {
	e.mu.Lock()
	e.sent++
	n := e.sent
	e.mu.Unlock()
	if e.lab.send != nil {
		if err := e.lab.send(e, n); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return errors.New("connection reset")
	case <-time.After(e.lab.takes(rows)):
		e.count(rows)
		return nil
	}
}

// takes returns the time of a request.
func (l *lab) takes(rows int) time.Duration { return l.service + time.Duration(rows-1)*l.row }

// count adds a request to the statistics: 1/4 of the time in the queue, the rest computing.
func (e *engine) count(rows int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	quarter := uint64(e.lab.takes(rows) / 4)
	e.stats.InferenceCount += uint64(rows)
	e.stats.ExecutionCount++
	s := &e.stats.InferenceStats
	s.Success = addDurations(s.Success, api.Duration{Count: 1, NS: 4 * quarter})
	s.Queue = addDurations(s.Queue, api.Duration{Count: 1, NS: quarter})
	s.ComputeInfer = addDurations(s.ComputeInfer, api.Duration{Count: 1, NS: 3 * quarter})
	i := slices.IndexFunc(e.stats.BatchStats, func(b api.BatchStatistics) bool { return b.BatchSize == uint64(rows) })
	if i < 0 {
		i = len(e.stats.BatchStats)
		e.stats.BatchStats = append(e.stats.BatchStats, api.BatchStatistics{BatchSize: uint64(rows)})
	}
	b := &e.stats.BatchStats[i]
	b.ComputeInfer = addDurations(b.ComputeInfer, api.Duration{Count: 1, NS: 3 * quarter})
}

func addDurations(a, b api.Duration) api.Duration {
	return api.Duration{Count: a.Count + b.Count, NS: a.NS + b.NS}
}

// newLab makes a lab of working engines and a runner for it.
func newLab(t *testing.T) (*lab, *Runner) {
	l := &lab{service: 20 * ms, loadTakes: 100 * ms}
	r := New(Options{Launcher: l, Dial: l.dial, Wire: l.wire, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Epoch: time.Now()})
	t.Cleanup(func() { r.Close(context.Background()) })
	return l, r
}

// job returns a job at concurrency 4 with two windows of 1 s.
func job(pool, config string) Job {
	return Job{Pool: pool, Config: config, Model: "m", Instances: 1, Requests: Requests{{Model: "m"}, {Model: "m"}}, Load: measure.Load{Concurrency: 4, BatchSize: 1},
		Windows: 2, Window: time.Second}
}
