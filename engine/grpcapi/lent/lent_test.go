package lent_test

import (
	"bytes"
	"runtime"
	"testing"

	"google.golang.org/grpc/mem"

	"tuner/engine/buffers"
	"tuner/engine/grpcapi/lent"
)

// outputs returns outputs that differ.
func outputs(sizes ...int) (out [][]byte) {
	for i, n := range sizes {
		out = append(out, bytes.Repeat([]byte{byte('a' + i)}, n))
	}
	return out
}

// text returns a text in a buffer of a pool, which has the size of large texts, or in one of Go's.
func text(size int) mem.Buffer {
	pool := &buffers.Pool{}
	b := pool.Get(size)
	for i := range *b {
		(*b)[i] = byte(i)
	}
	return mem.NewBuffer(b, pool)
}

// The outputs stand at their places, and the text is whole around them.
func TestJoin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  int
		at    []int
		sizes []int
	}{
		"one at the end":       {100, []int{100}, []int{lent.Least}},
		"one inside":           {100, []int{40}, []int{lent.Least + 1}},
		"several, large text":  {5000, []int{10, 10, 4000}, []int{lent.Least, lent.Least + 5, 1 << 20}},
		"the last ends a text": {5000, []int{1, 5000}, []int{lent.Least, lent.Least}},
	} {
		whole := text(c.text)
		var want []byte
		from := 0
		for k, out := range outputs(c.sizes...) {
			want = append(append(want, whole.ReadOnlyData()[from:c.at[k]]...), out...)
			from = c.at[k]
		}
		want = append(want, whole.ReadOnlyData()[from:]...)
		freed := 0
		joined := lent.Join(whole, c.at, outputs(c.sizes...), func() { freed++ })
		if !bytes.Equal(joined.Materialize(), want) {
			t.Errorf("%s: another text", name)
		}
		joined.Ref() // as gRPC keeps them while it writes
		joined.Free()
		if freed != 0 {
			t.Errorf("%s: freed %d times while a reference is left", name, freed)
		}
		if joined.Free(); freed != 1 {
			t.Errorf("%s: freed %d times, want once", name, freed)
		}
	}
}

// Outputs are freed once the last of them is, whatever the order.
func TestLastFrees(t *testing.T) {
	t.Parallel()
	freed := 0
	joined := lent.Join(text(50), []int{10, 20}, outputs(lent.Least, lent.Least), func() { freed++ })
	for i := len(joined) - 1; i > 1; i-- {
		joined[i].Free()
	}
	if freed != 0 {
		t.Error("freed while an output is left")
	}
	joined[1].Free()
	if joined[0].Free(); freed != 1 {
		t.Errorf("freed %d times, want once", freed)
	}
}

// What gRPC drops without freeing it, as the answers of a connection that ends, is freed as well.
func TestDropped(t *testing.T) {
	t.Parallel()
	freed := make(chan struct{})
	joined := lent.Join(text(50), []int{10, 20}, outputs(lent.Least, lent.Least), func() { close(freed) })
	joined[1].Free() // the first output was written
	runtime.KeepAlive(joined)
	for {
		select {
		case <-freed:
			return
		default:
			runtime.GC()
		}
	}
}

// What a lent output costs, beside the copy of the smallest one.
func BenchmarkJoin(b *testing.B) {
	out := outputs(lent.Least)
	b.Run("lent", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			lent.Join(mem.SliceBuffer("text"), []int{4}, [][]byte{out[0]}, func() {}).Free()
		}
	})
	b.Run("copied", func(b *testing.B) {
		pool := &buffers.Pool{}
		for range b.N {
			to := pool.Get(lent.Least)
			copy(*to, out[0])
			pool.Put(to)
		}
	})
}
