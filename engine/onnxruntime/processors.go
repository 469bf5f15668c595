package onnxruntime

import (
	"runtime"
	"sync"
)

// processors keeps one of Go's processors (GOMAXPROCS) free of ONNX Runtime. A goroutine inside it holds the processor that
// it came with until the Go runtime's monitor takes that away, which can be 10 ms later: with as many busy sessions as
// processors, answers that are ready and requests that have come would wait for it. Which thread runs on which core is the
// operating system's business as before.
type processors struct {
	least int // what the process started with

	mu       sync.Mutex
	sessions int
}

func newProcessors() *processors { return &processors{least: runtime.GOMAXPROCS(0)} }

// add counts n more open sessions.
func (p *processors) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions += n
	if want := max(p.least, p.sessions+1); want != runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(want)
	}
}
