package sharedmemory_test

import (
	"fmt"
	"testing"

	"tuner/engine/enginetest"
	"tuner/engine/sharedmemory"
)

// BenchmarkCopies takes a tensor out of a region and puts one into it, and compares both with the
// file's read and write.
func BenchmarkCopies(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 10 << 20} {
		key, file := enginetest.SharedFile(b, numbered(size))
		r := newRegions(b)
		register(b, r, "r", key, 0, uint64(size))
		data := numbered(size)
		asked, given := outputs(data)
		var l sharedmemory.Loan
		for name, run := range map[string]func() error{
			"input": func() error {
				_, err := l.Input(r, nil, []byte("r"), 0, uint64(size))
				return err
			},
			"output": func() error {
				if err := l.Output(r, "o", []byte("r"), 0, uint64(size)); err != nil {
					return err
				}
				return l.Deliver(asked, given)
			},
			"read":  func() error { _, err := file.ReadAt(data, 0); return err },
			"write": func() error { _, err := file.WriteAt(data, 0); return err },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := run(); err != nil {
						b.Fatal(err)
					}
					l.Return()
				}
			})
		}
	}
}
