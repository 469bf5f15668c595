package rest_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"tuner/engine/enginetest"
)

const goodChunks = "2\r\n{}\r\n0\r\n\r\n"

// framing is a request as bytes, and its answer.
type framing struct {
	name, text string
	status     int
	isKept     bool // the connection may serve another request
}

// framings returns requests whose end two programs might see at different places. They are POSTs to
// a path, with another request hidden in them, and GETs of the server's metadata.
func framings(path, smuggled string) []framing {
	request := func(headers, rest string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n" + rest
	}
	sized := fmt.Sprintf("Content-Length: %d\r\n", len(smuggled))
	const chunked = "Transfer-Encoding: chunked\r\n"
	return []framing{
		{"plain", request("Content-Length: 2\r\n", "{}"), 200, true},
		{"no body", request("", ""), 200, true},
		{"chunks", request(chunked, goodChunks), 200, true},
		{"chunks, other case", request("transfer-ENCODING: Chunked\r\n", goodChunks), 200, true},
		{"chunk extension", request(chunked, "2;a=b\r\n{}\r\n0\r\n\r\n"), 200, true},
		{"trailer", request(chunked, "2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n"), 200, true},
		{"leading zeros in a chunk size", request(chunked, "0002\r\n{}\r\n0\r\n\r\n"), 200, true},
		{"a body of a GET", "GET /v2 HTTP/1.1\r\nHost: localhost\r\n" + sized + "\r\n" + smuggled, 200, true},
		{"HTTP/1.0", "POST " + path + " HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", 200, false},
		{"absolute form", "GET http://localhost/v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, true},

		{"Content-Length twice", request("Content-Length: 0\r\n"+sized, smuggled), 400, false},
		{"the same Content-Length twice", request("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"), 400, false},
		{"a list of lengths", request("Content-Length: 0, 57\r\n", smuggled), 400, false},
		{"no digits in Content-Length", request("Content-Length: \r\n", smuggled), 400, false},
		{"signed Content-Length", request("Content-Length: +57\r\n", smuggled), 400, false},
		{"negative Content-Length", request("Content-Length: -1\r\n", smuggled), 400, false},
		{"hexadecimal Content-Length", request("Content-Length: 0x2\r\n", smuggled), 400, false},
		{"Content-Length overflows", request("Content-Length: 18446744073709551618\r\n", smuggled), 400, false},
		{"Content-Length in words", request("Content-Length: 5 7\r\n", smuggled), 400, false},
		{"Content-Length and chunks", request(sized+chunked, "0\r\n\r\n"+smuggled), 400, false},
		{"chunks and Content-Length", request(chunked+sized, "0\r\n\r\n"+smuggled), 400, false},
		{"Transfer-Encoding twice", request(chunked+chunked, "0\r\n\r\n"+smuggled), 400, false},
		{"chunked and identity", request(chunked+"Transfer-Encoding: identity\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"identity", request("Transfer-Encoding: identity\r\n", smuggled), 400, false},
		{"identity and Content-Length", request("Transfer-Encoding: identity\r\n"+sized, smuggled), 400, false},
		{"gzip, chunked", request("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"chunked, identity", request("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"another encoding", request("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"an empty encoding", request("Transfer-Encoding: \r\n"+sized, smuggled), 400, false},
		{"quoted chunked", request("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"chunked with a vertical tab", request("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"chunks in HTTP/1.0", "POST " + path + " HTTP/1.0\r\n" + chunked + "\r\n" + goodChunks, 400, false},

		{"space before the colon", request(strings.Replace(sized, ":", " :", 1), smuggled), 400, false},
		{"tab before the colon", request(strings.Replace(sized, ":", "\t:", 1), smuggled), 400, false},
		{"space before the colon of the encoding", request("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"space in a name", request("Content Length: 5\r\n", smuggled), 400, false},
		{"folded header", request("X: a\r\n "+sized, smuggled), 400, false},
		{"folded length", request("Content-Length:\r\n 57\r\n", smuggled), 400, false},
		{"folded encoding", request("Transfer-Encoding:\r\n\tchunked\r\n", "0\r\n\r\n"+smuggled), 400, false},
		{"folded first header", "GET /v2 HTTP/1.1\r\n Host: localhost\r\n\r\n", 400, false},
		{"bare LF after a header", request("X: a\n"+sized, smuggled), 400, false},
		{"bare LF in place of the empty line", "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n\n" + smuggled, 400, false},
		{"bare CR in a header", request("X: a\r"+sized, smuggled), 400, false},
		{"NUL in a header", request("X: a\x00b\r\n", ""), 400, false},
		{"a header without a colon", request("Content-Length\r\n", smuggled), 400, false},
		{"a header without a name", request(": 57\r\n", smuggled), 400, false},
		{"a name that is no token", request("Content-Length(: 57\r\n", smuggled), 400, false},

		{"signed chunk size", request(chunked, "+2\r\n{}\r\n0\r\n\r\n"), 400, false},
		{"negative chunk size", request(chunked, "-2\r\n{}\r\n0\r\n\r\n"), 400, false},
		{"0x in a chunk size", request(chunked, "0x2\r\n{}\r\n0\r\n\r\n"), 400, false},
		{"chunk size overflows", request(chunked, "10000000000000002\r\n{}\r\n0\r\n\r\n"), 400, false},
		{"no chunk size", request(chunked, "\r\n{}\r\n0\r\n\r\n"), 400, false},
		{"space before a chunk size", request(chunked, " 2\r\n{}\r\n0\r\n\r\n"), 400, false},
		{"bare LF after a chunk size", request(chunked, "2\n{}\r\n0\r\n\r\n"), 400, false},
		{"bare LF in a chunk extension", request(chunked, "2;a\nb\r\n{}\r\n0\r\n\r\n"), 400, false},
		{"a chunk longer than its size", request(chunked, "1\r\n{}\r\n0\r\n\r\n"), 400, false},

		{"no Host", "GET /v2 HTTP/1.1\r\n\r\n", 400, false},
		{"two Hosts", "GET /v2 HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400, false},
		{"another Host than in the target", "GET http://localhost:1/v2 HTTP/1.1\r\nHost: localhost:2\r\n\r\n", 404, false},
		{"HTTP/9.9", "GET /v2 HTTP/9.9\r\nHost: localhost\r\n\r\n", 505, false},
		{"HTTP/2.0", "GET /v2 HTTP/2.0\r\nHost: localhost\r\n\r\n", 505, false},
		{"HTTP/1.2", "GET /v2 HTTP/1.2\r\nHost: localhost\r\n\r\n", 505, false},
		{"HTTP/1.10", "GET /v2 HTTP/1.10\r\nHost: localhost\r\n\r\n", 400, false},
		{"HTTP/0.9", "GET /v2\r\n\r\n", 400, false},
		{"lower case http", "GET /v2 http/1.1\r\nHost: localhost\r\n\r\n", 400, false},
		{"two spaces before the target", "GET  /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, false},
		{"a tab before the target", "GET\t/v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, false},
		{"a space in the target", "GET /v2 x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, false},
		{"the whole server as the target of a GET", "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, false},
		{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, false},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, false},
	}
}

// Every request has one end, and one answer. If readers could disagree about its end, the answer is
// 400 and the connection ends. So no bytes behind it are taken for another request.
func TestFramings(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	// an answer to it can be recognised
	const smuggled = "GET /v2/models/SMUGGLED HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, tc := range framings("/v2/repository/index", smuggled) {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			const last = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
			conn := dial(t, e, tc.text)
			_, _ = io.WriteString(conn, last) // fails when the server has hung up
			got := answers(t, conn)
			want := []int{tc.status}
			if tc.isKept {
				want = append(want, 200)
			}
			var statuses []int
			for _, a := range got {
				statuses = append(statuses, a.status)
				if strings.Contains(a.body, "SMUGGLED") {
					t.Errorf("the smuggled request was answered: %v", a)
				}
			}
			if fmt.Sprint(statuses) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
	if got := call(t, e, "GET", "/v2/health/live", ""); got.status != 200 {
		t.Errorf("afterwards: got %d", got.status)
	}
}
