package frontends

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a listener that first fails in the given ways, one after the other, and then has
// connections.
type scripted struct {
	errs   []error
	conns  []net.Conn
	closed chan struct{}
}

func (s *scripted) Accept() (net.Conn, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	if len(s.conns) > 0 {
		c := s.conns[0]
		s.conns = s.conns[1:]
		return c, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *scripted) Close() error   { close(s.closed); return nil }
func (s *scripted) Addr() net.Addr { return &net.TCPAddr{} }

func scriptedListener(places int64, s *scripted) *listener {
	s.closed = make(chan struct{})
	r := &room{}
	r.left.Store(places)
	return newListener(s, r, slog.New(slog.DiscardHandler))
}

// Accept waits for a missing resource, longer each time. The clock is synctest's.
func TestAcceptAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		l := scriptedListener(1, &scripted{errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
			syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE}, conns: []net.Conn{a}})
		begin := time.Now()
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		// 5 ms doubled seven times is 640 ms: 1275 ms so far. Then 1 s each, twice.
		if waited := time.Since(begin); waited != 3275*time.Millisecond {
			t.Errorf("waited %v, want 3.275s", waited)
		}
	})
}

// A listener that is closed during a pause ends at once. A permanent error is passed on.
func TestAcceptEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := scriptedListener(1, &scripted{errs: []error{syscall.EMFILE, syscall.EMFILE}})
		ended := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		synctest.Wait() // in the first pause
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if _, err := scriptedListener(1, &scripted{errs: []error{syscall.EINVAL}}).Accept(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("got %v", err)
		}
	})
}

// Beyond the room, a new connection ends the oldest spare one, and none of those that had room.
func TestSpareConnections(t *testing.T) {
	t.Parallel()
	const room, all = 2, 2 + spareConnections + 3
	s := &scripted{}
	var clients []net.Conn
	for range all {
		client, server := net.Pipe()
		clients, s.conns = append(clients, client), append(s.conns, server)
	}
	l := scriptedListener(room, s)
	var accepted []net.Conn
	for range all {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, c)
	}
	for i, client := range clients {
		err := client.SetReadDeadline(time.Unix(1, 0)) // fails if the other end is closed
		if err == nil {
			_, err = client.Read(make([]byte, 1))
		}
		isOpen, want := errors.Is(err, os.ErrDeadlineExceeded), i < room || i >= room+3
		if isOpen != want {
			t.Errorf("connection %d: open %t, want %t (%v)", i, isOpen, want, err)
		}
	}
	for range 2 { // as servers do when they learn of the end
		for _, c := range accepted {
			_ = c.Close() // closing a pipe cannot fail
		}
	}
	if left := l.room.left.Load(); left != room || len(l.spare) != 0 {
		t.Errorf("afterwards there is room for %d, and %d are spare; want %d and 0", left, len(l.spare), room)
	}
}

func TestConnectionsOf(t *testing.T) {
	t.Parallel()
	for descriptors, want := range map[int64]int64{
		100:     25,            // a quarter
		300:     300 - 64 - 51, // 64 for the engine, 17 for each of three listeners
		1024:    1024 - 128 - 51,
		1 << 20: 1<<20 - 1024 - 51,
	} {
		if got := connectionsOf(descriptors, 3); got != want {
			t.Errorf("%d descriptors: %d connections, want %d", descriptors, got, want)
		}
	}
}
