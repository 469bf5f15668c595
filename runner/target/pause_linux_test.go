package target

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Pause stops a process and Resume continues it. A stop in the middle of a pause lets the process
// end by itself.
func TestPausedProcess(t *testing.T) {
	t.Parallel()
	p := begin(t, "good", time.Hour)
	await := func(state int) {
		t.Helper()
		if err := unix.Waitid(unix.P_PID, p.PID(), nil, state|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
	}
	p.Pause()
	await(unix.WSTOPPED)
	p.Resume()
	await(unix.WCONTINUED)
	p.Pause()
	p.Stop(t.Context())
	if exit := p.Exit(); exit.Text != "signal: terminated" {
		t.Errorf("exit %+v, want by SIGTERM", exit)
	}
	p.Pause() // the process has ended
}
