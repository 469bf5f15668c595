//go:build !linux

package load

import "time"

// newWaiter makes the waiter of the calling goroutine.
func newWaiter(now func() time.Duration, sleeps bool) waiter { return newSleeper(now, sleeps) }
