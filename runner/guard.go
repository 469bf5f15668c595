package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"tuner/internal/hostinfo"
)

// errEngineEnded ends a trial whose engine has ended.
var errEngineEnded = errors.New("the engine ended by itself")

// lookEvery is the interval at which the guard reads the engine's memory.
const lookEvery = 100 * time.Millisecond

// guard watches an engine during a trial: its end and its memory.
type guard struct {
	pid     int // the engine's process; 0 if unknown
	limit   memoryError
	cancel  context.CancelCauseFunc
	watcher sync.WaitGroup
	isReset bool // the kernel's own peak began with this trial

	mu   sync.Mutex
	pids []int // that process and its children
	peak int64 // largest resident set seen
}

// watch returns a context that ends when the engine ends or exceeds the limit. The caller stops the
// guard at the end of the trial.
func watch(ctx context.Context, e Engine, limit memoryError) (context.Context, *guard) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &guard{pid: e.PID(), cancel: cancel, limit: limit}
	if g.pid != 0 {
		g.pids, g.isReset = hostinfo.Tree(g.pid), true
		for _, pid := range g.pids {
			g.isReset = hostinfo.ResetPeak(pid) == nil && g.isReset
		}
	}
	g.watcher.Go(func() {
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for {
			g.readPeak()
			select {
			case <-ctx.Done():
				return
			case <-e.Done():
				cancel(errEngineEnded)
				return
			case <-look.C:
			}
		}
	})
	return ctx, g
}

// renew reads again which children the engine has: a server starts and ends processes when it loads models, such as one for
// each instance of a Python model. The peak of a new one began with this trial.
func (g *guard) renew() {
	if g.pid == 0 {
		return
	}
	tree := hostinfo.Tree(g.pid)
	g.mu.Lock()
	g.pids = tree
	g.mu.Unlock()
	g.readPeak()
}

// readPeak returns the engine's peak resident set since the watch began, and ends the trial if that
// is over the limit. 0: unknown.
func (g *guard) readPeak() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pids) == 0 {
		return 0
	}
	usage, err := hostinfo.Usage(g.pids)
	if err != nil {
		return g.peak // the engine has just ended, or the system has no such figure
	}
	g.peak = max(g.peak, usage.RSS)
	if g.isReset {
		g.peak = max(g.peak, usage.PeakRSS)
	}
	if over := g.limit; over.limit > 0 && g.peak > over.limit {
		over.used = g.peak
		g.cancel(&over)
	}
	return g.peak
}

// stop ends the watch and returns the peak, as readPeak does.
func (g *guard) stop() int64 {
	g.cancel(nil)
	g.watcher.Wait()
	return g.readPeak()
}
