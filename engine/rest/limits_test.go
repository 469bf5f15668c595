package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/rest"
	"tuner/internal/alloctest"
	"tuner/model/modelconfig/configpb"
)

// patience bounds the wait for events that should happen at once.
const patience = 20 * time.Second

// open serves e's models through another front end, with options, until the test ends.
func open(t *testing.T, e *enginetest.Engine, o rest.Options) *enginetest.Engine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Log = slog.New(slog.DiscardHandler)
	f := rest.New(e.Server, o)
	served := make(chan error, 1)
	go func() { served <- f.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	other := *e
	other.Addresses.HTTP = l.Addr().String()
	return &other
}

// dial connects to e and sends text.
func dial(t *testing.T, e *enginetest.Engine, text string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", e.Addresses.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // most tests close it themselves
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// answers reads the answers of a connection until it ends.
func answers(t *testing.T, conn net.Conn) []answer {
	t.Helper()
	var all []answer
	for r := bufio.NewReader(conn); ; {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return all
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, answer{response.StatusCode, string(body), response.Header, response.Close})
		if response.Close {
			return all
		}
	}
}

func post(path, headers string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n"
}

const inferPath = "/v2/models/fake/infer"

// The length that a client announces costs no memory; only bytes that it sends do.
func TestAnnouncedBody(t *testing.T) { // not parallel: it measures the allocations of the process
	e := enginetest.Start(t, enginetest.Options{})
	const connections, sent = 20, 100 << 10
	allocated := alloctest.Bytes(func() {
		for range connections {
			conn := dial(t, e, post(inferPath, "Inference-Header-Content-Length: 100\r\nContent-Length: 2000000000\r\n")+strings.Repeat("x", sent))
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			got := answers(t, conn)
			if len(got) != 1 || got[0].status != 400 || !strings.Contains(got[0].body, "its body is incomplete") {
				t.Fatalf("got %v", got)
			}
		}
	})
	// Buffers of 64 KiB and 128 KiB on each side and fasthttp's own add up to less than 1 MiB per
	// connection.
	if allocated > connections<<20 {
		t.Errorf("%d connections that sent %d bytes each made the process allocate %d bytes", connections, sent, allocated)
	}
}

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	// a body may have half of it
	e := open(t, enginetest.Start(t, enginetest.Options{}), rest.Options{MaxInput: 8 << 20, Memory: budget.New(8 << 20)})
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	a, b := one("INPUT0", counted), one("INPUT1", counted)
	good := `{"inputs":[` + a + `,` + b + `]}`
	many := func(list, text string) string {
		return `{"inputs":[` + a + `,` + b + `],"` + list + `":[` + strings.Repeat(text+",", 1<<16) + text + `]}`
	}
	sized := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	const chunked = "Transfer-Encoding: chunked\r\n"
	for _, tc := range []struct {
		name, headers, body string
		status              int
		want                string // part of the text
	}{
		{"good", sized(len(good)), good, 200, `"OUTPUT0"`},
		{"good in chunks", chunked, chunk(good[:50]) + chunk(good[50:]) + "0\r\n\r\n", 200, `"OUTPUT0"`},
		{"more JSON than allowed", sized(8<<20 + 1), strings.Repeat(" ", 10<<10), 400, "request JSON size of 8388609 bytes exceeds the maximum allowed input size of 8388608 bytes."},
		{"more JSON than allowed, in chunks", chunked, chunk(strings.Repeat(" ", 3<<20)) + chunk(strings.Repeat(" ", 3<<20)) + chunk(strings.Repeat(" ", 3<<20)), 503, "requests and answers take more than the 8388608 bytes"},
		{"a larger raw tensor than allowed", "Inference-Header-Content-Length: 0\r\n" + sized(8<<20+1), strings.Repeat(" ", 10<<10), 400, "raw input of 8388609 bytes exceeds"},
		{"more memory than there is", "Inference-Header-Content-Length: 10\r\n" + sized(5<<20), strings.Repeat(" ", 5<<20), 503, "requests and answers take more than the 8388608 bytes"},
		{"more than Triton can count", "Inference-Header-Content-Length: 10\r\n" + sized(1<<31), strings.Repeat(" ", 10<<10), 400, "Unable to parse Content-Length, value is out of range"},
		{"less than announced", sized(100), "{}", 400, "its body is incomplete"},
		{"tiny chunks", chunked, strings.Repeat(chunk(" "), 1<<16+1000), 400, "too many chunks"},
		{"broken chunks", chunked, "zz\r\n", 400, "incomplete or malformed"},
		{"many inputs", "Inference-Header-Content-Length: 1\r\n" + sized(2), "{}", 500, "Missing a name"},
		{"many outputs", sized(len(many("outputs", `{"name":""}`))), many("outputs", `{"name":""}`), 400, "request has more than 65536 outputs"},
		{"many headers", strings.Repeat("A: b\r\n", 5000), "", 431, "headers of the request are too large"},
		{"large header", "A: " + strings.Repeat("b", 20000) + "\r\n", "", 431, "headers of the request are too large"},
	} {
		conn := dial(t, e, post(inferPath, tc.headers))
		go func() {
			_, _ = io.WriteString(conn, tc.body) // fails if the server has read enough
			_ = conn.CloseWrite()
		}()
		got := answers(t, conn)
		if len(got) != 1 || got[0].status != tc.status || !strings.Contains(got[0].body, tc.want) {
			t.Errorf("%s: got %v, want %d …%s…", tc.name, got, tc.status, tc.want)
		}
		if got := call(t, e, "POST", inferPath, good); got.status != 200 { // the memory has been given back
			t.Errorf("after %s: got %d %s", tc.name, got.status, got.body)
		}
	}
}

