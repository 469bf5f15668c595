package rest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tuner/engine/enginetest"
)

// A web page of another site can make a browser send these. None of them has an effect.
func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	body := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `]}`
	const unload = "/v2/repository/models/fake/unload"
	for _, tc := range []struct {
		method, path, body string
		headers            string // NAME: VALUE, separated by |
		status             int
	}{
		{"POST", unload, "", "Origin: https://evil.example|Content-Type: text/plain", 403},
		{"POST", unload, "", "Origin: null", 403},
		// another server on this machine is another site
		{"POST", unload, "", "Origin: http://localhost:1", 403},
		{"POST", unload, "", "Sec-Fetch-Site: cross-site", 403},
		{"POST", "/v2/repository/models/fake/load", "", "Origin: https://evil.example", 403},
		{"POST", "/v2/repository/index", "", "Origin: https://evil.example", 403},
		{"POST", inferPath, body, "Origin: https://evil.example|Content-Type: text/plain", 403},
		{"OPTIONS", inferPath, "", "Origin: https://evil.example|Access-Control-Request-Method: POST", 405},

		// has no effect, and the browser hides the answer from the page
		{"GET", "/v2", "", "Origin: https://evil.example", 200},
		{"POST", inferPath, body, "", 200},
		{"POST", inferPath, body, "Origin: http://" + e.Addresses.HTTP, 200},
		// behind a proxy that changes Host
		{"POST", inferPath, body, "Origin: https://somewhere.example|Sec-Fetch-Site: same-origin", 200},
		{"POST", inferPath, body, "Sec-Fetch-Site: none", 200},
	} {
		var headers []string
		for header := range strings.SplitSeq(tc.headers, "|") {
			if name, value, found := strings.Cut(header, ": "); found {
				headers = append(headers, name, value)
			}
		}
		got := call(t, e, tc.method, tc.path, tc.body, headers...)
		if got.status != tc.status || tc.status == 403 && !strings.Contains(got.body, "a web page of another site may not call this server") {
			t.Errorf("%s %s with %s: got %d %s, want %d", tc.method, tc.path, tc.headers, got.status, got.body, tc.status)
		}
		if allowed := got.header.Get("Access-Control-Allow-Origin"); allowed != "" {
			t.Errorf("%s %s: pages of %s may read the answer", tc.method, tc.path, allowed)
		}
		if !e.Server.Ready() || e.Server.ModelReady("fake", 0) != nil {
			t.Fatalf("%s %s with %s had an effect", tc.method, tc.path, tc.headers)
		}
	}
}

// A server on loopback accepts only this machine's names, so that no page can give the server a
// name of its own.
func TestHost(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, status := range map[string]int{
		machine: 200, machine + ":8000": 200, machine + ".evil.example": 403,
		"localhost": 200, "localhost:8000": 200, "LOCALHOST": 200, "model.localhost:80": 200, "127.0.0.1": 200, "127.0.0.1:8000": 200, "127.9.9.9": 200,
		"[::1]": 200, "[::1]:8000": 200, "[::ffff:127.0.0.1]": 200,
		"evil.example": 403, "evil.example:8000": 403, "localhost.evil.example": 403, "notlocalhost": 403, ".localhost": 403, "127.0.0.1.evil.example": 403,
		"192.0.2.1:8000": 403, "0.0.0.0": 403, "[fe80::1]": 403, "x": 403,
	} {
		got := answers(t, dial(t, e, fmt.Sprintf("GET /v2 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)))
		if len(got) != 1 || got[0].status != status || status == 403 && !strings.Contains(got[0].body, "Host must be localhost") {
			t.Errorf("%s: got %v, want %d", host, got, status)
		}
	}
}

// A client that asks before it sends a body learns at once that the body is refused.
func TestExpect(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	const ask = "Expect: 100-continue\r\n"
	for _, tc := range []struct {
		name, text string
		status     int
		want       string // part of the text
	}{
		{"a TiB", post(inferPath, ask+"Content-Length: 1099511627776\r\n"), 413, "request JSON size of 1099511627776 bytes exceeds"},
		{"a TiB of binary data", post(inferPath, ask+"Inference-Header-Content-Length: 10\r\nContent-Length: 1099511627776\r\n"), 413, "requests and answers take more than"},
		{"more JSON than allowed", post(inferPath, ask+"Content-Length: 67108865\r\n"), 413, "exceeds the maximum allowed input size of 67108864 bytes"},
		{"more than Triton can count", post("/v2/repository/models/fake/load", ask+"Content-Length: 2147483648\r\n"), 413, "Unable to parse Content-Length"},
		{"no such path", post("/v2/nosuch", ask+"Content-Length: 10\r\n"), 404, "Not Found"},
		{"a foreign page", post(inferPath, ask+"Content-Length: 10\r\nOrigin: https://evil.example\r\n"), 403, "another site"},
		{"two framings", post(inferPath, ask+"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n"), 400, "both Content-Length and Transfer-Encoding"},
	} {
		got := answers(t, dial(t, e, tc.text))
		if len(got) != 1 || got[0].status != tc.status || !strings.Contains(got[0].body, tc.want) || !got[0].isLast {
			t.Errorf("%s: got %v, want %d …%s… and the end of the connection", tc.name, got, tc.status, tc.want)
		}
	}
	conn := dial(t, e, "POST /v2/repository/index HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+ask+"Content-Length: 2\r\n\r\n")
	line := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := conn.Read(line); err != nil || !strings.HasPrefix(string(line), "HTTP/1.1 100") {
		t.Fatalf("got %q, %v", line, err)
	}
	if _, err := conn.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, conn); len(got) != 1 || got[0].status != 200 {
		t.Errorf("after 100: got %v", got)
	}
}
