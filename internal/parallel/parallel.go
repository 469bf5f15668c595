// Package parallel runs independent pieces of work on all cores. Results are in the order of the
// pieces, so they do not depend on the number of cores.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls work for 0 … n−1, each once, on as many goroutines as Go has cores, and waits for all
// of them. A piece should take microseconds at least.
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

// Try is For with work that may fail. It returns the error of the first piece that fails, in order.
// It still runs all pieces.
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
