package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"tuner/engine/api"
)

// peer is a server that a test scripts frame by frame. A write that fails since the client has left
// is not an error.
type peer struct {
	*http2.Framer
	fields *hpack.Decoder
	blocks []int                 // lengths of the header blocks received
	seen   [][]hpack.HeaderField // their fields
	// bytes that the client has allowed, by stream, beside its settings
	allowed map[uint32]uint32
}

// speak serves one connection by a script.
func speak(t *testing.T, protocol Protocol, settings []http2.Setting, script func(p *peer)) Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		acceptOne(listener, func(conn io.ReadWriter) {
			p := &peer{Framer: http2.NewFramer(conn, conn), fields: hpack.NewDecoder(4096, nil), allowed: map[uint32]uint32{}}
			_ = errors.Join(p.WriteSettings(settings...), p.WriteSettingsAck())
			script(p)
		})
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return Options{Address: listener.Addr().String(), Protocol: protocol}
}

// acceptOne serves one connection that begins as HTTP/2, and ends it cleanly. It reads the rest of
// the client's bytes, since otherwise the system would reset the connection.
func acceptOne(listener net.Listener, serve func(io.ReadWriter)) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	serve(conn)
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

// next reads a frame; nil: the client has left. It decodes header blocks and keeps flow control.
func (p *peer) next() http2.Frame {
	frame, err := p.ReadFrame()
	if err != nil {
		return nil
	}
	switch f := frame.(type) {
	case *http2.HeadersFrame:
		fields, err := p.fields.DecodeFull(f.HeaderBlockFragment())
		if err != nil {
			return nil
		}
		p.blocks, p.seen = append(p.blocks, len(f.HeaderBlockFragment())), append(p.seen, fields)
	case *http2.WindowUpdateFrame:
		p.allowed[f.StreamID] += f.Increment
	}
	return frame
}

// request reads a request to its end; 0: the client has left.
func (p *peer) request() (stream uint32) {
	for {
		switch f := p.next().(type) {
		case nil:
			return 0
		case *http2.DataFrame:
			if f.StreamEnded() {
				return f.StreamID
			}
		}
	}
}

// fieldBlock encodes names and values in turn. It begins by setting the table's size to 0, as
// servers do.
func fieldBlock(pairs ...string) []byte {
	var out bytes.Buffer
	e := hpack.NewEncoder(&out)
	e.SetMaxDynamicTableSize(0)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return out.Bytes()
}

var emptyMessage = []byte{0, 0, 0, 0, 0}

func (p *peer) head(stream uint32) {
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fieldBlock(":status", "200", "content-type", "application/grpc"), EndHeaders: true})
}

func (p *peer) trailers(stream uint32, pairs ...string) {
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fieldBlock(pairs...), EndHeaders: true, EndStream: true})
}

// answer sends an empty successful answer.
func (p *peer) answer(stream uint32) {
	p.head(stream)
	_ = p.WriteData(stream, false, emptyMessage)
	p.trailers(stream, "grpc-status", "0")
}

// awaitPing returns when the client has acknowledged a ping.
func (p *peer) awaitPing() {
	_ = p.WritePing(false, [8]byte{1, 2, 3})
	for {
		switch f := p.next().(type) {
		case nil:
			return
		case *http2.PingFrame:
			if f.IsAck() && f.Data == [8]byte{1, 2, 3} {
				return
			}
		}
	}
}

