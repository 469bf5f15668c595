package wire

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"tuner/engine/api"
)

// Dial connects, including handshakes, within the options' DialTimeout. ctx bounds only the
// connecting.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.DialTimeout, DefaultDialTimeout))
	defer cancel()
	switch o.Protocol {
	case HTTP:
		l, err := connect(ctx, o, "http/1.1")
		if err != nil {
			return nil, err
		}
		return newConn(l, &httpExchange{link: l}, 1), nil
	case GRPC, GRPCStream:
		l, err := connect(ctx, o, "h2")
		if err != nil {
			return nil, err
		}
		c, err := newChannel(ctx, l, o)
		if err != nil {
			_ = l.raw.Close() // the greeting's error matters more
			return nil, err
		}
		if o.Protocol == GRPCStream {
			return newConn(l, newStreamExchange(c), 1), nil
		}
		return newConn(l, newUnaryExchange(c), c.slots()), nil
	default:
		return nil, fmt.Errorf("cannot connect by protocol %d", o.Protocol)
	}
}

// Prepare encodes a request once, for any number of sendings. Receive compares expected outputs.
// Without any, it does not decode answers. An *InputError names the part that cannot be sent.
func Prepare(o Options, r api.InferRequest, f Format, expected []api.Tensor) (*Prepared, error) {
	switch o.Protocol {
	case HTTP:
		message, err := encodeHTTP(o, r, f)
		return &Prepared{message: message, expected: expected}, err
	case GRPC, GRPCStream:
		message, err := encodeGRPC(o, r)
		return &Prepared{message: message, expected: expected}, err
	default:
		return nil, fmt.Errorf("cannot prepare a request for protocol %d", o.Protocol)
	}
}

// connect opens the transport. protocol is the one that TLS negotiates (ALPN).
func connect(ctx context.Context, o Options, protocol string) (*link, error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", o.Address, err)
	}
	l := &link{raw: raw, conn: raw}
	if o.TLS != nil {
		if l.conn, err = handshake(ctx, raw, o, protocol); err != nil {
			_ = raw.Close() // the handshake's error matters more
			return nil, err
		}
	}
	l.in = bufio.NewReaderSize(l.conn, inputBuffer)
	return l, nil
}

func handshake(ctx context.Context, raw net.Conn, o Options, protocol string) (net.Conn, error) {
	config := o.TLS.Clone()
	config.NextProtos = []string{protocol}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(o.Address)
		if err != nil {
			return nil, fmt.Errorf("cannot read the host's name for TLS: %w", err)
		}
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, handshakeError(o.Address, err)
	}
	if agreed := conn.ConnectionState().NegotiatedProtocol; o.Protocol != HTTP && agreed != protocol {
		return nil, fmt.Errorf("the server at %s does not agree to %s by TLS (ALPN), which gRPC needs", o.Address, protocol)
	}
	return conn, nil
}

// refusalTime is the time for which Refusal waits for the server's reason.
const refusalTime = time.Second

// Refusal returns the reason for which a server closes connections after the TLS handshake, nil if
// it gives none. In TLS 1.3 the server judges the client's certificate only then. A client that
// writes at that moment sees only a broken pipe.
func Refusal(ctx context.Context, o Options) error {
	if o.TLS == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, refusalTime)
	defer cancel()
	l, err := connect(ctx, o, "h2")
	if err != nil {
		return nil // other connections have met that already
	}
	defer l.raw.Close()
	// fails only on a closed connection, which Peek reports
	_ = l.raw.SetReadDeadline(time.Now().Add(refusalTime))
	_, err = l.in.Peek(1)
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "remote error" { // an alert, as crypto/tls reports it
		return fmt.Errorf("the server at %s refuses the connection: %w", o.Address, err)
	}
	return nil
}

// handshakeError says which part of the handshake failed. If the server does not speak TLS at all,
// it adds a hint.
func handshakeError(address string, err error) error {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return fmt.Errorf("cannot agree on TLS with %s: it does not seem to speak TLS: %w", address, err)
	}
	return fmt.Errorf("cannot agree on TLS with %s: %w", address, err)
}
