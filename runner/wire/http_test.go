package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
)

var int32Request = api.InferRequest{Model: "m", Inputs: []api.Tensor{{Name: "x", Datatype: "INT32", Shape: []int64{2}, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}}}

// scripted serves one connection. It answers each request with the next text, and closes after the
// last.
func scripted(t *testing.T, answers ...string) Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for _, answer := range answers {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(conn, answer)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return Options{Address: listener.Addr().String()}
}

func dial(t *testing.T, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.raw.SetDeadline(time.Now().Add(30 * time.Second)); err != nil { // so that a test that would hang fails
		t.Fatal(err)
	}
	return c
}

func prepare(t *testing.T, o Options, r api.InferRequest, f Format, expected ...api.Tensor) *Prepared {
	t.Helper()
	p, err := Prepare(o, r, f, expected)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(c *Conn, p *Prepared) error {
	c.Send(0, p)
	_, _, _, err := c.Receive()
	return err
}

const small = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

func TestAnswers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 300_000)
	for name, test := range map[string]struct {
		answer string
		err    string // part of it; "": no error
		broken bool
	}{
		"plain":             {small, "", false},
		"lower case":        {"HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\n{}", "", false},
		"no reason":         {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "", false},
		"large":             {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(large), large), "", false},
		"chunked":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\nTrailer: 1\r\n\r\n", "", false},
		"interim":           {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + small, "", false},
		"closing":           {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", "", true},
		"HTTP/1.0":          {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", "", true},
		"HTTP/1.0 kept":     {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}", "", false},
		"error":             {"HTTP/1.1 400 Bad Request\r\nContent-Length: 17\r\n\r\n{\"error\":\"wrong\"}", "server answered 400: wrong", false},
		"busy":              {"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", "server answered 503: busy", false},
		"chunked error":     {"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", "server answered 500: no", false},
		"no content":        {"HTTP/1.1 204 No Content\r\n\r\n", "server answered 204", false},
		"until close":       {"HTTP/1.1 500 No\r\n\r\nall of it", "server answered 500: all of it", true},
		"cut body":          {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "in the middle of an answer", true},
		"cut error":         {"HTTP/1.1 400 No\r\nContent-Length: 3\r\n\r\n{}", "in the middle of an answer", true},
		"cut large":         {"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n{}", "in the middle of an answer", true},
		"cut chunk":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", "in the middle of an answer", true},
		"cut head":          {"HTTP/1.1 200 OK\r\nContent-Le", "the server closed the connection", true},
		"nothing":           {"", "the server closed the connection", true},
		"not HTTP":          {"SSH-2.0-OpenSSH_9.2\r\n", `begins with "SSH-2.0-OpenSSH_9.2": expected "HTTP/1.1 200"`, true},
		"bad status":        {"HTTP/1.1 2x0 OK\r\n\r\n", "begins with", true},
		"bad length":        {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n", `Content-Length "-2"`, true},
		"two lengths":       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", `Content-Length "3"`, true},
		"no colon":          {"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", `header field "nonsense"`, true},
		"compressed frames": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", `transfer encoding "gzip"`, true},
		"long line":         {"HTTP/1.1 200 OK\r\nX: " + large + "\r\n\r\n", "longer than 4096 bytes", true},
		"many fields":       {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 300) + "\r\n", "more than 256 header fields", true},
		"switching":         {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "switches protocols", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := []string{test.answer, small}
			if test.broken {
				answers = answers[:1] // after this the server closes
			}
			o := scripted(t, answers...)
			c, p := dial(t, o), prepare(t, o, int32Request, Format{})
			err := ask(c, p)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, expected %q", err, test.err)
			}
			if c.Broken() != test.broken {
				t.Errorf("broken is %v", c.Broken())
			}
			if test.broken {
				return
			}
			if err := ask(c, p); err != nil { // nothing of the first answer remains
				t.Errorf("the second request failed: %v", err)
			}
		})
	}
}

