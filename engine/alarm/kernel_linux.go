package alarm

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer is a timer descriptor (timerfd_create(2)). It wakes Go's poller exactly when it is
// due.
type kernelTimer struct {
	fd   int
	file *os.File
}

// newKernelTimer makes a timer that calls a function when it is due. It returns nil if no
// descriptor is left.
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
