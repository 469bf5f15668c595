package compression

import (
	"bytes"
	"io"
	"testing"

	"google.golang.org/grpc/encoding"

	"tuner/engine/budget"
	"tuner/internal/alloctest"
)

// FuzzDecompress reads a compressed message as gRPC does. For any bytes, no more is decompressed
// than there is room for, and all charged bytes are given back. Bytes that the compressor has
// written are read as the same bytes.
func FuzzDecompress(f *testing.F) {
	const room = 1 << 20
	names := []string{"gzip", deflateName}
	for i, name := range names {
		var out bytes.Buffer
		w, err := encoding.GetCompressor(name).Compress(&out)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 8*room)); err != nil { // a decompression bomb
			f.Fatal(err)
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(i == 0, out.Bytes())
		f.Add(i == 0, out.Bytes()[:out.Len()/2])
	}
	f.Fuzz(func(t *testing.T, isGzip bool, message []byte) {
		defer alloctest.Bound(t, len(message))()
		name := names[1]
		if isGzip {
			name = names[0]
		}
		b := budget.New(room)
		account := b.Open(func() {})
		defer account.Close()
		read := func(message []byte) ([]byte, error) {
			r, err := encoding.GetCompressor(name).Decompress(bytes.NewReader(message))
			if err != nil {
				return nil, err
			}
			charged := r.(*chargedReader)
			charged.account = account
			text, err := io.ReadAll(charged)
			if closing := charged.Close(); err == nil {
				err = closing
			}
			return text, err
		}
		if text, err := read(message); len(text) > room+bytes.MinRead<<10 {
			t.Errorf("%d bytes become %d, %v", len(message), len(text), err)
		}
		var out bytes.Buffer
		w, err := encoding.GetCompressor(name).Compress(&out)
		if err == nil {
			_, err = w.Write(message)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if again, err := read(out.Bytes()); len(message) < room && (err != nil || !bytes.Equal(again, message)) {
			t.Errorf("%d bytes are read again as %d, %v", len(message), len(again), err)
		}
		if used := b.Used(); used != 0 {
			t.Errorf("%d bytes are still charged", used)
		}
	})
}
