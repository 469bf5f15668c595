package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tuner/lab/process"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx"
)

// A run reads the notes of the previous one.
func TestNotes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "notes.jsonl")
	for n := range 3 {
		notes, earlier, err := openNotes[outcome](path)
		if err != nil || len(earlier) != n {
			t.Fatalf("%d notes, %v; want %d", len(earlier), err, n)
		}
		if err := notes.add(outcome{"mlp", line{Number: n, Verdict: refused}}); err != nil {
			t.Fatal(err)
		}
		if err := notes.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A child without further messages died from the mutation that it began.
func TestFollow(t *testing.T) {
	t.Parallel()
	notes, _, err := openNotes[outcome](filepath.Join(t.TempDir(), "notes"))
	if err != nil {
		t.Fatal(err)
	}
	d := damaging{name: "mlp", done: map[int]outcome{}, notes: notes}
	said := `{"Number":4,"What":"cut"}` + "\n" + fmt.Sprintf(`{"Number":4,"Verdict":%q}`, refused) + "\n" + `{"Number":5,"What":"bit"}` + "\n"
	begun, err := d.follow(bytes.NewBufferString(said), func() {})
	if err != nil || begun == nil || begun.Number != 5 || begun.What != "bit" {
		t.Errorf("begun %+v, %v", begun, err)
	}
	if got := d.done[4]; got.Verdict != refused || got.What != "cut" {
		t.Errorf("done %+v", got)
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	number := func(v float32) []byte { return onnx.AppendFloat(nil, onnx.Float, float64(v)) }
	nan := number(float32(math.NaN()))
	for _, c := range []struct {
		t    configpb.DataType
		a, b []byte
		want bool
	}{
		{configpb.DataType_TYPE_FP32, number(1), number(1.00001), true}, {configpb.DataType_TYPE_FP32, number(1), number(1.1), false},
		{configpb.DataType_TYPE_FP32, nan, nan, true}, {configpb.DataType_TYPE_FP32, nan, number(1), false},
		{configpb.DataType_TYPE_INT32, []byte{1, 0, 0, 0}, []byte{2, 0, 0, 0}, false}, {configpb.DataType_TYPE_INT32, []byte{1}, []byte{1, 2}, false},
	} {
		if got := near(c.t, c.a, c.b); got != c.want {
			t.Errorf("%v %v %v: %v", c.t, c.a, c.b, got)
		}
	}
}

// Temporary and hidden files are found. The lock of a journal and regular files are not.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	c := campaign{dir: t.TempDir()}
	for name, isLeft := range map[string]bool{"tmp/tuner-try-1": true, "out/.journal.jsonl.12": true, "out/.lock": false, "out/repository/m/.tuner.json": false, "out/journal.jsonl": false, "cache/.new-1": true} {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if found := slices.Contains(c.leftovers(), "left: "+name); found != isLeft {
			t.Errorf("%s: found %v, want %v", name, found, isLeft)
		}
	}
}

// The mark in its environment identifies a process.
func TestMarked(t *testing.T) {
	t.Parallel()
	c := campaign{dir: t.TempDir(), mark: fmt.Sprintf("TUNER_FAULTS=test.%d", os.Getpid()), o: options{tuner: "/bin/sleep"}}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := c.command(ctx, &tail{}, "60")
	if err := cmd.Start(); err != nil {
		t.Skipf("no program to start: %v", err)
	}
	if left := process.Marked(c.mark); len(left) != 1 {
		t.Errorf("processes %v, want one", left)
	}
	cancel()
	_ = cmd.Wait() // it was killed
	if left := process.Marked(c.mark); len(left) != 0 {
		t.Errorf("processes %v, want none", left)
	}
}
