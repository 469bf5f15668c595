package grpcapi

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// gathered is how many bytes of a large message the kernel gathers before it wakes the reader of the
	// connection. It wakes it for each 64 KiB otherwise, and the sender pays for that too. Twice as much
	// saves nothing more (lab/docs/engine.md).
	gathered = 256 << 10
	// patience bounds what other frames may wait behind a message whose sender pauses.
	patience = 5 * time.Millisecond
)

// gathering has the kernel gather what is coming. Only Read uses it.
type gathering struct {
	socket syscall.RawConn // nil: the kernel cannot do it
	coming int             // bytes of a message that are still to come
	isOn   bool            // the reader sleeps until gathered bytes have arrived
}

// newGathering has the kernel gather what arrives on a plain connection.
func newGathering(conn net.Conn) gathering {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return gathering{}
	}
	socket, err := t.SyscallConn()
	if err != nil {
		return gathering{}
	}
	return gathering{socket: socket}
}

// prepare switches the gathering on if enough bytes are coming, and off if not.
func (g *gathering) prepare() {
	isOn := g.coming >= gathered
	if isOn == g.isOn || g.socket == nil {
		return
	}
	low := 1
	if isOn {
		low = gathered
	}
	if err := wakeAt(g.socket, low); err != nil {
		g.socket = nil
		return
	}
	g.isOn = isOn
}

// limit returns the deadline of a read. rest is the limit of what the client has begun, and before is the
// deadline that is set.
func (g *gathering) limit(rest, before time.Time) time.Time {
	if !g.isOn {
		return rest
	}
	now := time.Now()
	if left := before.Sub(now); left > patience/2 && left <= patience {
		return before // setting one takes longer than looking at the clock
	}
	return now.Add(patience)
}

// gaveUp reports whether a read has ended because the client pauses. The next one takes what there is.
func (g *gathering) gaveUp(err error) bool {
	if !g.isOn || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	g.coming = 0
	return true
}
