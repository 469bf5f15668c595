package rest_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tuner/engine/enginetest"
)

// For any headers and body of a request, the engine sees no more good requests in the bytes than
// net/http does. It sees fewer only if it ends the connection. So no bytes that one of them reads
// as a body pass as a next request with the other.
func FuzzFraming(f *testing.F) {
	const begin = "POST /v2/repository/index HTTP/1.1\r\nHost: localhost\r\n"
	const last = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, seed := range framings("/v2/repository/index", last) {
		if rest, ok := strings.CutPrefix(seed.text, begin); ok {
			f.Add([]byte(rest))
		}
	}
	e := enginetest.Start(f, enginetest.Options{})
	f.Fuzz(func(t *testing.T, rest []byte) {
		text := begin + string(rest) + last
		want, isComparable := goodRequests(text)
		if !isComparable || len(rest) > 2<<10 { // net/http reads trailers of at most 4 KiB
			return
		}
		conn := dial(t, e, "")
		go func() {
			_, _ = io.WriteString(conn, text) // fails if the server has closed the connection
			_ = conn.CloseWrite()
		}()
		good, isEnded := 0, false
		for _, a := range answers(t, conn) {
			if a.status != http.StatusContinue && !(a.isLast && a.status >= 400) {
				good++
			}
			isEnded = isEnded || a.isLast
		}
		if good > want || good < want && !isEnded {
			t.Errorf("%q: the engine sees %d requests, net/http %d", text, good, want)
		}
	})
}

// goodRequests counts the requests that net/http reads before the first bad one. isComparable is
// false if only the target of that one is bad, which the engine checks later.
func goodRequests(text string) (n int, isComparable bool) {
	r := bufio.NewReader(strings.NewReader(text))
	for ; ; n++ {
		for next, _ := r.Peek(1); len(next) > 0 && (next[0] == '\r' || next[0] == '\n'); next, _ = r.Peek(1) {
			_, _ = r.Discard(1) // RFC 9112, section 2.2: empty lines before a request are ignored
		}
		request, err := http.ReadRequest(r)
		if err != nil {
			return n, !errors.As(err, new(*url.Error))
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return n, true
		}
	}
}
