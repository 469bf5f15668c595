//go:build linux

package hangup

import (
	"net"
	"testing"
	"time"
)

// pair makes a connection.
func pair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() }) // most are closed already
	return client, server
}

// waitWatched waits until the connection is in the kernel's list.
func (w *Watch) waitWatched(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		isWatched := w.number != 0
		w.mu.Unlock()
		if isWatched {
			return
		}
	}
	t.Fatal("the connection is not watched")
}

// A waiting request is added to the list once, however long it waits, and then needs no timer. It
// sees the end of its own client only.
func TestWatch(t *testing.T) {
	t.Parallel()
	var h List
	defer h.Close()
	var stays, goes Watch
	other, conn := pair(t)
	defer other.Close()
	stays.Begin(&h, conn)
	client, conn := pair(t)
	goes.Begin(&h, conn)
	for _, w := range []*Watch{&stays, &goes} {
		w.waitWatched(t)
		if w.timer.Stop() {
			t.Error("a request that waits has a timer that runs")
		}
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	<-goes.Done()
	if goes.Err() == nil || stays.Err() != nil {
		t.Errorf("got %v for the one that is gone, %v for the one that stays", goes.Err(), stays.Err())
	}
	late := goes.number
	goes.End()
	stays.End()
	if len(h.watches) != 0 {
		t.Errorf("%d connections are watched, of which no request waits", len(h.watches))
	}

	// The next request uses the same memory, on a connection that is closed before it is watched. A
	// report about the last connection comes too late.
	client, conn = pair(t)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	goes.Begin(&h, conn)
	goes.hangUp(late)
	if goes.Err() != nil {
		t.Error("a request ended with the client of an earlier one")
	}
	<-goes.Done()
	goes.End()

	h.Close()
	_, conn = pair(t)
	goes.Begin(&h, conn) // not watched any more
	goes.look()
	goes.End()
}
