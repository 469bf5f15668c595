package onnxruntime

import (
	"runtime"
	"sync"
)

// processors gives Go one more processor (GOMAXPROCS) for each session. A goroutine inside ONNX Runtime holds the processor
// that it came with until the Go runtime's monitor takes that away, which can be 10 ms later: with as many busy sessions as
// processors, answers that are ready and requests that have come would wait for it. Which thread runs on which core is the
// operating system's business as before.
type processors struct {
	mu sync.Mutex
}

func (p *processors) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}
