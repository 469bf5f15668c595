package ort

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"tuner/ort/sessionoption"
)

func testPlan(t testing.TB, s *Session, outputs ...string) *Plan {
	t.Helper()
	p, err := s.NewPlan(outputs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Runs of different sizes use the same plan. The outputs of a run stay valid during the next one,
// and after the plan's end.
func TestPlan(t *testing.T) {
	s := testSession(t, "add_sub", SessionOptions{})
	p := testPlan(t, s, "diff", "sum")
	var all [][]Tensor
	for rows := range 4 {
		var xs, ys [][]byte
		for row := range rows {
			xs = append(xs, floats(float32(row), 2, 3, 4))
			ys = append(ys, floats(1, 1, 1, 1))
		}
		shape := []int64{int64(rows), 4}
		if err := errors.Join(p.Gather(0, shape, xs), p.Gather(1, shape, ys)); err != nil {
			t.Fatal(err)
		}
		outputs, err := p.Run()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, outputs)
	}
	p.Close()
	for rows, outputs := range all {
		var diff, sum []byte
		for row := range rows {
			diff = append(diff, floats(float32(row)-1, 1, 2, 3)...)
			sum = append(sum, floats(float32(row)+1, 3, 4, 5)...)
		}
		got := [][]byte{outputs[0].Bytes(), outputs[1].Bytes()}
		if d := cmp.Diff([][]byte{diff, sum}, got); d != "" {
			t.Errorf("%d rows (-want +got):\n%s", rows, d)
		}
		if d := cmp.Diff([]int64{int64(rows), 4}, outputs[0].Shape()); d != "" {
			t.Errorf("shape of %d rows (-want +got):\n%s", rows, d)
		}
		for i := range outputs {
			outputs[i].Close()
			outputs[i].Close() // twice is safe
		}
	}
}

// Large data is used in place if its address suits the element type, and copied otherwise. The
// result is the same.
func TestPlanInPlace(t *testing.T) {
	s := testSession(t, "add_sub", SessionOptions{})
	p := testPlan(t, s, "sum")
	const rows = inPlaceBytes / 16
	memory := make([]byte, rows*16+4)
	for shift := range 2 {
		data := memory[shift : shift+rows*16]
		copy(data, strings.Repeat(string(floats(1, 2, 3, 4)), rows))
		shape := []int64{rows, 4}
		if err := errors.Join(p.Gather(0, shape, [][]byte{data}), p.Gather(1, shape, [][]byte{data})); err != nil {
			t.Fatal(err)
		}
		inPlace := unsafe.Pointer(p.inputs()[0].data) == unsafe.Pointer(&data[0])
		if inPlace != (shift == 0) {
			t.Errorf("shifted by %d: used in place: %t", shift, inPlace)
		}
		outputs, err := p.Run()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]byte(strings.Repeat(string(floats(2, 4, 6, 8)), rows)), outputs[0].Bytes()); d != "" {
			t.Errorf("shifted by %d (-want +got):\n%s", shift, d)
		}
		outputs[0].Close()
	}
}

// An output that is an input keeps its data when the next batch is gathered, and after the plan's
// end.
func TestPlanPassesInputOn(t *testing.T) {
	s := testSession(t, "passed", SessionOptions{})
	p := testPlan(t, s, "x", "y")
	var all [][]Tensor
	for _, first := range []float32{1, 5} {
		if err := p.Gather(0, []int64{1, 4}, [][]byte{floats(first, 2, 3, 4)}); err != nil {
			t.Fatal(err)
		}
		outputs, err := p.Run()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, outputs)
	}
	p.Close()
	for i, first := range []float32{1, 5} {
		want := [][]byte{floats(first, 2, 3, 4), floats(-first, -2, -3, -4)}
		if d := cmp.Diff(want, [][]byte{all[i][0].Bytes(), all[i][1].Bytes()}); d != "" {
			t.Errorf("run %d (-want +got):\n%s", i, d)
		}
		all[i][0].Close()
		all[i][1].Close()
	}
}

func TestPlanErrors(t *testing.T) {
	s := testSession(t, "add_sub", SessionOptions{})
	if _, err := s.NewPlan([]string{"nope"}); err == nil || !strings.Contains(err.Error(), `no output "nope"`) {
		t.Errorf("unknown output: %v", err)
	}
	if _, err := s.NewPlan(nil); err == nil {
		t.Error("no outputs: no error")
	}
	p := testPlan(t, s, "sum")
	shape, data := []int64{1, 4}, [][]byte{floats(1, 2, 3, 4)}
	if err := p.Gather(0, shape, [][]byte{floats(1)}); err == nil || !strings.Contains(err.Error(), "takes 16 bytes, found 4") {
		t.Errorf("too little data: %v", err)
	}
	if err := p.Gather(0, shape, data); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(); err == nil || !strings.Contains(err.Error(), "has no data") {
		t.Errorf("one input alone: %v", err)
	}
	// A run that ONNX Runtime refuses leaves the plan usable.
	wrong := []int64{1, 2, 2}
	if err := errors.Join(p.Gather(0, wrong, data), p.Gather(1, wrong, data)); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if _, err := p.Run(); !errors.As(err, &refused) {
		t.Errorf("wrong rank: got %v, want an *Error", err)
	}
	if err := errors.Join(p.Gather(0, shape, data), p.Gather(1, shape, data)); err != nil {
		t.Fatal(err)
	}
	outputs, err := p.Run()
	if err != nil {
		t.Fatal(err)
	}
	outputs[0].Close()
	p.Close()
	if _, err := p.Run(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: got %v, want ErrClosed", err)
	}
}

// BenchmarkPlan measures the cost of a planned run beside the computing. It does not depend on how
// many requests share the batch.
func BenchmarkPlan(b *testing.B) {
	s := testSession(b, "add_sub", SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}})
	p := testPlan(b, s, "sum", "diff")
	for _, parts := range []int{1, 16} {
		b.Run(fmt.Sprintf("requests=%d", parts), func(b *testing.B) {
			shape := []int64{int64(parts), 4}
			var data [][]byte
			for range parts {
				data = append(data, floats(1, 2, 3, 4))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(p.Gather(0, shape, data), p.Gather(1, shape, data)); err != nil {
					b.Fatal(err)
				}
				outputs, err := p.Run()
				if err != nil {
					b.Fatal(err)
				}
				outputs[0].Close()
				outputs[1].Close()
			}
		})
	}
}
