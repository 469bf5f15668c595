package testserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"tuner/engine/api"
)

// request has the parts of a request's head.
type request struct {
	method, target string
	infer          bool // an inference of the one model; method and target are then empty
	length         int  // of the body, bytes
}

// headEnough is the number of bytes of a request's body that are searched for its id, which comes
// first.
const headEnough = 256

// serveHTTP answers the requests of a connection until it ends.
func (s *Server) serveHTTP(conn net.Conn) {
	in := bufio.NewReaderSize(conn, 16<<10)
	var answer []byte
	for n := 1; ; {
		r, err := readRequest(in)
		if err != nil {
			return
		}
		if !r.infer {
			if !s.control(conn, in, r) {
				return
			}
			continue
		}
		head, err := in.Peek(min(r.length, headEnough))
		if err != nil {
			return
		}
		answer = appendAnswer(answer[:0], requestID(head))
		if _, err := in.Discard(r.length); err != nil || !s.infer(conn, answer, n) {
			return
		}
		n++
	}
}

// infer serves the n-th inference of a connection. It returns false if the connection ends.
func (s *Server) infer(conn net.Conn, answer []byte, n int) bool {
	v, fails := s.arrive()
	if !s.await(v) {
		return false
	}
	faults := s.options.Faults
	switch {
	case fails:
		answer = appendHead(nil, "500 Internal Server Error", failure)
	case faults.BadHead:
		answer = []byte("HTTP/1.1 20x OK\r\n\r\n")
	case faults.LongBody:
		answer = bytes.Replace(answer, contentLength(answer), contentLength(append(answer, 0)), 1)
	}
	dies := s.leave(v, fails)
	_, err := conn.Write(answer)
	if dies {
		s.stop()
	}
	return err == nil && !faults.LongBody && n != faults.CloseEvery
}

// failure is the answer to requests that FailEvery selects.
const failure = `{"error":"this request was made to fail"}`

// contentLength returns the header field with the length of an answer's body.
func contentLength(answer []byte) []byte {
	_, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	return fmt.Appendf(nil, "Content-Length: %d\r\n", len(body))
}

// appendHead appends a JSON answer.
func appendHead(out []byte, status, body string) []byte {
	return fmt.Appendf(out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// appendAnswer appends an inference's answer, with the request's id if it has one.
func appendAnswer(out, id []byte) []byte {
	const begin = `{"model_name":"` + model + `","model_version":"` + version + `",`
	const tensor = 4 * elements
	text := len(begin) + len(outputs)
	if len(id) > 0 {
		text += len(`"id":"",`) + len(id)
	}
	out = append(out, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: "...)
	out = strconv.AppendInt(out, int64(text), 10)
	out = append(out, "\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(text+tensor), 10)
	out = append(out, "\r\n\r\n"...)
	out = append(out, begin...)
	if len(id) > 0 {
		out = append(out, `"id":"`...)
		out = append(out, id...)
		out = append(out, `",`...)
	}
	return append(append(out, outputs...), make([]byte, tensor)...)
}

// requestID finds the id at the beginning of a request's JSON. Load generators' ids have no quotes.
func requestID(head []byte) []byte {
	_, rest, found := bytes.Cut(head, []byte(`"id":"`))
	id, _, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended {
		return nil
	}
	return id
}

// readRequest reads the head of a request.
func readRequest(in *bufio.Reader) (request, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return request{}, err
	}
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, _, _ := bytes.Cut(rest, []byte(" "))
	var r request
	if string(target) == "/v2/models/law/infer" || string(target) == "/v2/models/law/versions/1/infer" {
		r.infer = true
	} else {
		r.method, r.target = string(method), string(target)
	}
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return r, err
		}
		if len(line) <= 2 { // "\r\n"
			return r, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")) {
			if r.length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || r.length < 0 {
				return r, fmt.Errorf("cannot read a body of length %q", value)
			}
		}
	}
}

// control answers requests other than inferences. It returns false if the connection ends.
func (s *Server) control(conn net.Conn, in *bufio.Reader, r request) bool {
	if _, err := in.Discard(r.length); err != nil {
		return false
	}
	path, query, _ := strings.Cut(strings.TrimSuffix(r.target, "/"), "?")
	if path == "/record" {
		return s.writeRecord(conn, query) == nil
	}
	status, body := "200 OK", ""
	if content, text := s.document(path); text != "" {
		status, body = "404 Not Found", errorText(text)
	} else if content != nil {
		body = string(content)
	}
	_, err := conn.Write(appendHead(nil, status, body))
	return err == nil
}

// document returns the JSON at a path. If the path is unknown, content is nil and text is the
// error.
func (s *Server) document(path string) (content []byte, text string) {
	var value any
	switch path {
	case "/v2/health/live", "/v2/health/ready", "/v2/models/law/ready", "/v2/models/law/versions/1/ready":
		return nil, ""
	case "/v2":
		value = serverMetadata()
	case "/v2/models/law", "/v2/models/law/versions/1":
		value = s.modelMetadata()
	case "/v2/models/law/config", "/v2/models/law/versions/1/config":
		value = json.RawMessage(configText)
	case "/v2/models/stats", "/v2/models/law/stats", "/v2/models/law/versions/1/stats":
		value = s.statistics()
	case "/v2/repository/index":
		value = index()
	default:
		return nil, unknownPath(path)
	}
	content, err := json.Marshal(value)
	if err != nil {
		return nil, err.Error()
	}
	return content, ""
}

// unknownPath names the missing model or call.
func unknownPath(path string) string {
	rest, isModel := strings.CutPrefix(path, "/v2/models/")
	if !isModel {
		return fmt.Sprintf("no call %q", path)
	}
	name, _, _ := strings.Cut(rest, "/")
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return unknownModel(name)
}

// errorText returns the body of a failed answer.
func errorText(text string) string {
	body, err := json.Marshal(api.Error{Text: text})
	if err != nil {
		return failure // impossible: a string always has a JSON form
	}
	return string(body)
}
