package target

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"tuner/engine/api"
	"tuner/internal/children"
	"tuner/internal/hostinfo"
	"tuner/runner"
)

// File descriptors of the child contract. ExtraFiles begin at 3.
const (
	announceFD = 3
	parentFD   = 4
)

// outputDelay bounds the reading of a dead process's output, in case another process holds it open.
const outputDelay = time.Second

// process is a server process that this program started, in its own process group. It dies with
// this program (internal/children). Tuner's own engine is ready once it has announced its
// addresses. It also ends at the end of file on parentFD. Another server (Local) announces nothing;
// it is ready once it answers.
type process struct {
	cmd      *exec.Cmd
	tail     children.Tail
	address  api.Announcement
	lifeline *os.File // our end of parentFD; nil without
	drain    time.Duration
	kills    hostinfo.Kills // before it started
	cleared  sync.Once      // the rest of its group has been ended

	mu    sync.Mutex
	state state
	died  bool          // it exited by itself
	exit  string        // exit status: "exit status 1", "signal: killed"
	oom   bool          // the kernel killed it since memory ran out
	group bool          // the kernel counted that in the control group
	done  chan struct{} // closed when it has exited
}

// startProcess starts a command that keeps the child contract. It waits until the command has
// announced its addresses, exited, or taken longer than patience. Once ready, the process has the
// time drain to end after SIGTERM. A *runner.StartError means that it did not become ready; it has
// ended then.
func startProcess(ctx context.Context, cmd *exec.Cmd, patience, drain time.Duration) (*process, error) {
	announce, announceChild, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe to the engine: %w", err)
	}
	defer func() { _ = announce.Close() }()
	defer func() { _ = announceChild.Close() }()
	parentChild, lifeline, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe to the engine: %w", err)
	}
	defer func() { _ = parentChild.Close() }()

	p := &process{cmd: cmd, tail: children.Tail{IsGo: true}, drain: drain, kills: hostinfo.MemoryKills(), lifeline: lifeline, done: make(chan struct{})}
	cmd.Stderr = &p.tail
	cmd.ExtraFiles = []*os.File{announceChild, parentChild}
	cmd.WaitDelay = outputDelay
	if err := p.start(); err != nil {
		_ = lifeline.Close()
		return nil, fmt.Errorf("cannot start engine: %w", err)
	}
	_ = announceChild.Close() // so that the child's exit ends the file
	if err := p.awaitReady(ctx, announce, patience); err != nil {
		return nil, err
	}
	return p, nil
}

// start starts the command and a goroutine that waits for its end.
func (p *process) start() error {
	ended, err := children.Start(p.cmd)
	if err != nil {
		return err
	}
	if group := hostinfo.MemoryLimit(); group > 0 {
		confine(p.cmd.Process.Pid, group)
	}
	go func() {
		<-ended // ProcessState has the exit status
		p.ended()
	}()
	return nil
}

// ended records the exit of the process.
func (p *process) ended() {
	_ = p.lifeline.Close()
	p.mu.Lock()
	p.died = p.state == starting || p.state == ready
	p.exit = p.cmd.ProcessState.String()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	kills := hostinfo.MemoryKills()
	p.oom = ok && p.died && status.Signaled() && status.Signal() == syscall.SIGKILL && kills.Count > p.kills.Count
	p.group = p.oom && kills.InGroup
	p.mu.Unlock()
	p.handle(exitedEvent)
	close(p.done)
}

// handle makes the transition of an event.
func (p *process) handle(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var do action
	p.state, do = p.state.next(e)
	switch do {
	case terminate:
		_ = children.Signal(p.cmd, syscall.SIGTERM) // fails only if it has already ended
	case kill:
		_ = children.Signal(p.cmd, syscall.SIGKILL)
	case noAction:
	}
}

// longestAnnouncement is the largest length of an announcement in bytes. It has three addresses and
// a path.
const longestAnnouncement = 64 << 10

// readAnnouncement reads one line, and checks its addresses.
func readAnnouncement(r io.Reader) (api.Announcement, error) {
	line, err := bufio.NewReader(io.LimitReader(r, longestAnnouncement)).ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) == longestAnnouncement {
		err = fmt.Errorf("its first line is longer than %d bytes", longestAnnouncement)
	}
	if err != nil {
		return api.Announcement{}, err
	}
	var at api.Announcement
	if err := json.Unmarshal(line, &at); err != nil {
		return api.Announcement{}, err
	}
	if at.HTTP == "" && at.GRPC == "" {
		return api.Announcement{}, errors.New("it serves neither HTTP nor gRPC")
	}
	for _, address := range []string{at.HTTP, at.GRPC, at.Metrics} {
		if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
			return api.Announcement{}, err
		}
	}
	return at, nil
}

// awaitReady reads the announcement.
func (p *process) awaitReady(ctx context.Context, announce *os.File, patience time.Duration) error {
	if err := announce.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.handle(overdueEvent)
		<-p.done
		return fmt.Errorf("cannot wait for the engine: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = announce.SetReadDeadline(time.Unix(0, 0)) })()
	at, err := readAnnouncement(announce)
	if err == nil {
		p.address = at
		p.handle(announcedEvent)
		return nil
	}
	if ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		p.wait(outputDelay) // end of the file: it has probably exited
	}
	p.handle(overdueEvent)
	<-p.done
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &runner.StartError{Reason: p.startReason(err, patience)}
}

func (p *process) startReason(err error, patience time.Duration) string {
	reason := fmt.Sprintf("it announced no addresses: %v", err)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = fmt.Sprintf("it was not ready within %v", patience)
	case p.died:
		reason = "it ended before it was ready (" + p.exit + ")"
	}
	return runner.WithLastWords(reason, p.tail.String())
}

// Stop sends SIGTERM to the whole group, and SIGKILL if the process does not end in time.
func (p *process) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.drain)
	defer cancel()
	p.Resume() // a stopped process does not handle SIGTERM
	p.handle(stopEvent)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.handle(overdueEvent)
	}
	<-p.done
	p.cleared.Do(func() { p.clear(ctx) })
}

// clearEvery is the interval at which clear checks for processes left in a group.
const clearEvery = 20 * time.Millisecond

// clear ends the processes left in the group, such as a server whose script ended first. It kills
// the group when the context ends.
func (p *process) clear(ctx context.Context) {
	group := p.cmd.Process.Pid
	if children.Signal(p.cmd, syscall.SIGTERM) != nil {
		return // the group is empty
	}
	for len(hostinfo.Group(group)) > 0 {
		select {
		case <-time.After(clearEvery):
		case <-ctx.Done():
			_ = children.Signal(p.cmd, syscall.SIGKILL) // fails only if it has already ended
			return
		}
	}
}

// wait waits for the exit, for at most d.
func (p *process) wait(d time.Duration) {
	select {
	case <-p.done:
	case <-time.After(d):
	}
}

func (p *process) Address() api.Announcement { return p.address }
func (p *process) PID() int                  { return p.cmd.Process.Pid }
func (p *process) Done() <-chan struct{}     { return p.done }
func (p *process) LastWords() string         { return p.tail.String() }

func (p *process) Exit() runner.Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return runner.Exit{Text: p.exit, OutOfMemory: p.oom, InGroup: p.group}
}

// Pause stops the process's group. If the parent dies, the kernel kills a stopped process too.
func (p *process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume continues the group. It has no effect on a running process.
func (p *process) Resume() { p.signal(syscall.SIGCONT) }

// signal sends a signal to the group if the process is ready. In other states it does nothing.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == ready {
		_ = children.Signal(p.cmd, s) // fails only if it has already ended
	}
}
