// Package children starts programs that end with this process, with all programs that they started,
// even if this process is killed (SIGKILL). It is used for the engines, the user's own programs and
// Python. It does not know what they do.
//
// A child is the head of its own process group. So Ctrl-C on a terminal does not reach it, and a
// signal for the group reaches its own children. Two mechanisms end a child whose parent has ended.
// On Linux the kernel kills it (its death signal), but not its children. So a guard beside it kills
// the group: a shell that waits for the end of a pipe.
//
// Two cases are not covered: programs that leave the group on purpose (setsid), and children that
// start in the milliseconds before the guard runs.
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

// outputDelay limits the time for which the output of an ended program is read, in case another
// process holds it open.
const outputDelay = time.Second

// Command is exec.CommandContext for Run. The end of the context kills the whole group.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return Signal(cmd, syscall.SIGKILL) }
	cmd.WaitDelay = outputDelay
	return cmd
}

// Run starts a command and waits for its end. It then kills the remaining processes of its group.
func Run(cmd *exec.Cmd) error {
	ended, err := Start(cmd)
	if err != nil {
		return err
	}
	err = <-ended
	_ = Signal(cmd, syscall.SIGKILL) // fails if no process remains
	return err
}

// Output is Run, and returns the command's standard output and error.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b // one writer for both, so one goroutine writes to it
	err := Run(cmd)
	return b.Bytes(), err
}

// Start starts a command. The channel gives the result of its Wait, once. The rest of its group may
// live longer.
func Start(cmd *exec.Cmd) (<-chan error, error) {
	cmd.SysProcAttr = attributes()
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that started the child ends. So this
		// thread lives as long as the child.
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

// Signal sends a signal to the group of a started command.
func Signal(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// guard is the shell that kills a group when this process has ended.
type guard struct {
	shell    *exec.Cmd
	lifeline *os.File // it is closed when this process ends
}

// GuardName is the name of guards in lists of processes, with the number of their group.
const GuardName = "tuner-guard"

// guardScript waits for the end of its input and kills the group $1.
const guardScript = `read -r _; kill -KILL "-$1"`

// newGuard starts the guard of a group. Without a shell there is no guard, only the kernel's
// signal.
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

// end ends the guard before its input ends, since another group may get the number soon.
func (g *guard) end() {
	if g == nil {
		return
	}
	_ = g.shell.Process.Kill()
	_ = g.shell.Wait() // it was killed
	_ = g.lifeline.Close()
}
