package wire

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// requests reads n requests to their ends, and returns their streams.
func (p *peer) requests(n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = p.request()
	}
	return ids
}

// told is the result of Receive for a request.
type told struct {
	slot       int
	err        string
	unanswered bool
}

// receive returns the next result of a connection.
func receive(t *testing.T, c *Conn) told {
	t.Helper()
	slot, final, null, err := c.Receive()
	if !final || null {
		t.Errorf("slot %d: final %v, null %v", slot, final, null)
	}
	out := told{slot: slot}
	if err != nil {
		out.err = err.Error()
	}
	var e *UnansweredError
	out.unanswered = errors.As(err, &e)
	return out
}

// share sends a request in each slot of a connection to a server that follows a script.
func share(t *testing.T, slots int, settings []http2.Setting, script func(p *peer)) (*Conn, *Prepared) {
	t.Helper()
	o := speak(t, GRPC, settings, script)
	o.Share = slots
	c, request := dial(t, o), prepare(t, o, bytesRequest("m", 100), Format{})
	for slot := range slots {
		c.Send(slot, request)
	}
	return c, request
}

// Answers may arrive in any order and mixed. An answer that fails does not affect the others.
func TestSharedConnection(t *testing.T) {
	t.Parallel()
	c, request := share(t, 4, nil, func(p *peer) {
		ids := p.requests(4)
		p.head(ids[2])
		p.head(ids[0])
		_ = p.WriteData(ids[2], false, emptyMessage[:2])
		p.answer(ids[3])
		_ = p.WriteRSTStream(ids[1], http2.ErrCodeRefusedStream)
		_ = p.WriteData(ids[2], false, emptyMessage[2:])
		_ = p.WriteData(ids[0], false, emptyMessage)
		p.trailers(ids[0], "grpc-status", "8", "grpc-message", "first")
		p.trailers(ids[2], "grpc-status", "0")
		p.answer(p.request())
	})
	want := []told{
		{slot: 3}, {slot: 1, err: "server answered 14: the server reset the stream: REFUSED_STREAM"},
		{slot: 0, err: "server answered 8: first"}, {slot: 2},
	}
	for i := range want {
		if got := receive(t, c); got != want[i] {
			t.Errorf("%+v is told, want %+v", got, want[i])
		}
	}
	c.Send(1, request)
	if got := receive(t, c); got != (told{slot: 1}) || c.Broken() {
		t.Errorf("%+v is told, broken %v", got, c.Broken())
	}
}

// A server that announces the connection's end answers the requests that it has taken. The others
// may be sent again.
func TestSharedConnectionThatIsToEnd(t *testing.T) {
	t.Parallel()
	c, _ := share(t, 3, nil, func(p *peer) {
		ids := p.requests(3)
		_ = p.WriteGoAway(ids[1], http2.ErrCodeNo, nil)
		p.answer(ids[1])
		p.answer(ids[0])
	})
	const notTaken = `the server ended the connection before it took the request, saying GOAWAY NO_ERROR ""`
	for _, want := range []told{{slot: 2, err: notTaken, unanswered: true}, {slot: 1}, {slot: 0}} {
		if got := receive(t, c); got != want || !c.Broken() {
			t.Errorf("%+v is told, want %+v; broken %v", got, want, c.Broken())
		}
	}
}

// The end of a connection is reported for every request on it. A request whose answer had begun may
// have been executed.
func TestSharedConnectionThatEnds(t *testing.T) {
	t.Parallel()
	c, request := share(t, 3, nil, func(p *peer) { p.head(p.requests(3)[1]) })
	const closed = "the server closed the connection: EOF"
	for _, want := range []told{{0, closed, true}, {1, closed, false}, {2, closed, true}} {
		if got := receive(t, c); got != want || !c.Broken() {
			t.Errorf("%+v is told, want %+v; broken %v", got, want, c.Broken())
		}
	}
	c.Send(2, request)
	if got := receive(t, c); got.slot != 2 || got.err == "" {
		t.Errorf("after the end %+v is told", got)
	}
}

