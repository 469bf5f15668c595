package hangup

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// List reports clients that close a watched connection. The kernel reports them (epoll(7)) to
// one goroutine for all, so that a connection costs nothing while its request waits. The zero value
// is ready.
type List struct {
	mu       sync.Mutex
	file     *os.File // of the kernel's list of watched connections; nil until needed
	watches  map[uint64]*Watch
	last     uint64 // number of the latest watch
	isClosed bool
}

// add watches a connection. It returns the number for w.hangUp. 0: the connection is not watched,
// since it cannot be, or since the process has no descriptor left.
func (h *List) add(conn syscall.RawConn, w *Watch) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open() {
		return 0
	}
	h.last++
	// Level-triggered, so that a client that has gone already is reported too. Once, since this
	// state is final.
	event := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(h.last), Pad: int32(h.last >> 32)}
	if h.control(conn, unix.EPOLL_CTL_ADD, &event) != nil {
		return 0
	}
	h.watches[h.last] = w
	return h.last
}

// remove ends a watch that add began.
func (h *List) remove(conn syscall.RawConn, number uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watches, number)
	if !h.isClosed {
		// fails if the connection is closed, since the kernel has removed it
		_ = h.control(conn, unix.EPOLL_CTL_DEL, nil)
	}
}

func (h *List) control(conn syscall.RawConn, operation int, event *unix.EpollEvent) error {
	list, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		if err := list.Control(func(of uintptr) { failed = unix.EpollCtl(int(of), operation, int(fd), event) }); err != nil {
			failed = err
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// open makes the kernel's list when it is first needed. The descriptor does not block, so that Go's
// poller waits for it and no thread does.
func (h *List) open() bool {
	if h.file != nil || h.isClosed {
		return !h.isClosed
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return false
	}
	h.file, h.watches = os.NewFile(uintptr(fd), "hangups"), map[uint64]*Watch{}
	go h.serve(h.file) // until Close
	return true
}

func (h *List) serve(list *os.File) {
	raw, err := list.SyscallConn()
	if err != nil {
		return
	}
	events := make([]unix.EpollEvent, 64)
	_ = raw.Read(func(fd uintptr) bool { // Close ends it
		for {
			n, err := unix.EpollWait(int(fd), events, 0)
			if n <= 0 && err != unix.EINTR {
				return false // wait for more
			}
			for _, e := range events[:max(n, 0)] {
				h.tell(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
			}
		}
	})
}

func (h *List) tell(number uint64) {
	h.mu.Lock()
	w := h.watches[number]
	h.mu.Unlock()
	if w != nil {
		w.hangUp(number)
	}
}

// Close ends all watches. No further report comes.
func (h *List) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isClosed = true
	if h.file != nil {
		_ = h.file.Close()
	}
}
