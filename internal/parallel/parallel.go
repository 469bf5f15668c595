// Package parallel does pieces of work that do not depend on each other on all cores. What they yield lies in the order of the pieces, so that
// nothing shows how many cores there were.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls work for 0 … n−1, each once, on as many goroutines as there are cores for Go, and waits for all of them. A piece should take
// microseconds at least.
func For(n int, work func(i int)) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				work(int(i))
			}
		})
	}
	workers.Wait()
}

// Try is For with work that may fail. The error is that of the first piece that fails, as if they had been done one after the other; all are
// done nevertheless.
func Try(n int, work func(i int) error) error {
	errs := make([]error, n)
	For(n, func(i int) { errs[i] = work(i) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
