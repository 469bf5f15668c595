package onnxruntime

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// processors keeps one of Go's processors (GOMAXPROCS) free of ONNX Runtime. A goroutine inside it holds the processor that
// it came with until the Go runtime's monitor takes that away, which can be 10 ms later: with as many runs as processors,
// answers that are ready and requests that have come would wait for it. Which thread runs on which core is the operating
// system's business as before.
//
// There is one more than the most runs that went on at the same time lately. Sessions that are merely open have none: each
// goroutine that looks for work looks at all processors, so that those of idle models would slow down the busy one. The
// number changes rarely, because each change stops the process for some 20 µs.
type processors struct {
	least int       // what the process started with
	set   func(int) // of runtime.GOMAXPROCS

	running atomic.Int64
	most    atomic.Int64 // runs at the same time, since the last review
	begun   atomic.Int64 // runs ever

	mu  sync.Mutex
	now atomic.Int64 // what is set; changed under mu
}

// reviewed is the number of runs after which processors are taken back that none of them needed.
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

// review goes down to what was needed since the last one.
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
