package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"tuner/internal/hostinfo"
)

// asNeighbour is the hidden first argument that makes the benchmark its own neighbour. The second
// is the seed.
const asNeighbour = "neighbour"

// neighbourShare is the neighbour's mean share of one core. burstTime is the mean length of its
// bursts.
const (
	neighbourShare = 0.3
	burstTime      = time.Second
)

// besides calls do while a neighbour computes in bursts. It returns the share of one core that the
// neighbour used.
func (b *bench) besides(seed uint64, do func() error) (share float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("cannot start the neighbour: %w", err)
	}
	command := exec.Command(self, asNeighbour, strconv.FormatUint(seed, 10))
	command.Stderr = b.messages
	// If this process is killed, it cannot end the neighbour, which would disturb later work.
	// a terminal's Ctrl-C must not reach it
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// the kernel kills the neighbour when the thread that started it ends
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := b.now()
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("cannot start the neighbour: %w", err)
	}
	err = do()
	kill := command.Process.Kill()
	_ = command.Wait() // ProcessState has the outcome
	state := command.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); kill != nil || !ok || !status.Signaled() {
		err = errors.Join(err, fmt.Errorf("the neighbour had ended before it was asked to: %v", state))
	}
	return (state.UserTime() + state.SystemTime()).Seconds() / b.now().Sub(begin).Seconds(), err
}

// neighbour computes in bursts until it is killed.
func neighbour(ctx context.Context, args []string, _, _ io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes a seed", asNeighbour)
	}
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no seed: %w", args[0], err)
	}
	d := newDuty(seed)
	for due := time.Now(); ctx.Err() == nil; {
		burst, rest := d.next()
		if err := compute(burst); err != nil {
			return err
		}
		// Rests are shortened by the time that bursts waited for the core, so that the share holds.
		due = due.Add(burst + rest)
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(due)):
		}
	}
	return nil
}

// duty draws the lengths of the neighbour's bursts and rests: exponential times. A rest compensates
// for the burst before it, so that the share holds over minutes, too.
type duty struct{ random *rand.Rand }

func newDuty(seed uint64) duty { return duty{rand.New(rand.NewPCG(seed, 0x6e6f697365))} }

func (d duty) next() (burst, rest time.Duration) {
	seconds := burstTime.Seconds() * d.random.ExpFloat64()
	return time.Duration(seconds * float64(time.Second)), time.Duration(seconds * (1/neighbourShare - 1) * float64(time.Second))
}

// compute uses the CPU for a burst.
func compute(burst time.Duration) error {
	block := make([]byte, 1<<16) // a few dozen µs between two readings of the clock
	begin, err := hostinfo.OwnCPU()
	for now := begin; err == nil && now-begin < burst; now, err = hostinfo.OwnCPU() {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
	return err
}
