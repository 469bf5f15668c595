package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// mostFields bounds the header fields of an answer. The read buffer bounds the length of a line.
const mostFields = 256

// head holds the parts of an HTTP answer's head that concern its body and the connection.
type head struct {
	status  int
	length  int64 // length of the body in bytes; −1: unknown
	json    int64 // bytes of JSON before the tensors in binary form; −1: unknown, all of it is JSON
	chunked bool
	closes  bool // the server closes the connection after this answer
}

// readHead reads the head of an answer. It skips interim answers (1xx). Source: RFC 9112
// (HTTP/1.1), §4 to §6.
func readHead(in *bufio.Reader) (head, error) {
	for {
		h, err := readOneHead(in)
		if err != nil || h.status >= 200 {
			return h, err
		}
		if h.status == 101 {
			return h, errors.New("cannot read an answer: the server switches protocols, which was not requested")
		}
	}
}

func readOneHead(in *bufio.Reader) (head, error) {
	h := head{length: -1, json: -1}
	line, err := readLine(in)
	if err != nil {
		return h, err
	}
	if err := h.statusLine(line); err != nil {
		return h, err
	}
	for range mostFields {
		if line, err = readLine(in); err != nil {
			return h, err
		}
		if len(line) == 0 {
			if h.status < 200 || h.status == 204 || h.status == 304 { // these have no body
				h.length, h.chunked = 0, false
			}
			return h, nil
		}
		if err := h.field(line); err != nil {
			return h, err
		}
	}
	return h, fmt.Errorf("cannot read an answer with more than %d header fields", mostFields)
}

// statusLine reads HTTP/1.x NNN and the text after it.
func (h *head) statusLine(line []byte) error {
	const version, example = "HTTP/1.", "HTTP/1.1 200"
	if len(line) < len(example) || string(line[:len(version)]) != version || line[8] != ' ' || len(line) > len(example) && line[len(example)] != ' ' {
		return fmt.Errorf("cannot read an answer that begins with %q: expected %q", excerpt(line), example)
	}
	status, err := strconv.ParseUint(string(line[9:12]), 10, 16)
	if err != nil || status < 100 || status > 599 || line[7] != '0' && line[7] != '1' {
		return fmt.Errorf("cannot read an answer that begins with %q: expected %q", excerpt(line), example)
	}
	h.status, h.closes = int(status), line[7] == '0'
	return nil
}

// field reads one header field. Most unused fields are recognised by their length alone.
func (h *head) field(line []byte) error {
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found || len(name) == 0 {
		return fmt.Errorf("cannot read an answer with the header field %q", excerpt(line))
	}
	value = bytes.TrimSpace(value)
	switch {
	case is(name, "Content-Length"):
		return number(&h.length, name, value)
	case is(name, "Inference-Header-Content-Length"):
		return number(&h.json, name, value)
	case is(name, "Transfer-Encoding"):
		if h.chunked = is(value, "chunked"); !h.chunked {
			return fmt.Errorf("cannot read an answer of transfer encoding %q: expected chunked", excerpt(value))
		}
	case is(name, "Connection"):
		if is(value, "close") {
			h.closes = true
		} else if is(value, "keep-alive") {
			h.closes = false
		}
	}
	return nil
}

// is compares without regard to case.
func is(text []byte, want string) bool {
	return len(text) == len(want) && bytes.EqualFold(text, []byte(want))
}

// number reads the value of a header field. A second field with the same name must not contradict
// it.
func number(to *int64, name, value []byte) error {
	n, err := strconv.ParseUint(string(value), 10, 62)
	if err != nil || *to >= 0 && *to != int64(n) {
		return fmt.Errorf("cannot read an answer with %s %q", name, excerpt(value))
	}
	*to = int64(n)
	return nil
}

// readLine reads a line without its end. The line is valid until the next read.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("cannot read an answer: a line of its head is longer than %d bytes: %q", len(line), excerpt(line))
	}
	if err != nil {
		return nil, readError(err)
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// mostQuoted bounds quotations in messages, in bytes.
const mostQuoted = 200

// excerpt returns the beginning of a text, for a message.
func excerpt(text []byte) []byte { return text[:min(len(text), mostQuoted)] }
