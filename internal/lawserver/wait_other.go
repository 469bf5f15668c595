//go:build !linux

package lawserver

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