// Interrupt ends the wait for a server that stays silent.
func TestSharedConnectionInterrupted(t *testing.T) {
	t.Parallel()
	c, _ := share(t, 3, nil, func(p *peer) { p.requests(4) })
	c.Interrupt()
	for slot := range 3 {
		got, final, _, err := c.Receive()
		if got != slot || !final || !errors.Is(err, os.ErrDeadlineExceeded) || !c.Broken() {
			t.Errorf("slot %d, final %v, error %v, broken %v", got, final, err, c.Broken())
		}
	}
}

// A request waits for the server's window, while others are answered.
func TestSharedWindows(t *testing.T) {
	t.Parallel()
	c, _ := share(t, 3, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 10}}, func(p *peer) {
		for {
			switch f := p.next().(type) {
			case nil:
				return
			case *http2.DataFrame:
				if f.StreamEnded() {
					p.answer(f.StreamID)
				} else if len(f.Data()) == 10 {
					_ = p.WriteWindowUpdate(f.StreamID, 1000)
				}
			}
		}
	})
	var slots []int
	for range 3 {
		got := receive(t, c)
		if got.err != "" {
			t.Errorf("slot %d: %s", got.slot, got.err)
		}
		slots = append(slots, got.slot)
	}
	if slices.Sort(slots); !slices.Equal(slots, []int{0, 1, 2}) {
		t.Errorf("slots %v were answered", slots)
	}
}

// The client tells the server about a request that is given up. An answer to it is ignored.
func TestSharedRequestGivenUp(t *testing.T) {
	t.Parallel()
	reset := make(chan uint32, 1)
	c, request := share(t, 2, nil, func(p *peer) {
		ids := p.requests(2)
		p.answer(ids[1])
		for {
			switch f := p.next().(type) {
			case nil:
				return
			case *http2.RSTStreamFrame:
				reset <- f.StreamID
			case *http2.DataFrame:
				p.answer(ids[0])
				p.trailers(f.StreamID, ":status", "200", "grpc-status", "8", "grpc-message", "second")
			}
		}
	})
	if got := receive(t, c); got != (told{slot: 1}) {
		t.Errorf("%+v is told", got)
	}
	c.Send(0, request)
	if got := receive(t, c); got != (told{slot: 0, err: "server answered 8: second"}) {
		t.Errorf("%+v is told", got)
	}
	if id := <-reset; id != 1 {
		t.Errorf("stream %d was reset", id)
	}
}

// A request does not wait for the rest of another's answer.
func TestHalfAFrame(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		acceptOne(listener, func(conn io.ReadWriter) {
			var out bytes.Buffer
			p := &peer{Framer: http2.NewFramer(&out, conn), fields: hpack.NewDecoder(4096, nil), allowed: map[uint32]uint32{}}
			say := func(n int) { _, _ = conn.Write(out.Next(n)) }
			_ = errors.Join(p.WriteSettings(), p.WriteSettingsAck())
			say(out.Len())
			for _, id := range p.requests(2) {
				p.answer(id)
			}
			say(out.Len() - 4)
			p.answer(p.request()) // this arrives before the rest
			say(out.Len())
		})
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	o := Options{Address: listener.Addr().String(), Protocol: GRPC, Share: 2}
	c, request := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
	c.Send(0, request)
	c.Send(1, request)
	for i, want := range []int{0, 1, 0} {
		if got := receive(t, c); got != (told{slot: want}) {
			t.Errorf("%+v is told, want slot %d", got, want)
		}
		if i == 0 {
			c.Send(0, request)
		}
	}
}

// bursts are the bytes of a server; each element arrives in one read.
type bursts [][]byte

func (b *bursts) Read(p []byte) (int, error) {
	if len(*b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*b)[0])
	*b = (*b)[1:]
	return n, nil
}

// counted is a connection that counts writes.
type counted struct {
	canned
	writes int
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes++
	return len(p), nil
}