// The table has answers of servers, and their effect on the connection.
func TestFrames(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script func(p *peer, id uint32)
		err    string // part of it; "": no error
		broken bool
	}{
		"plain": {(*peer).answer, "", false},
		"padded": {func(p *peer, id uint32) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: fieldBlock(":status", "200"), EndHeaders: true, PadLength: 7})
			_ = p.WriteDataPadded(id, false, emptyMessage, make([]byte, 100))
			p.trailers(id, "grpc-status", "0")
		}, "", false},
		"single bytes": {func(p *peer, id uint32) {
			p.head(id)
			for i := range emptyMessage {
				_ = p.WriteData(id, false, emptyMessage[i:i+1])
			}
			p.trailers(id, "grpc-status", "0")
		}, "", false},
		"continued block": {func(p *peer, id uint32) {
			block := fieldBlock(":status", "200", "x", strings.Repeat("long ", 5000))
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:2]})
			_ = p.WriteContinuation(id, false, block[2:3])
			_ = p.WriteContinuation(id, true, block[3:])
			_ = p.WriteData(id, false, emptyMessage)
			p.trailers(id, "grpc-status", "0")
		}, "", false},
		"endless block": {func(p *peer, id uint32) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id})
			for range mostBlock/1000 + 1 {
				_ = p.WriteContinuation(id, false, make([]byte, 1000))
			}
		}, "bytes of header fields", true},
		"ping before the answer": {func(p *peer, id uint32) { p.awaitPing(); p.answer(id) }, "", false},
		"ping amid the answer": {func(p *peer, id uint32) {
			p.head(id)
			_ = p.WriteData(id, false, emptyMessage)
			p.awaitPing()
			p.trailers(id, "grpc-status", "0")
		}, "", false},
		"what is to be ignored": {func(p *peer, id uint32) {
			_ = p.WriteRawFrame(0xfa, 0xff, id, []byte("of a later time"))
			_ = p.WritePriority(id, http2.PriorityParam{Weight: 3})
			_ = p.WriteRSTStream(id+2, http2.ErrCodeCancel)
			_ = p.WriteWindowUpdate(id+2, 10)
			_ = p.WriteData(id+2, true, []byte("of no stream"))
			p.trailers(id+2, "grpc-status", "3")
			p.answer(id)
			_ = p.WriteRSTStream(id, http2.ErrCodeNo)
		}, "", false},
		"head and status in one": {func(p *peer, id uint32) {
			p.trailers(id, ":status", "200", "grpc-status", "8", "grpc-message", "50%25 of it")
		}, "server answered 8: 50% of it", false},
		"text that is not encoded": {func(p *peer, id uint32) {
			p.trailers(id, ":status", "200", "grpc-status", "8", "grpc-message", "50% of it")
		}, "server answered 8: 50% of it", false},
		"no text":                   {func(p *peer, id uint32) { p.trailers(id, ":status", "200", "grpc-status", "14") }, "server answered 14: ", false},
		"status that is no number":  {func(p *peer, id uint32) { p.head(id); p.trailers(id, "grpc-status", "x") }, `server answered 2: the answer's status of gRPC is "x"`, false},
		"HTTP status":               {func(p *peer, id uint32) { p.trailers(id, ":status", "503") }, "server answered 2: the answer has no status of gRPC, and the HTTP status 503", false},
		"HTTP status and a page":    {func(p *peer, id uint32) { p.head(id); _ = p.WriteData(id, true, []byte("<html>")) }, "server answered 2: the answer has no status of gRPC", false},
		"no status":                 {func(p *peer, id uint32) { p.head(id); p.trailers(id, "x", "y") }, "server answered 2: the answer has no status of gRPC", false},
		"refused stream":            {func(p *peer, id uint32) { _ = p.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, "server answered 14: the server reset the stream: REFUSED_STREAM", false},
		"reset amid the answer":     {func(p *peer, id uint32) { p.head(id); _ = p.WriteRSTStream(id, http2.ErrCodeInternal) }, "server answered 13: ", false},
		"no message":                {func(p *peer, id uint32) { p.head(id); p.trailers(id, "grpc-status", "0") }, "has no message", true},
		"farewell after the answer": {func(p *peer, id uint32) { _ = p.WriteGoAway(id, http2.ErrCodeNo, nil); p.answer(id) }, "", true},
		"farewell before the request": {func(p *peer, id uint32) {
			_ = p.WriteGoAway(id-1, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
		}, `before it took the request, saying GOAWAY ENHANCE_YOUR_CALM "too_many_pings"`, true},
		"farewell in place of the answer": {func(p *peer, id uint32) {
			_ = p.WriteGoAway(id, http2.ErrCodeInternal, nil)
		}, `the server closed the connection, saying GOAWAY INTERNAL_ERROR "": EOF`, true},
		"nothing":  {func(*peer, uint32) {}, "the server closed the connection", true},
		"cut head": {func(p *peer, id uint32) { _ = p.WriteRawFrame(http2.FrameHeaders, 0, id, []byte{0x88}) }, "the server closed the connection", true},
		"undecodable": {func(p *peer, id uint32) {
			_ = p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, []byte{0xff})
		}, "cannot read the header fields", true},
		"table in use": {func(p *peer, id uint32) {
			_ = p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, []byte{0xbe})
		}, "cannot read the header fields", true},
		"too large frame": {func(p *peer, id uint32) { _ = p.WriteData(id, false, make([]byte, mostFrame+1)) }, "frame too large", true},
		"push": {func(p *peer, id uint32) {
			_ = p.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, BlockFragment: fieldBlock(":path", "/"), EndHeaders: true})
		}, "pushes", true},
		"wrong order":         {func(p *peer, id uint32) { _ = p.WriteContinuation(id, true, nil) }, "cannot read an answer", true},
		"too large window":    {func(p *peer, _ uint32) { _ = p.WriteWindowUpdate(0, math.MaxInt32) }, "larger than the protocol allows", true},
		"impossible settings": {func(p *peer, _ uint32) { _ = p.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) }, "cannot read the server's settings", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := speak(t, GRPC, nil, func(p *peer) {
				test.script(p, p.request())
				if test.broken {
					return
				}
				if id := p.request(); id != 0 {
					p.answer(id)
				}
			})
			c, request := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
			err := ask(c, request)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || c.Broken() != test.broken {
				t.Fatalf("error %v, broken %v; expected %q, %v", err, c.Broken(), test.err, test.broken)
			}
			if !test.broken {
				if err := ask(c, request); err != nil {
					t.Errorf("the next request: %v", err)
				}
			}
		})
	}
}