// A request may list 65,536 inputs, but no more.
func TestManyInputs(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	const in = `{"name":"a","shape":[0],"datatype":"BOOL","data":[]}`
	for n, want := range map[int]string{1 << 16: "input 'a' already exists in request", 1<<16 + 1: "request has more than 65536 inputs"} {
		got := call(t, e, "POST", inferPath, `{"inputs":[`+strings.Repeat(in+",", n-1)+in+`]}`)
		if got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("%d inputs: got %d %.200s", n, got.status, got.body)
		}
	}
}

// An error does not repeat a large request: 65,000 names, or one of 5 MB.
func TestErrorTextsAreBounded(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	var names []string
	for i := range 65_000 {
		names = append(names, fmt.Sprintf(`{"name":"a%d","shape":[0],"datatype":"BOOL","data":[]}`, i))
	}
	for want, body := range map[string]string{
		"expected 2 inputs but got 65000 inputs": `{"inputs":[` + strings.Join(names, ",") + `]}`,
		"unexpected inference input 'nnn":        `{"inputs":[` + one(strings.Repeat("n", 5<<20), counted) + "," + one("INPUT1", counted) + `]}`,
	} {
		got := call(t, e, "POST", inferPath, body)
		if got.status != 400 || !strings.Contains(got.body, want) || len(got.body) > 20<<10 || !strings.HasSuffix(got.body, ` bytes more)"}`) {
			t.Errorf("%s: got %d and %d bytes %.200s", want, got.status, len(got.body), got.body)
		}
	}
}

// A body that the server did not read is not taken for the next request.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	const next = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	for _, tc := range []struct {
		size int
		want []int
	}{
		{0, []int{404, 200}},
		{4 << 10, []int{404, 200}},
		{100 << 10, []int{404, 200}},
		{4 << 20, []int{404}},
	} {
		body := strings.Repeat(next, tc.size/len(next))
		conn := dial(t, e, post("/v2/models/fake/nosuch", fmt.Sprintf("Content-Length: %d\r\n", len(body))))
		go func() { _, _ = io.WriteString(conn, body+next) }() // fails when the server has hung up
		var got []int
		for _, a := range answers(t, conn) {
			got = append(got, a.status)
		}
		if fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%d bytes: got %v, want %v", tc.size, got, tc.want)
		}
	}
}

