package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httputil"

	"tuner/engine/api"
)

// mostKept bounds the bytes of an answer that are kept: an error, or outputs to compare.
const mostKept = 1 << 30

// httpExchange speaks HTTP/1.1: one request, one answer.
type httpExchange struct {
	*link
	expected []api.Tensor // of the request in flight
	begun    bool         // of its answer
	kept     bytes.Buffer
}

func (h *httpExchange) send(_ int, p *Prepared) error {
	h.expected, h.begun = p.expected, false
	return h.write(p.message)
}

func (h *httpExchange) answering(int) bool { return h.begun }

func (h *httpExchange) receive() (slot int, final, null bool, err error) {
	return 0, true, false, h.read()
}

// read reads an answer.
func (h *httpExchange) read() error {
	if _, err := h.in.Peek(1); err != nil {
		return readError(err)
	}
	h.begun = true
	answer, err := readHead(h.in)
	if err != nil {
		return err
	}
	if answer.closes {
		h.broken.Store(true)
	}
	if answer.status == 200 && h.expected == nil && answer.length >= 0 && !answer.chunked {
		return h.skip(answer.length)
	}
	if err := h.keep(answer); err != nil {
		return err
	}
	switch {
	case answer.status != 200:
		return statusError(answer.status, h.kept.Bytes())
	case h.expected == nil:
		return nil
	}
	outputs, err := decodeHTTP(h.kept.Bytes(), answer.json)
	if err != nil {
		return err
	}
	return compare(h.expected, outputs)
}

// keep reads the body into kept.
func (h *httpExchange) keep(answer head) error {
	var body io.Reader = h.in
	switch {
	case answer.chunked:
		body = httputil.NewChunkedReader(h.in)
	case answer.length >= 0:
		body = io.LimitReader(h.in, answer.length)
	default: // the end of the connection ends the answer
		h.broken.Store(true)
	}
	h.kept.Reset()
	read, err := io.Copy(&h.kept, io.LimitReader(body, mostKept))
	if err == nil && read == mostKept {
		err = fmt.Errorf("it is larger than %d bytes", mostKept)
	}
	if err == nil && answer.length > read && !answer.chunked {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return bodyError(err)
	}
	if answer.chunked {
		return h.skipTrailers()
	}
	return nil
}

// skipTrailers skips the header fields that may follow the last chunk.
func (h *httpExchange) skipTrailers() error {
	for range mostFields {
		if line, err := readLine(h.in); err != nil || len(line) == 0 {
			return err
		}
	}
	return fmt.Errorf("cannot read an answer with more than %d trailers", mostFields)
}

// statusError returns the error of an answer: the text in its JSON, or else the body.
func statusError(status int, body []byte) error {
	var e api.Error
	if json.Unmarshal(body, &e) != nil || e.Text == "" {
		e.Text = string(excerpt(body))
	}
	return &api.StatusError{Status: status, Text: e.Text}
}
