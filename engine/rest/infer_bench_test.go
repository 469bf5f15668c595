package rest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"tuner/engine/enginetest"
)

// BenchmarkInfer sends small requests over one connection. The client allocates nothing, so the
// figures are the engine's, with a backend that computes nothing.
func BenchmarkInfer(b *testing.B) {
	e := enginetest.Start(b, enginetest.Options{})
	json := `{"inputs":[` + one("INPUT0", counted) + `,` + one("INPUT1", counted) + `]}`
	head := strings.ReplaceAll(json, `"data":`+counted, `"parameters":{"binary_data_size":64}`)
	head = head[:len(head)-1] + `,"parameters":{"binary_data_output":true}}`
	for name, request := range map[string]string{
		"json":   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(json), json),
		"binary": fmt.Sprintf("Inference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n%s", len(head), len(head)+128, head+string(make([]byte, 128))),
	} {
		b.Run(name, func(b *testing.B) {
			conn, err := net.Dial("tcp", e.Addresses.HTTP)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = conn.Close() }() // everything has been read
			r := bufio.NewReader(conn)
			text := []byte("POST " + inferPath + " HTTP/1.1\r\nHost: localhost\r\n" + request)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.Write(text); err != nil {
					b.Fatal(err)
				}
				if err := skipAnswer(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// skipAnswer reads an answer of status 200.
func skipAnswer(r *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch line = bytes.TrimSpace(line); {
		case first && !bytes.Contains(line, []byte(" 200 ")):
			return fmt.Errorf("got %q", line)
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			for _, c := range line[len("Content-Length: "):] {
				length = length*10 + int(c-'0')
			}
		case len(line) == 0:
			_, err := io.CopyN(io.Discard, r, int64(length))
			return err
		}
	}
}
