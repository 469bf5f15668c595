package journal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkDecode reads journals of 10,000 records of 4 kB each, with checksums, and without them
// as earlier versions wrote.
func BenchmarkDecode(b *testing.B) {
	lines := strings.SplitAfter(unsealed(b), "\n")
	old := []byte(lines[0])
	for i := range 10_000 {
		old = fmt.Appendf(old, `{"seq":%d,"at":"2026-11-20T20:00:00Z","kind":"trial","data":{"x":%q}}`+"\n", i+2, strings.Repeat("HISTFAAAAHF4AQFmAJn/", 200))
	}
	for name, text := range map[string][]byte{"sealed": Reseal(bytes.Replace(old, []byte(`"format":1`), []byte(`"format":2`), 1)), "unsealed": old} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode("journal.jsonl", text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
