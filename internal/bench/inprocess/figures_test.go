package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/ort"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	begin := time.Unix(0, 0)
	before := state{at: begin, inferences: 100, executions: 10, inRun: time.Second, cpu: time.Second, mallocs: 1000}
	after := state{at: begin.Add(2 * time.Second), inferences: 500, executions: 60, inRun: 4 * time.Second, cpu: 3 * time.Second, mallocs: 2200}
	// 400 rows in 2 s and 50 executions; 3 s inside Run of 2 instances × 2 s; 2 s of CPU and 1200 allocations for 400 rows.
	got := after.since(before, 2)
	want := engineFigures{throughput: 200, batch: 8, inRun: 0.75, cpu: 5 * time.Millisecond, mallocs: 3}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f := figures{raw: 250, engine: got}
	line := "BenchmarkX 1 250.0 raw-infer/s 200.0 engine-infer/s 0.8000 engine/raw 0.7500 in-run 8.00 rows/batch 5000000 cpu-ns/request 3.00 allocs/request"
	if d := cmp.Diff(line, f.line("X")); d != "" {
		t.Errorf("line (-want +got):\n%s", d)
	}
	better := figures{raw: 200, engine: engineFigures{throughput: 180, inRun: 0.85}}
	// The median of 0.8 and 0.9 is 0.85, that of the shares 0.75 and 0.85 is 0.8.
	if got, want := summary("X", []figures{better, f}), "X: engine / raw 0.850 ["; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "], inside Run 0.800 of the time") {
		t.Errorf("summary: got %q, want %q …, inside Run 0.800 of the time", got, want)
	}
}

func TestOnes(t *testing.T) {
	t.Parallel()
	info := ort.TensorInfo{Name: "ids", Type: ort.Int64, Shape: []int64{-1, -1, 2}}
	if d := cmp.Diff([]int64{3, 32, 2}, shape(info, 3)); d != "" {
		t.Errorf("shape (-want +got):\n%s", d)
	}
	data, err := ones(info, 3)
	if err != nil || len(data) != 3*32*2*8 || data[0] != 1 || data[1] != 0 || data[8] != 1 {
		t.Errorf("ones: %d bytes, %v", len(data), err)
	}
	if _, err := ones(ort.TensorInfo{Name: "text", Type: ort.String, Shape: []int64{-1}}, 1); err == nil {
		t.Error("strings: no error")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-rounds", "0"}, {"-window", "0s"}, {"more"}} {
		if _, err := parse(args, t.Output()); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
