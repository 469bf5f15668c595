//go:build !linux

package testserver

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
