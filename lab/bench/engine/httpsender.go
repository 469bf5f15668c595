package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"
)

// dialTime is the longest time of a connection attempt.
const dialTime = 10 * time.Second

// longestAnswer is the largest body of an HTTP answer, in bytes.
const longestAnswer = 1 << 20

const okStatus = "HTTP/1.1 200"

// httpSender is a kept-alive connection that writes a prepared request and reads the answer by its
// Content-Length.
type httpSender struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	tensors [][]byte // that every answer must contain
	body    []byte   // of the latest answer
}

// dialHTTP connects. The connection ends with the context, which the caller must end.
func dialHTTP(ctx context.Context, address string, request []byte, tensors ...[]byte) (*httpSender, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // the current call reports it
	return &httpSender{conn: conn, in: bufio.NewReader(conn), request: request, tensors: tensors}, nil
}

// Close implements sender.
func (s *httpSender) Close() error { return s.conn.Close() }

// Send implements sender. It does not watch its context, which would cost as much as the call: the
// context of dialHTTP ends the connection.
func (s *httpSender) Send(context.Context) error {
	if _, err := s.conn.Write(s.request); err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	status, err := s.line()
	if err != nil {
		return err
	}
	text := string(status[:min(len(status), len(okStatus))])
	length, err := s.head()
	if err != nil {
		return err
	}
	s.body = slices.Grow(s.body[:0], length)[:length]
	if _, err := io.ReadFull(s.in, s.body); err != nil {
		return fmt.Errorf("cannot read an answer: %w", err)
	}
	if text != okStatus {
		return fmt.Errorf("the server answered %q: %s", text, s.body)
	}
	for _, tensor := range s.tensors {
		if !bytes.Contains(s.body, tensor) {
			return fmt.Errorf("wrong answer: %q lacks the tensor % x", s.body, tensor)
		}
	}
	return nil
}

// line reads a line of the head without its end.
func (s *httpSender) line() ([]byte, error) {
	line, err := s.in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("cannot read an answer: %w", err)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// head reads the header fields and returns the body's length.
func (s *httpSender) head() (int, error) {
	length := -1
	for {
		line, err := s.line()
		if err != nil {
			return 0, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(name, []byte("Content-Length")) {
			continue
		}
		if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 || length > longestAnswer {
			return 0, fmt.Errorf("cannot read an answer of length %q", value)
		}
	}
	if length < 0 {
		return 0, errors.New("cannot read an answer without Content-Length")
	}
	return length, nil
}
