//go:build linux && !noengine

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tuner/internal/exit"
)

// A campaign whose terminal is closed ends as with Ctrl-C, although it cannot print its messages.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	tuner, err := exec.LookPath("tuner") // this test binary, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	terminal, screen := openTerminal(t)
	p := &program{t: t, cmd: exec.CommandContext(t.Context(), tuner, "profile", "-f", "profile.yaml"), ended: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Env = w.dir, append(os.Environ(), w.env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = screen, screen, screen
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	go func() { // unread output would block the campaign
		for text := make([]byte, 4096); ; {
			if _, err := terminal.Read(text); err != nil {
				return
			}
		}
	}()
	engine := w.awaitTrials(p, 2)
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil { // the kernel sends SIGHUP
		t.Fatal(err)
	}
	if code := p.exit(); code != exit.Interrupted {
		t.Errorf("exit code %d, want %d", code, exit.Interrupted)
	}
	awaitGone(t, engine)
	w.checkInterrupted()
	w.analyze()
}

// openTerminal makes a pseudo-terminal. terminal is the end of the viewer, screen that of the
// program.
func openTerminal(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	raw, err := terminal.SyscallConn() // Fd would make reads block, and Close wait for them
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		failed = errors.Join(failed, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = terminal.Close(), screen.Close() }) // a successful test has closed both
	return terminal, screen
}