func TestStatusErrorIsTyped(t *testing.T) {
	t.Parallel()
	o := scripted(t, "HTTP/1.1 400 Bad Request\r\nContent-Length: 17\r\n\r\n{\"error\":\"wrong\"}")
	var status *api.StatusError
	if err := ask(dial(t, o), prepare(t, o, int32Request, Format{})); !errors.As(err, &status) {
		t.Fatalf("error %v is no *api.StatusError", err)
	}
	if diff := cmp.Diff(&api.StatusError{Status: 400, Text: "wrong"}, status); diff != "" {
		t.Error(diff)
	}
}

func TestRequestBytes(t *testing.T) {
	t.Parallel()
	r := int32Request
	r.Model, r.Version, r.ID, r.Priority, r.Outputs = "a/b", "3", "7", 2, []string{"y"}
	o := Options{Address: "host:8000", Headers: []Header{{"X-Key", "v"}, {"host", "other"}},
		Parameters: []Parameter{{"p", int64(1)}, {"q", true}, {"r", "s"}}}
	check := func(f Format, fields, body string) {
		t.Helper()
		want := "POST /v2/models/a%2Fb/versions/3/infer HTTP/1.1\r\n" + fields + "\r\n" + body
		if diff := cmp.Diff(want, string(prepare(t, o, r, f).message)); diff != "" {
			t.Error(diff)
		}
	}
	const begin = `{"id":"7","parameters":{"p":1,"priority":2,"q":true,"r":"s"},"inputs":[{"name":"x","datatype":"INT32","shape":[2],`
	binary := begin + `"parameters":{"binary_data_size":8}}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`
	check(Format{}, fmt.Sprintf("host: other\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\nX-Key: v\r\n", len(binary), len(binary)+8),
		binary+"\x01\x00\x00\x00\x02\x00\x00\x00")
	text := begin + `"data":[1,2]}],"outputs":[{"name":"y","parameters":{"binary_data":false}}]}`
	check(Format{JSONInputs: true, JSONOutputs: true}, fmt.Sprintf("host: other\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Key: v\r\n", len(text)), text)
	text = strings.Replace(text, "false", "true", 1)
	check(Format{JSONInputs: true}, fmt.Sprintf("host: other\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Key: v\r\n", len(text)), text)
}

// A parameter of the request sets the form of the outputs if the request names none.
func TestFormOfAllOutputs(t *testing.T) {
	t.Parallel()
	for json, want := range map[bool]string{true: `"binary_data_output":false`, false: `"binary_data_output":true`} {
		p := prepare(t, Options{}, int32Request, Format{JSONOutputs: json})
		if !strings.Contains(string(p.message), want) {
			t.Errorf("%q lacks %s", p.message, want)
		}
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	check := func(o Options, in api.Tensor, want string) {
		t.Helper()
		_, err := Prepare(o, api.InferRequest{Model: "m", Inputs: []api.Tensor{in}}, Format{JSONInputs: true}, nil)
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v (%T), expected one of input that has %q", err, err, want)
		}
	}
	tensor := func(datatype string, data ...byte) api.Tensor {
		return api.Tensor{Name: "x", Datatype: datatype, Shape: []int64{1}, Data: data}
	}
	headers := func(name, value string) Options { return Options{Headers: []Header{{name, value}}} }
	check(headers("content-length", "3"), tensor("INT8"), `"content-length" cannot be set`)
	check(headers("X\r\n", "3"), tensor("INT8"), "not allowed in HTTP")
	check(headers("X", "3\r\nY: 4"), tensor("INT8"), "not allowed in HTTP")
	check(Options{Parameters: []Parameter{{"p", 1.5}}}, tensor("INT8"), `parameter "p" is float64`)
	check(Options{}, tensor("FP16", 0, 0), `"x" is FP16`)
	check(Options{}, tensor("FP32", 0, 0, 0xc0, 0x7f), "NaN at element 0")
	check(Options{}, tensor("FP64", 0, 0, 0, 0, 0, 0, 0xf0, 0xff), "-Inf at element 0")
	check(Options{}, tensor("BYTES", 1, 0, 0, 0, 0xff), "not UTF-8 text")
	check(Options{}, tensor("BYTES", 2, 0, 0, 0, 'a'), "ends inside element 0")
}