// A request over gRPC and its answer need no allocation. Not parallel: testing.AllocsPerRun counts
// the allocations of the whole process.
func TestGRPCAllocations(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go acceptOne(listener, func(conn io.ReadWriter) {
		f := http2.NewFramer(conn, nil)
		_ = errors.Join(f.WriteSettings(), f.WriteSettingsAck())
		var out bytes.Buffer
		(&peer{Framer: http2.NewFramer(&out, nil)}).answer(1)
		answer, frame := out.Bytes(), make([]byte, 1<<10)
		for {
			if _, err := io.ReadFull(conn, frame[:frameHead]); err != nil {
				return
			}
			length := int(frame[1])<<8 | int(frame[2])
			if _, err := io.ReadFull(conn, frame[frameHead:frameHead+length]); err != nil {
				return
			}
			if http2.FrameType(frame[3]) != http2.FrameData {
				continue
			}
			for at := 0; at < len(answer); at += frameHead + int(answer[at+2]) { // its frames are short
				copy(answer[at+5:at+frameHead], frame[5:frameHead]) // id of the stream
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	})
	o := Options{Address: listener.Addr().String(), Protocol: GRPC, Share: 2}
	c, request := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
	if got := testing.AllocsPerRun(200, func() {
		c.Send(0, request)
		c.Send(1, request)
		for range 2 {
			if _, _, _, err := c.Receive(); err != nil {
				t.Fatal(err)
			}
		}
	}); got != 0 {
		t.Errorf("%v allocations for two requests", got)
	}
}

// A request is sent as far as the server's windows allow, on the stream and on the connection.
func TestSendWindows(t *testing.T) {
	t.Parallel()
	const chunk = 7000
	received := make(chan []byte, 1)
	o := speak(t, GRPC, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 10}}, func(p *peer) {
		var message []byte
		stream, connection := 10, firstWindow // total bytes allowed
		for {
			var f *http2.DataFrame
			switch frame := p.next().(type) {
			case nil:
				return
			case *http2.DataFrame:
				f = frame
			default:
				continue
			}
			if message = append(message, f.Data()...); len(message) > min(stream, connection) {
				t.Errorf("the client has sent %d bytes, allowed are %d", len(message), min(stream, connection))
			}
			if f.StreamEnded() {
				received <- message
				p.answer(f.StreamID)
				return
			}
			if len(message) == 10 { // extends every stream, including this one
				stream += chunk
				_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10 + chunk})
			} else if len(message) == stream {
				stream += chunk
				_ = p.WriteWindowUpdate(f.StreamID, chunk)
			}
			if len(message) == connection {
				connection += chunk
				_ = p.WriteWindowUpdate(0, chunk)
			}
		}
	})
	c, request := dial(t, o), prepare(t, o, bytesRequest("m", 100_000), Format{})
	if err := ask(c, request); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(<-received, request.message) {
		t.Error("the server received another message")
	}
}

// A server may answer before it has the whole request. The request then ends there.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	reset := make(chan uint32, 1)
	o := speak(t, GRPC, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 10}}, func(p *peer) {
		for {
			switch f := p.next().(type) {
			case nil:
				return
			case *http2.DataFrame:
				if f.StreamEnded() {
					p.answer(f.StreamID)
				} else if f.StreamID == 1 {
					p.trailers(f.StreamID, ":status", "200", "grpc-status", "3", "grpc-message", "too large")
				}
			case *http2.RSTStreamFrame:
				reset <- f.StreamID
				_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
			}
		}
	})
	c, request := dial(t, o), prepare(t, o, bytesRequest("m", 100), Format{})
	var answered *api.StatusError
	if err := ask(c, request); !errors.As(err, &answered) || answered.Text != "too large" || c.Broken() {
		t.Fatalf("error %v, broken %v", err, c.Broken())
	}
	if id := <-reset; id != 1 {
		t.Errorf("stream %d was reset", id)
	}
	if err := ask(c, request); err != nil {
		t.Error(err)
	}
}

