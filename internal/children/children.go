// Package children starts programs that end with this process, however it ends, also by SIGKILL, and with all that they
// started: the engines, the user's own programs, Python. It knows nothing of what they do.
//
// A child is the head of a process group of its own, so that a terminal's Ctrl-C does not reach it, and a signal for the
// group reaches what it started. Two things end a child whose parent is gone. On Linux the kernel kills it (its death signal).
// That does not reach what the child started, so a guard beside it, a shell that waits for the end of a pipe, kills the group.
// Out of reach are what leaves the group on purpose (setsid), and what a child starts in the milliseconds before its guard is there.
package children

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// outputDelay bounds how long the output of a program that has ended is read, in case something else holds it open.
const outputDelay = time.Second

// Command is exec.CommandContext for Run: the end of the context kills the whole group.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return Signal(cmd, syscall.SIGKILL) }
	cmd.WaitDelay = outputDelay
	return cmd
}

// Run starts a command and waits for its end. What it started and left behind is killed then.
func Run(cmd *exec.Cmd) error {
	ended, err := Start(cmd)
	if err != nil {
		return err
	}
	err = <-ended
	_ = Signal(cmd, syscall.SIGKILL) // fails where nothing is left
	return err
}

// Output is Run that returns what the command writes to its standard output and error.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b // one writer for both is written to by one goroutine
	err := Run(cmd)
	return b.Bytes(), err
}

// Start starts a command; the channel gives the result of its Wait, once. The rest of its group may live longer.
func Start(cmd *exec.Cmd) (<-chan error, error) {
	cmd.SysProcAttr = attributes()
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that started the child ends: it lives as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err != nil {
			started <- err
			return
		}
		guard := newGuard(cmd.Process.Pid)
		started <- nil
		err = cmd.Wait()
		guard.end()
		ended <- err
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return ended, nil
}

// Signal sends a signal to the group of a command that Start has started.
func Signal(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// guard is the shell that kills a group once this process is gone.
type guard struct {
	shell    *exec.Cmd
	lifeline *os.File // its end is the end of this process
}

// GuardName is the name under which guards are seen in lists of processes, with the number of their group.
const GuardName = "tuner-guard"

// guardScript waits for the end of its input and kills the group $1.
const guardScript = `read -r _; kill -KILL "-$1"`

// newGuard starts the guard of a group. Where no shell is to be had there is none, and the kernel's signal must do.
func newGuard(group int) *guard {
	in, lifeline, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer in.Close()
	shell := exec.Command("/bin/sh", "-c", guardScript, GuardName, strconv.Itoa(group))
	shell.Stdin = in
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a closed terminal must not end it
	if err := shell.Start(); err != nil {
		_ = lifeline.Close()
		return nil
	}
	return &guard{shell, lifeline}
}

// end ends the guard before it sees the end of its input: the number of the group may soon be another's.
func (g *guard) end() {
	if g == nil {
		return
	}
	_ = g.shell.Process.Kill()
	_ = g.shell.Wait() // it was killed
	_ = g.lifeline.Close()
}
