package onnxruntime

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// processors keeps one of Go's processors (GOMAXPROCS) free of ONNX Runtime. A goroutine inside
// ONNX Runtime holds its processor until the monitor of Go's runtime takes it away, which can be 10
// ms later. With as many runs as processors, finished answers and new requests would wait for it.
// The operating system still decides which thread runs on which core.
//
// There is one processor more than the largest number of runs at the same time lately. Idle open
// sessions do not count. Each goroutine that looks for work checks all processors, so processors of
// idle models would slow down the busy one. The number changes rarely, since each change stops the
// process for about 20 µs.
type processors struct {
	least int       // number at the start of the process
	set   func(int) // runtime.GOMAXPROCS

	running atomic.Int64
	most    atomic.Int64 // largest number of runs at the same time since the last review
	begun   atomic.Int64 // runs so far

	mu  sync.Mutex
	now atomic.Int64 // current setting; changed under mu
}

// reviewed is the number of runs after which processors that no run needed are taken away.
const reviewed = 10_000

func newProcessors() *processors {
	p := &processors{least: runtime.GOMAXPROCS(0), set: func(n int) { runtime.GOMAXPROCS(n) }}
	p.now.Store(int64(p.least))
	return p
}

// enter counts a run that begins.
func (p *processors) enter() {
	n := p.running.Add(1)
	for most := p.most.Load(); n > most && !p.most.CompareAndSwap(most, n); {
		most = p.most.Load()
	}
	if p.begun.Add(1)%reviewed == 0 {
		p.review()
	}
	if n+1 > p.now.Load() {
		p.grow()
	}
}

// leave counts a run that has ended.
func (p *processors) leave() { p.running.Add(-1) }

func (p *processors) grow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adjust(max(p.now.Load(), p.most.Load()+1))
}

// review lowers the number to the largest need since the last review.
func (p *processors) review() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adjust(p.most.Swap(p.running.Load()) + 1)
}

func (p *processors) adjust(want int64) {
	want = max(want, int64(p.least))
	if want != p.now.Load() {
		p.now.Store(want)
		p.set(int(want))
	}
}
