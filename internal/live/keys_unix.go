//go:build linux || darwin

package live

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mode is the terminal's mode in which single keys are read, and the mode before. Signals stay with
// the kernel: Ctrl-C reaches all processes of the campaign as it always does. A suspended campaign
// would measure its own pause, so Ctrl-Z does nothing.
type mode struct {
	fd            int
	before, while unix.Termios
}

// keyMode reads the terminal's mode. It fails for a process in the background, which the kernel
// would stop.
func keyMode(in *os.File) (mode, error) {
	m := mode{fd: int(in.Fd())}
	before, err := unix.IoctlGetTermios(m.fd, getMode)
	if err != nil {
		return mode{}, fmt.Errorf("cannot read its mode: %w", err)
	}
	if group, err := unix.IoctlGetInt(m.fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return mode{}, errors.New("the program is in the background")
	}
	m.before, m.while = *before, *before
	m.while.Lflag &^= unix.ICANON | unix.ECHO
	m.while.Cc[unix.VSUSP] = noKey
	m.while.Cc[unix.VMIN], m.while.Cc[unix.VTIME] = 1, 0
	return m, nil
}

func (m mode) enter() error { return unix.IoctlSetTermios(m.fd, setMode, &m.while) }

// leave restores the mode. A terminal that is gone needs none.
func (m mode) leave() { _ = unix.IoctlSetTermios(m.fd, setMode, &m.before) }

// keyWait is the longest time after which the reader of keys notices that the screen was left.
const keyWait = 500 * time.Millisecond

// readKeys obeys keys until the screen is left.
func (s *Screen) readKeys() {
	fds := []unix.PollFd{{Fd: int32(s.mode.fd), Events: unix.POLLIN}}
	for text := make([]byte, 64); ; {
		select {
		case <-s.done:
			return
		default:
		}
		n, err := unix.Poll(fds, int(keyWait.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return
		case err != nil || n == 0:
			continue
		}
		if n, err = unix.Read(s.mode.fd, text); err != nil || n == 0 { // the terminal is gone
			return
		}
		for _, key := range string(text[:n]) {
			s.press(key)
		}
	}
}

// watchSize returns a channel of signals after which the screen must be drawn again.
func watchSize() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGCONT)
	return signals, func() { signal.Stop(signals) }
}

// isBack reports whether the process continues after it was stopped: a shell then has changed the
// terminal.
func isBack(s os.Signal) bool { return s == syscall.SIGCONT }
