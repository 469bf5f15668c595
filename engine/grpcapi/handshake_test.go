package grpcapi

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"tuner/engine"
)

// pipes accepts connections that a test makes.
type pipes struct{ made chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.made; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p.made); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client that stops in what it sends first loses its connection after a minute. So does one that
// stops inside a frame, or between the frames of a call's headers. One that has sent all of it may
// be idle.
func TestHalfOpenConnectionsEnd(t *testing.T) {
	t.Parallel()
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	open := preface + settings
	frame := func(kind, flags byte, length int) string {
		return string(wire(frame{kind: kind, flags: flags, stream: 1, length: length}))
	}
	call := string(headers(1))
	message := frame(frameData, 0, 5)[:9] + "\x00\x00\x01\x00\x00" // the head of 64 KiB
	for name, tt := range map[string]struct {
		sent, every string // every is sent again and again
		isOpen      bool
	}{
		"nothing":                       {"", "", false},
		"half of the preface":           {preface[:16], "", false},
		"half of the settings":          {preface + settings[:5], "", false},
		"the settings, byte for byte":   {preface + "\x00\x00\x06\x04\x00\x00\x00\x00", "\x00", false},
		"preface and settings":          {open, "", true},
		"no preface of HTTP/2":          {"GET / HTTP/1.1\r\nHost: engine\r\n\r\n", "", false},
		"no settings at first":          {preface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", "", false},
		"settings without rest":         {preface + "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00", "", false},
		"half of a frame's head":        {open + frame(frameHeaders, flagEndHeaders, 0)[:5], "", false},
		"half of the headers":           {open + frame(frameHeaders, flagEndHeaders, 100)[:50], "", false},
		"headers without end":           {open + frame(frameHeaders, 0, 100), "", false},
		"headers that never end":        {open + frame(frameHeaders, 0, 100), frame(frameContinuation, 0, 1), false},
		"headers, byte for byte":        {open + frame(frameHeaders, flagEndHeaders, 100)[:9], "\x00", false},
		"half of a frame of a message":  {open + call + frame(frameData, 0, 100)[:50], "", false},
		"a whole frame of a message":    {open + call + message, "", true},
		"frames of a message that come": {open + call + message, frame(frameData, 0, 100), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := []step{{tt.sent, handshake/3 + time.Second/3}}
			for range 2 {
				script = append(script, step{tt.every, handshake/3 + time.Second/3})
			}
			follow(t, append(script, step{tt.every, 0}), tt.isOpen)
		})
	}
}

// A client has a minute for each frame, and for the headers of a call. The pauses before do not
// count, wherever its bytes are divided.
func TestEachFrameHasItsOwnMinute(t *testing.T) {
	t.Parallel()
	const long, short = handshake * 3 / 4, time.Second
	open := preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + string(headers(1)) + string(wire(frame{kind: frameData, stream: 1, length: 5}))[:9] + "\x00\x00\x01\x00\x00"
	data := string(wire(frame{kind: frameData, stream: 1, length: 100}))
	call := string(headers(3))
	begun := call[:4] + "\x00" + call[5:] // without the flag of the end
	last := string(wire(frame{kind: frameContinuation, flags: flagEndHeaders, stream: 3}))
	for name, tt := range map[string]struct {
		script []step
		isOpen bool
	}{
		"idle after a frame in two parts":                 {[]step{{open + data[:50], short}, {data[50:], 2 * handshake}, {data[:5], short}, {data[5:], 0}}, true},
		"a frame ends with a part of the next head":       {[]step{{open + data[:50], long}, {data[50:] + data[:5], long}, {data[5:], 0}}, true},
		"a frame ends with a part of the next frame":      {[]step{{open + data[:50], long}, {data[50:] + data[:50], long}, {data[50:], 0}}, true},
		"a head ends with a part of its frame":            {[]step{{open + data[:5], long}, {data[5:50], long}, {data[50:], 0}}, true},
		"idle after headers in two frames":                {[]step{{open + begun, short}, {last, 2 * handshake}, {data[:5], short}, {data[5:], 0}}, true},
		"headers in two frames end with a part of a head": {[]step{{open + begun, long}, {last + data[:5], long}, {data[5:], 0}}, true},
		"headers in two frames, late":                     {[]step{{open + begun, long}, {last[:5], long}, {last[5:], 0}}, false},
		"a head in three parts, late":                     {[]step{{open + data[:50], short}, {data[50:] + data[:3], long}, {data[3:5], long}, {data[5:], 0}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, tt.script, tt.isOpen)
		})
	}
}

// step is a text that a client sends at once, and the time that it waits then.
type step struct {
	sent string
	wait time.Duration
}

// follow checks whether the connection of a client is open after the client's steps.
func follow(t *testing.T, script []step, isOpen bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, l := New(&engine.Server{}, Options{}), pipes{make(chan net.Conn)}
		served := make(chan error, 1)
		go func() { served <- f.Serve(l) }()
		ours, theirs := net.Pipe()
		l.made <- theirs
		closed := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, ours) // until the server closes the connection
			close(closed)
		}()
		for _, s := range script {
			_, _ = ours.Write([]byte(s.sent)) // the server may have closed it
			time.Sleep(s.wait)
		}
		synctest.Wait()
		select {
		case <-closed:
			if isOpen {
				t.Error("the connection is closed")
			}
		default:
			if !isOpen {
				t.Error("the connection is open")
			}
		}
		_ = ours.Close()
		f.grpc.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// headers opens a stream with the headers of a streaming call.
func headers(stream uint32) []byte {
	var block []byte
	for _, header := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/inference.GRPCInferenceService/ModelStreamInfer"},
		{":authority", "engine"}, {"content-type", "application/grpc"}} {
		block = append(append(block, 0, byte(len(header[0]))), header[0]...) // a literal of HPACK
		block = append(append(block, byte(len(header[1]))), header[1]...)
	}
	return append(wire(frame{kind: frameHeaders, flags: flagEndHeaders, stream: stream, length: len(block)})[:9], block...)
}