// The server may send as much again when half of its window is used up.
func TestReceiveWindows(t *testing.T) {
	t.Parallel()
	const half = math.MaxInt32 / 2
	allowed := make(chan map[uint32]uint32, 1)
	o := speak(t, GRPCStream, nil, func(p *peer) {
		for answers := 0; answers < 2; { // the client extends the window with its second request
			switch f := p.next().(type) {
			case nil:
				return
			case *http2.DataFrame:
				if answers == 0 {
					p.head(f.StreamID)
				}
				answers++
				_ = p.WriteData(f.StreamID, false, emptyMessage)
			}
		}
		allowed <- p.allowed
	})
	c, request := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
	s := c.exchange.(*streamExchange)
	s.channel.consumed = half // as after 1 GiB of answers
	c.Send(0, request)
	s.call.consumed = half
	if _, _, _, err := c.Receive(); err != nil {
		t.Fatal(err)
	}
	if err := ask(c, request); err != nil {
		t.Fatal(err)
	}
	const first = math.MaxInt32 - firstWindow // allowed at once
	want := map[uint32]uint32{0: first + half + 5, 1: half + 5}
	if d := cmp.Diff(want, <-allowed); d != "" {
		t.Errorf("allowed bytes by stream (-want +got):\n%s", d)
	}
}

// The header fields are the same in each request for every size of the server's table, also when it
// changes. With a table they soon are only indices.
func TestRequestFields(t *testing.T) {
	t.Parallel()
	for _, size := range []uint32{0, 100, 4096, 1 << 16} {
		blocks := make(chan []int, 1)
		seen := make(chan [][]hpack.HeaderField, 1)
		o := speak(t, GRPC, []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: size}}, func(p *peer) {
			p.fields.SetAllowedMaxDynamicTableSize(size)
			for i := range 6 {
				id := p.request()
				if i == 3 {
					_ = p.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
					p.fields.SetAllowedMaxDynamicTableSize(0)
				}
				if id == 0 {
					break
				}
				p.answer(id)
			}
			blocks <- p.blocks
			seen <- p.seen
		})
		o.Headers = []Header{{"x-key", "value"}}
		c, request := dial(t, o), prepare(t, o, bytesRequest("m", 8), Format{})
		for range 6 {
			if err := ask(c, request); err != nil {
				t.Fatalf("table of %d bytes: %v", size, err)
			}
		}
		want, err := requestFields(o)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slices.Repeat([][]hpack.HeaderField{want}, 6), <-seen); d != "" {
			t.Errorf("table of %d bytes: fields of the requests (-want +got):\n%s", size, d)
		}
		// 9 fields, an index of one byte each
		if got := <-blocks; size >= 4096 && (got[1] > 10 || got[2] > 10 || got[5] < 50) {
			t.Errorf("table of %d bytes: blocks of %d bytes", size, got)
		}
	}
}

// Servers that do not speak gRPC, or send nothing until the user gives up.
func TestGreeting(t *testing.T) {
	t.Parallel()
	check := func(text string, silent bool, want string) {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		done := make(chan struct{})
		go func() {
			defer close(done)
			acceptOne(listener, func(conn io.ReadWriter) {
				_, _ = io.WriteString(conn, text)
				if silent {
					leave()
					_, _ = io.Copy(io.Discard, conn)
				}
			})
		}()
		_, err = Dial(ctx, Options{Address: listener.Addr().String(), Protocol: GRPC})
		if err == nil || !strings.Contains(err.Error(), "does not speak gRPC") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, expected %q", text, err, want)
		}
		_ = listener.Close()
		<-done
	}
	check("HTTP/1.1 400 Bad Request\r\n\r\n", false, "it answers in HTTP/1.1")
	check("SSH-2.0-OpenSSH_9.2\r\n", false, "cannot read an answer")
	check("\x00\x00\x06\x04", false, "in the middle of an answer")
	check("", false, "the server closed the connection")
	check("", true, "context canceled")
}

func TestRefusedMetadata(t *testing.T) {
	t.Parallel()
	for _, h := range []Header{
		{"TE", "x"}, {"Content-Type", "x"}, {"User-Agent", "x"}, {"grpc-timeout", "1S"}, {"Connection", "close"}, {"host", "x"}, {":path", "/"},
		{"a b", "x"}, {"", "x"}, {"a", "x\n"}, {"long", strings.Repeat("x", mostMetadata)},
	} {
		o := Options{Protocol: GRPC, Headers: []Header{h}}
		var wrong *InputError
		if _, err := Prepare(o, bytesRequest("m", 8), Format{}, nil); !errors.As(err, &wrong) {
			t.Errorf("header %q %.20q: error %v", h.Name, h.Value, err)
		}
	}
	for _, o := range []Options{
		{Protocol: GRPC, Compression: "br"}, {Protocol: GRPC, Parameters: []Parameter{{"x", 1.5}}},
	} {
		var wrong *InputError
		if _, err := Prepare(o, bytesRequest("m", 8), Format{}, nil); !errors.As(err, &wrong) {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}