// The frames caused by answers of one read go out in one write.
func TestSharedWrites(t *testing.T) {
	t.Parallel()
	say := func(f func(p *peer)) []byte {
		var out bytes.Buffer
		f(&peer{Framer: http2.NewFramer(&out, nil)})
		return out.Bytes()
	}
	answers := func(ids ...uint32) []byte {
		return say(func(p *peer) {
			for _, id := range ids {
				p.answer(id)
			}
		})
	}
	conn := &counted{canned: canned{said: &bursts{
		say(func(p *peer) { _ = errors.Join(p.WriteSettings(), p.WriteSettingsAck()) }), answers(5, 1, 3, 7), answers(9), answers(13, 15),
	}}}
	o := Options{Address: "host:1", Protocol: GRPC, Share: 4}
	under, err := newChannel(t.Context(), &link{raw: conn, conn: conn, in: bufio.NewReaderSize(conn, inputBuffer)}, o)
	if err != nil {
		t.Fatal(err)
	}
	c, request := newConn(under.link, newUnaryExchange(under), under.slots()), prepare(t, o, bytesRequest("m", 8), Format{})
	conn.writes = 0
	for slot := range 4 {
		c.Send(slot, request)
	}
	var slots, writes []int
	for range 7 {
		slot, _, _, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		slots, writes = append(slots, slot), append(writes, conn.writes)
		c.Send(slot, request)
	}
	// The next streams are 9, 11, 13, 15 in slots 2, 0, 1, 3. Stream 17 is in slot 2.
	if d := cmp.Diff([]int{2, 0, 1, 3, 2, 1, 3}, slots); d != "" {
		t.Errorf("slots of the answers (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{1, 1, 1, 1, 2, 3, 3}, writes); d != "" {
		t.Errorf("writes until each answer (-want +got):\n%s", d)
	}
}

// A server may allow fewer calls at a time than would share the connection.
func TestSharedLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint32]int{0: 1, 2: 2, 100: 4} {
		o := speak(t, GRPC, []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: limit}}, func(p *peer) { p.next() })
		o.Share = 4
		if got := dial(t, o).Slots(); got != want {
			t.Errorf("a limit of %d gives %d slots, want %d", limit, got, want)
		}
	}
	for _, o := range []Options{speak(t, GRPCStream, nil, func(p *peer) { p.next() }), scripted(t)} {
		o.Share = 4
		if got := dial(t, o).Slots(); got != 1 {
			t.Errorf("protocol %d has %d slots", o.Protocol, got)
		}
	}
}

// The reference implementation of gRPC answers calls that share a connection, each with its own
// data.
func TestSharedConnectionToGRPC(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate
	t.Cleanup(web.Close)
	known := x509.NewCertPool()
	known.AddCert(web.Certificate())
	secure := grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	narrow := []grpc.ServerOption{grpc.InitialWindowSize(1<<16 - 1), grpc.InitialConnWindowSize(1<<16 - 1)}
	for name, test := range map[string]struct {
		size    int
		options []grpc.ServerOption
		tls     *tls.Config
	}{
		"small":          {8, nil, nil},
		"narrow windows": {60_000, narrow, nil},
		"many frames":    {400_000, nil, nil},
		"TLS":            {3000, []grpc.ServerOption{secure}, &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _ := serveGRPC(t, GRPC, echo, test.options...)
			o.Share, o.TLS = 4, test.tls
			c := dial(t, o)
			var requests []*Prepared
			for i := range 7 { // a different one each time
				r := bytesRequest(fmt.Sprint("model ", i), test.size+i)
				requests = append(requests, prepare(t, o, r, Format{}, r.Inputs...))
			}
			sent := 0
			send := func(slot int) {
				c.Send(slot, requests[sent%len(requests)])
				sent++
			}
			for slot := range 4 {
				send(slot)
			}
			for range 50 {
				got := receive(t, c)
				if got.err != "" {
					t.Fatalf("slot %d: %s", got.slot, got.err)
				}
				send(got.slot)
			}
		})
	}
}
