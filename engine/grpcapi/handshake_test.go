package grpcapi

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
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
			synctest.Test(t, func(t *testing.T) {
				f, l := New(nil, Options{}), pipes{make(chan net.Conn)}
				served := make(chan error, 1)
				go func() { served <- f.Serve(l) }()
				ours, theirs := net.Pipe()
				l.made <- theirs
				closed := make(chan struct{})
				go func() {
					_, _ = io.Copy(io.Discard, ours) // until the server closes the connection
					close(closed)
				}()
				_, _ = ours.Write([]byte(tt.sent)) // the server may have closed it
				for range 3 {
					time.Sleep(handshake/3 + time.Second/3)
					_, _ = ours.Write([]byte(tt.every))
				}
				synctest.Wait()
				select {
				case <-closed:
					if tt.isOpen {
						t.Error("the connection is closed")
					}
				default:
					if !tt.isOpen {
						t.Error("the connection is open")
					}
				}
				_ = ours.Close()
				f.grpc.Stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
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
