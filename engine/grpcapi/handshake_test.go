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

// A client that stops in what it sends first loses its connection after a minute. One that has sent
// all of it may be idle.
func TestHalfOpenConnectionsEnd(t *testing.T) {
	t.Parallel()
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, tt := range map[string]struct {
		sent   string
		isOpen bool
	}{
		"nothing":               {"", false},
		"half of the preface":   {preface[:16], false},
		"half of the settings":  {preface + settings[:5], false},
		"preface and settings":  {preface + settings, true},
		"no preface of HTTP/2":  {"GET / HTTP/1.1\r\nHost: engine\r\n\r\n", false},
		"no settings at first":  {preface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", false},
		"settings without rest": {preface + "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00", false},
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
				time.Sleep(handshake + time.Second)
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
