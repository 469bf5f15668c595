package cli

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A closed terminal ends every verb except a server, unless nohup blocks the signal.
func TestEndings(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{"": true, "profile -f x": true, "run m.onnx": true, "serve": false, "serve --id serve": false, "perf -m serve": true} {
		if got := slices.Contains(endings(strings.Fields(args), false), os.Signal(syscall.SIGHUP)); got != want {
			t.Errorf("tuner %s: SIGHUP ends it: %t, want %t", args, got, want)
		}
		if slices.Contains(endings(strings.Fields(args), true), os.Signal(syscall.SIGHUP)) {
			t.Errorf("tuner %s: under nohup SIGHUP ends it", args)
		}
	}
}

// The first signal requests the end. For a moment, the same signal again counts as its echo.
func TestObey(t *testing.T) {
	t.Parallel()
	type sent struct {
		signal os.Signal
		after  time.Duration // since the previous one
	}
	const term, interrupt = syscall.SIGTERM, syscall.SIGINT
	for name, tt := range map[string]struct {
		signals []sent
		exitAt  int // the signal that ends the process; 0: none
	}{
		"once":                        {[]sent{{term, 0}}, 0},
		"echo":                        {[]sent{{term, 0}, {term, 0}}, 0},
		"late echo":                   {[]sent{{term, 0}, {term, echo - 1}}, 0},
		"several echoes":              {[]sent{{interrupt, 0}, {interrupt, 1}, {interrupt, 1}, {interrupt, 1}}, 0},
		"twice":                       {[]sent{{term, 0}, {term, echo}}, 2},
		"another one":                 {[]sent{{term, 0}, {interrupt, 0}}, 2},
		"echo, then twice":            {[]sent{{term, 0}, {term, 0}, {term, echo}}, 3},
		"echo, then much later":       {[]sent{{interrupt, time.Hour}, {interrupt, 1}, {interrupt, time.Hour}}, 3},
		"echo, then another one":      {[]sent{{interrupt, 0}, {interrupt, 0}, {term, 0}}, 3},
		"echoes count from the first": {[]sent{{term, 0}, {term, echo / 2}, {term, echo / 2}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				finished, exited := 0, 0
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					obey(signals, func() { finished++ }, func() { exited++ })
				}()
				for i, s := range tt.signals {
					time.Sleep(s.after)
					signals <- s.signal
					synctest.Wait()
					if finished != 1 || (exited == 1) != (tt.exitAt == i+1) {
						t.Errorf("after signal %d: finished %d times, exited %d times; want the exit with %d", i+1, finished, exited, tt.exitAt)
					}
				}
				close(signals)
				<-ended
			})
		})
	}
}
