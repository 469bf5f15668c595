package alarm

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer is a timer descriptor (timerfd_create(2)). Go's poller wakes as soon as it is due, however long it meant to wait.
type kernelTimer struct {
	fd   int
	file *os.File
}

// newKernelTimer makes one that calls a function when it is due; nil where there is no descriptor left.
func newKernelTimer(call func()) *kernelTimer {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	k := &kernelTimer{fd: fd, file: os.NewFile(uintptr(fd), "timer")}
	go k.serve(call)
	return k
}

// serve calls the function each time, until the descriptor is closed.
func (k *kernelTimer) serve(call func()) {
	var expirations [8]byte
	for {
		if _, err := k.file.Read(expirations[:]); err != nil {
			return
		}
		call()
	}
}

// set arms the timer; 0 disarms it.
func (k *kernelTimer) set(d time.Duration) {
	_ = unix.TimerfdSettime(k.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

func (k *kernelTimer) close() { _ = k.file.Close() }
