//go:build linux

package hangup

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// BenchmarkWaiting measures the cost, in cores, of requests that only wait for their answer.
func BenchmarkWaiting(b *testing.B) {
	for _, n := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("requests=%d", n), func(b *testing.B) {
			var h List
			defer h.Close()
			watches := make([]Watch, n)
			for i := range watches {
				_, conn := pair(b)
				watches[i].Begin(&h, conn)
				defer watches[i].End()
			}
			time.Sleep(10 * untilWatched)
			begin, before := time.Now(), processTime(b)
			for range b.N {
				time.Sleep(10 * time.Millisecond)
			}
			b.ReportMetric((processTime(b)-before).Seconds()/time.Since(begin).Seconds(), "cores")
		})
	}
}

func processTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