// Each path has one spelling. All others are unknown.
func TestSpellings(t *testing.T) {
	t.Parallel()
	e := open(t, enginetest.Start(t, enginetest.Options{}), rest.Options{Restricted: api.Restrictions{api.CategoryMetadata: {Header: "key", Value: "secret"}}})
	for _, target := range []string{
		"/v2/", "//v2", "/v2//models/fake", "/v2/models//fake", "/v2/models/./fake", "/v2/models/../models/fake", "/v2/models/fake/", "/v2/models/fake//ready",
		"/v2%2fmodels/fake", "/V2", "/v2/models/fake/versions/", "/v2/models/fake/versions/1/", "/v2/models/fake/ready/", "/v2/health//live", "/v2/health/live/",
		"/v2/repository//index", "/v2#x", "/v2;x", "/v2/models/fake/versions/+1",
	} {
		got := answers(t, dial(t, e, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
		if len(got) != 1 || got[0].status != 404 {
			t.Errorf("%s: got %v, want 404", target, got)
		}
	}
	for target, status := range map[string]int{"/v2": 403, "http://localhost/v2": 403, "/v2?": 403, "/v2/models/fake": 403, "/v2/models/fak%65": 403, "/v2/models/fak%65/ready": 400} {
		got := answers(t, dial(t, e, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
		if len(got) != 1 || got[0].status != status {
			t.Errorf("%s: got %v, want %d", target, got, status)
		}
	}
}

func TestRestrictions(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	body := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `]}`
	for _, tc := range []struct {
		category     api.Category
		method, path string
	}{
		{api.CategoryHealth, "GET", "/v2/health/live"},
		{api.CategoryHealth, "GET", "/v2/health/ready"},
		{api.CategoryHealth, "GET", "/v2/models/fake/ready"},
		{api.CategoryMetadata, "GET", "/v2"},
		{api.CategoryMetadata, "GET", "/v2/models/fake/versions/1"},
		{api.CategoryModelConfig, "GET", "/v2/models/fake/config"},
		{api.CategoryStatistics, "GET", "/v2/models/stats"},
		{api.CategoryStatistics, "GET", "/v2/models/fake/stats"},
		{api.CategoryInference, "POST", inferPath},
		{api.CategoryModelRepository, "POST", "/v2/repository/index"},
		{api.CategoryModelRepository, "POST", "/v2/repository/models/nosuch/unload"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			t.Parallel()
			for _, c := range api.Categories() {
				e := open(t, e, rest.Options{Restricted: api.Restrictions{c: {Header: "Admin-Key", Value: "secret"}}})
				text := ""
				if tc.path == inferPath {
					text = body
				}
				open, wrong := call(t, e, tc.method, tc.path, text), call(t, e, tc.method, tc.path, text, "Admin-Key", "secre")
				want, with := 200, call(t, e, tc.method, tc.path, text, "admin-key", "secret")
				if c == tc.category {
					want = 403
				}
				if open.status != want || wrong.status != want || with.status != 200 {
					t.Errorf("%s is restricted: got %d without, %d with a wrong and %d with the right header", c, open.status, wrong.status, with.status)
				}
				if text := `{"error":"This API is restricted, expecting header 'Admin-Key'"}`; want == 403 && open.body != text {
					t.Errorf("got %s, want %s", open.body, text)
				}
			}
		})
	}
}

// A request whose client hangs up while it is queued is never executed. It counts as failed.
func TestDisconnectedClient(t *testing.T) {
	t.Parallel()
	started, proceed := make(chan struct{}, 10), make(chan struct{})
	e := enginetest.Start(t, enginetest.Options{
		Backend: &enginetest.Backend{ServiceTime: func(int, int) time.Duration { started <- struct{}{}; <-proceed; return 0 }},
		Config:  `max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }`,
	})
	body := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `]}`
	request := post(inferPath, fmt.Sprintf("Content-Length: %d\r\n", len(body))) + body
	blocker := dial(t, e, request)
	<-started
	for _, hangUp := range []func(*net.TCPConn) error{(*net.TCPConn).Close, (*net.TCPConn).CloseWrite, func(c *net.TCPConn) error {
		if err := c.SetLinger(0); err != nil { // a reset instead of an orderly end
			return err
		}
		return c.Close()
	}} {
		if err := hangUp(dial(t, e, request)); err != nil {
			t.Fatal(err)
		}
	}
	stats := func() api.ModelStatistics {
		s, err := e.Server.Statistics("fake", 1)
		if err != nil {
			t.Fatal(err)
		}
		return s.ModelStats[0]
	}
	for end := time.Now().Add(patience); stats().InferenceStats.Fail.Count < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	close(proceed)
	if _, err := blocker.Write([]byte(strings.Replace(request, "\r\n", "\r\nConnection: close\r\n", 1))); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, blocker); len(got) != 2 || got[0].status != 200 || got[1].status != 200 {
		t.Errorf("the connection that stayed: got %v", got)
	}
	if s := stats(); s.InferenceStats.Fail.Count != 3 || s.ExecutionCount != 2 {
		t.Errorf("got %d failed and %d executed requests, want 3 and 2", s.InferenceStats.Fail.Count, s.ExecutionCount)
	}
}

// Tensors with and without elements, and answers larger than any buffer, arrive complete.
func TestLargeTensor(t *testing.T) {
	t.Parallel()
	e := typed(t, configpb.DataType_TYPE_INT32, -1, -1)
	data := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 1<<18)
	for _, n := range []int{4, 8 << 10, 64 << 10, 64<<10 + 4, len(data)} {
		got := call(t, e, "POST", inferPath, string(data[:n]), "Inference-Header-Content-Length", "0")
		if got.status != 200 || !strings.HasSuffix(got.body, string(data[:n])) {
			t.Errorf("%d bytes: got %d, %d bytes", n, got.status, len(got.body))
		}
	}
}
