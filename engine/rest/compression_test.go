package rest_test

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/rest"
)

// pack compresses text as "gzip" or "deflate".
func pack(t testing.TB, coding, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := io.WriteCloser(gzip.NewWriter(&out))
	if coding == "deflate" {
		w = zlib.NewWriter(&out)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// unpack decompresses an answer.
func unpack(t testing.TB, coding, data string) string {
	t.Helper()
	r, err := io.ReadCloser(nil), error(nil)
	if coding == "gzip" {
		r, err = gzip.NewReader(strings.NewReader(data))
	} else {
		r, err = zlib.NewReader(strings.NewReader(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Compressed requests and answers are those without compression. The header with the length of the
// JSON counts bytes before the compression.
func TestCompression(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	ask := `{"inputs":[` + strings.Replace(one("INPUT0", "0"), `"data":0`, `"parameters":{"binary_data_size":64}`, 1) + `,` + one("INPUT1", counted) +
		`],"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}},{"name":"OUTPUT1"}]}`
	body := ask + strings.Repeat("\x01\x02\x03\x04", 16)
	length := strconv.Itoa(len(ask))
	plain := call(t, e, "POST", inferPath, body, "Inference-Header-Content-Length", length)
	if plain.status != 200 || plain.header.Get("Content-Encoding") != "" {
		t.Fatalf("got %d %q", plain.status, plain.body)
	}
	for _, coding := range []string{"gzip", "deflate"} {
		for range 3 { // compressors and buffers are used again
			got := call(t, e, "POST", inferPath, pack(t, coding, body), "Inference-Header-Content-Length", length,
				"Content-Encoding", coding, "Accept-Encoding", coding)
			if got.header.Get("Content-Encoding") != coding {
				t.Fatalf("%s: got %d %q, encoded as %q", coding, got.status, got.body, got.header.Get("Content-Encoding"))
			}
			if text := unpack(t, coding, got.body); text != plain.body {
				t.Errorf("%s: got %q, want %q", coding, text, plain.body)
			}
			if n := got.header.Get("Inference-Header-Content-Length"); n != plain.header.Get("Inference-Header-Content-Length") {
				t.Errorf("%s: the JSON has %s bytes, want %s", coding, n, plain.header.Get("Inference-Header-Content-Length"))
			}
		}
	}
}

// The coding with the highest weight is taken, the first of several. Errors have none.
func TestAcceptedCoding(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	ask := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `]}`
	for accept, want := range map[string]string{
		"gzip":                                   "gzip",
		"deflate, gzip":                          "deflate",
		"gzip;q=0.5, deflate;q=0.8":              "deflate",
		"gzip ; q=0.5 ,deflate ; q=0.8":          "deflate",
		"identity;q=1, gzip;q=0.9":               "",
		"identity;q=0.2, gzip;q=0.3, br;q=1":     "gzip",
		"gzip;q=0":                               "",
		"gzip;q=x":                               "",
		"gzip;level=1":                           "",
		"br":                                     "",
		"*":                                      "",
		"":                                       "",
		",,;q=1,gzip;":                           "",
		"gzip;q=1e999, deflate;q=0.1":            "deflate",
		"gzip;q=NaN, deflate;q=0.1,identity;q=0": "deflate",
	} {
		if got := call(t, e, "POST", inferPath, ask, "Accept-Encoding", accept); got.status != 200 || got.header.Get("Content-Encoding") != want {
			t.Errorf("%q: got %d, encoded as %q, want %q", accept, got.status, got.header.Get("Content-Encoding"), want)
		}
	}
	if got := call(t, e, "POST", inferPath, "{", "Accept-Encoding", "gzip"); got.status != 500 || got.header.Get("Content-Encoding") != "" || !strings.HasPrefix(got.body, failure) {
		t.Errorf("an error: got %d %q", got.status, got.body)
	}
}

// What cannot be decompressed is refused, and the connection serves the next request.
func TestBadCompression(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	good := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `]}`
	const incomplete = `{"error":"cannot decompress the request: its body is not one complete gzip or zlib stream"}`
	for name, tc := range map[string]struct {
		coding, body string
		status       int
		want         string // "": an answer
	}{
		"unknown":             {"br", "x", 501, `{"error":"Unsupported compression type"}`},
		"two at once":         {"gzip, deflate", "x", 501, `{"error":"Unsupported compression type"}`},
		"empty":               {"gzip", "", 400, `{"error":"nothing to be decompressed"}`},
		"not compressed":      {"gzip", good, 400, incomplete},
		"one byte":            {"deflate", "x", 400, incomplete},
		"gzip, cut":           {"gzip", pack(t, "gzip", good)[:60], 400, incomplete},
		"zlib, cut":           {"deflate", pack(t, "deflate", good)[:60], 400, incomplete},
		"gzip, text behind":   {"gzip", pack(t, "gzip", good) + "more", 400, incomplete},
		"zlib, text behind":   {"deflate", pack(t, "deflate", good) + "x", 400, incomplete},
		"gzip in two parts":   {"gzip", pack(t, "gzip", good[:20]) + pack(t, "gzip", good[20:]), 200, ""},
		"gzip as deflate":     {"deflate", pack(t, "gzip", good), 200, ""},
		"zlib as gzip":        {"GZIP", pack(t, "deflate", good), 200, ""},
		"identity":            {"identity", good, 200, ""},
		"length beyond it":    {"gzip", pack(t, "gzip", good), 400, `{"error":"inference header size should be in range (0, ` + strconv.Itoa(len(good)) + `), got: 9999"}`},
		"an unknown model":    {"br", "x", 404, `{"error":"Request for unknown model: 'x' is not found"}`},
		"compressed nonsense": {"gzip", pack(t, "gzip", "{"), 500, failure},
	} {
		headers := []string{"Content-Encoding", tc.coding}
		path := inferPath
		switch name {
		case "length beyond it":
			headers = append(headers, "Inference-Header-Content-Length", "9999")
		case "an unknown model":
			path = "/v2/models/x/infer"
		}
		got := call(t, e, "POST", path, tc.body, headers...)
		if got.status != tc.status || !strings.HasPrefix(got.body, tc.want) {
			t.Errorf("%s: got %d %q, want %d %q", name, got.status, got.body, tc.status, tc.want)
		}
		wantAccept := ""
		if tc.status == 501 {
			wantAccept = "gzip, deflate"
		}
		if accept := got.header.Get("Accept-Encoding"); accept != wantAccept {
			t.Errorf("%s: Accept-Encoding is %q, want %q", name, accept, wantAccept)
		}
	}
}

// A short body that becomes a long one is refused while it is decompressed, by the limit on inputs
// or by the budget, whichever is less. Nothing stays charged.
func TestCompressionBombs(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	bomb := strings.Repeat(" ", 16<<20) // some 16 KB
	for _, tc := range []struct {
		name   string
		limit  int
		memory int64
		status int
		want   string
	}{
		{"limit on inputs", 1 << 20, 1 << 30, 400,
			`{"error":"Decompressed data size exceeds the maximum allowed value of 1048576 bytes. Use --http-max-input-size to increase the limit."}`},
		{"budget", 1 << 30, 8 << 20, 503, failure},
		{"neither", 1 << 30, 1 << 30, 500, `{"error":"failed to parse the request JSON buffer: The document is empty. at 16777216"}`},
	} {
		b := budget.New(tc.memory)
		limited := open(t, e, rest.Options{MaxInput: tc.limit, Memory: b})
		for _, coding := range []string{"gzip", "deflate"} {
			if got := call(t, limited, "POST", inferPath, pack(t, coding, bomb), "Content-Encoding", coding); got.status != tc.status || !strings.HasPrefix(got.body, tc.want) {
				t.Errorf("%s, %s: got %d %q, want %d %q", tc.name, coding, got.status, got.body, tc.status, tc.want)
			}
		}
		settled(t, b)
	}
}

// Compressed answers are charged until they are written, and refused where there is no room.
func TestCompressedAnswersAreBounded(t *testing.T) {
	t.Parallel()
	// The model's memory and the answer are 1 MiB each, the compressor counts 2 MiB, and as much as
	// all that must stay free. Zeros compress to almost nothing.
	for limit, want := range map[int64]int{7 << 20: 503, 10 << 20: 200} {
		b := budget.New(limit)
		e := large(t, 1<<20, b)
		for range 2 {
			got := call(t, e, "POST", inferPath, "x", "Inference-Header-Content-Length", "0", "Accept-Encoding", "gzip")
			if got.status != want {
				t.Errorf("of %d bytes: %d %.100s", limit, got.status, got.body)
			}
			settled(t, b)
		}
	}
}

// FuzzInflate checks that no compressed body makes the front end fail, and that a body which is
// packed again in both codings gives the same answer as without compression.
func FuzzInflate(f *testing.F) {
	good := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `]}`
	for _, coding := range []string{"gzip", "deflate"} {
		f.Add(pack(f, coding, good))
		f.Add(pack(f, coding, ""))
	}
	f.Add("\x1f\x8b\x08")
	f.Add("x\x9c")
	e := enginetest.Start(f, enginetest.Options{})
	f.Fuzz(func(t *testing.T, body string) {
		if got := call(t, e, "POST", inferPath, body, "Content-Encoding", "gzip"); got.status != 200 && !strings.HasPrefix(got.body, failure) {
			t.Errorf("got %d %q", got.status, got.body)
		}
		if body == "" {
			return
		}
		want := call(t, e, "POST", inferPath, body)
		for _, coding := range []string{"gzip", "deflate"} {
			got := call(t, e, "POST", inferPath, pack(t, coding, body), "Content-Encoding", coding)
			if got.status != want.status || got.body != want.body {
				t.Errorf("%s: got %d %q, want %d %q", coding, got.status, got.body, want.status, want.body)
			}
		}
	})
}
