// Package faulty is a disk for tests of failed writes. At one chosen operation the disk is full,
// the device fails, a write is incomplete, or the process or the machine ends. All earlier
// operations use real files.
package faulty

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"tuner/internal/durable"
)

// Fault is the failure of an operation.
type Fault int

// The faults.
const (
	NoSpace  Fault = iota // ENOSPC after half of a write; the disk stays full for all later writes
	IOError               // EIO once, without an effect
	Short                 // a write writes half and reports that, once; other operations fail with EIO
	Crash                 // a write writes half; later operations have no effect, as if the process had ended
	PowerCut              // Crash, and unsynced appends are lost too
	Kill                  // a write writes half, and this process is killed as by kill -9
)

// All lists the faults after which the calling process lives.
func All() []Fault { return []Fault{NoSpace, IOError, Short, Crash, PowerCut} }

// String returns the name of a fault.
func (f Fault) String() string {
	return [...]string{"no space", "I/O error", "short write", "crash", "power cut", "kill -9"}[f]
}

// ErrGone is the error of operations after a crash.
var ErrGone = errors.New("the process is gone")

// Disk fails at its operation number At, from 1; 0: never. It is safe for concurrent use.
type Disk struct {
	At    int
	Fault Fault

	mu     sync.Mutex
	done   int // number of operations so far
	isGone bool
	isFull bool
}

// Operations returns the number of operations so far.
func (d *Disk) Operations() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// next counts an operation. It returns its error, usually nil, and whether a part of it happens
// before. On a full disk, operations that free space work.
func (d *Disk) next(isFreeing bool) (mayStart bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done++
	switch {
	case d.isGone:
		return false, ErrGone
	case d.isFull && !isFreeing:
		return false, syscall.ENOSPC
	case d.done != d.At:
		return true, nil
	}
	switch d.Fault {
	case NoSpace:
		if d.isFull = true; isFreeing {
			return true, nil
		}
		return true, syscall.ENOSPC
	case IOError:
		return false, syscall.EIO
	case Short:
		return true, syscall.EIO
	}
	d.isGone = true
	return true, ErrGone
}

// do executes an operation that cannot be done by half.
func (d *Disk) do(isFreeing bool, operation func() error) error {
	if _, err := d.next(isFreeing); err != nil {
		d.die(err)
		return err
	}
	return operation()
}

// die kills the process if that is the fault.
func (d *Disk) die(err error) {
	if errors.Is(err, ErrGone) && d.Fault == Kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// Create makes a file.
func (d *Disk) Create(dir, pattern string) (durable.File, error) {
	return d.open(func() (durable.File, error) { return durable.OS{}.Create(dir, pattern) })
}

// Append opens a file.
func (d *Disk) Append(path string) (durable.File, error) {
	return d.open(func() (durable.File, error) { return durable.OS{}.Append(path) })
}

func (d *Disk) open(open func() (durable.File, error)) (durable.File, error) {
	var opened durable.File
	err := d.do(false, func() (err error) { opened, err = open(); return err })
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(opened.Name())
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &file{opened, d, info.Size()}, nil
}

// Rename renames a file.
func (d *Disk) Rename(from, to string) error {
	return d.do(false, func() error { return durable.OS{}.Rename(from, to) })
}

// Remove removes a file.
func (d *Disk) Remove(path string) error {
	return d.do(true, func() error { return durable.OS{}.Remove(path) })
}

// SyncDir syncs a folder.
func (d *Disk) SyncDir(dir string) error {
	return d.do(false, func() error { return durable.OS{}.SyncDir(dir) })
}

// file is a file on the disk.
type file struct {
	durable.File
	disk   *Disk
	synced int64 // bytes that survive a power cut
}

// Write writes all bytes, or half of them and returns an error.
func (f *file) Write(p []byte) (int, error) {
	mayStart, err := f.disk.next(false)
	if err == nil {
		return f.File.Write(p)
	}
	n := 0
	if mayStart {
		n, _ = f.File.Write(p[:len(p)/2])
	}
	f.cutPower(err)
	f.disk.die(err)
	return n, err
}

// Sync makes written bytes survive a power cut.
func (f *file) Sync() error {
	err := f.disk.do(false, f.File.Sync)
	if err != nil {
		f.cutPower(err)
		return err
	}
	info, err := os.Stat(f.Name())
	if err == nil {
		f.synced = info.Size()
	}
	return err
}

// Truncate shortens the file.
func (f *file) Truncate(size int64) error {
	err := f.disk.do(true, func() error { return f.File.Truncate(size) })
	f.synced = min(f.synced, size)
	return err
}

// cutPower removes unsynced bytes if the fault is a power cut.
func (f *file) cutPower(err error) {
	if errors.Is(err, ErrGone) && f.disk.Fault == PowerCut {
		_ = os.Truncate(f.Name(), f.synced) // nobody reads a file that still has a temporary name
	}
}

// Close closes the file after every fault, since the system closes the files of an ended process.
func (f *file) Close() error {
	closed := f.File.Close()
	if _, err := f.disk.next(true); err != nil {
		f.disk.die(err)
		return err
	}
	return closed
}
