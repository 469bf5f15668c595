package sidebyside

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/hostinfo"
	"tuner/internal/programtest"
	"tuner/lab/program"
)

func TestParts(t *testing.T) {
	t.Parallel()
	cold := errors.New("cold")
	parts := Parts[*strings.Builder]{
		{"first", func(b *strings.Builder, _ context.Context) error { b.WriteString("1"); return cold }},
		{"second", func(b *strings.Builder, _ context.Context) error { b.WriteString("2"); return nil }},
	}
	if diff := cmp.Diff([]string{"first", "second", "all"}, parts.Names()); diff != "" {
		t.Error(diff)
	}
	define := func(f *program.Flags, what *string) { parts.Define(f, what) }
	if what, err := program.Parse(define, []string{"-what", "second"}, io.Discard); err != nil || what != "second" {
		t.Errorf("%q, %v", what, err)
	}
	if _, err := program.Parse(define, []string{"-what", "third"}, io.Discard); err == nil || err.Error() != `-what "third": allowed are first, second, all` {
		t.Errorf("a part that there is not: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx       context.Context
		name, ran string
		want      error
	}{
		{t.Context(), All, "12", cold},
		{t.Context(), "second", "2", nil},
		{ended, All, "", nil},
	} {
		var ran, told strings.Builder
		err := parts.Run(c.ctx, c.name, &ran, &told)
		if !errors.Is(err, c.want) || ran.String() != c.ran || strings.Count(told.String(), " took ") != len(c.ran) {
			t.Errorf("%s: ran %q, told %q, %v; want %q, %v", c.name, &ran, &told, err, c.ran, c.want)
		}
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx             context.Context
		failures, tried int
	}{{t.Context(), 0, 1}, {t.Context(), 2, 3}, {t.Context(), 3, 3}, {ended, 1, 1}} {
		tried := 0
		_, err := Retry(c.ctx, io.Discard, "it", func() (int, error) {
			if tried++; tried <= c.failures {
				return 0, errors.New("busy")
			}
			return tried, nil
		})
		if tried != c.tried || (err != nil) != (c.tried == c.failures) {
			t.Errorf("%d failures: tried %d times, %v; want %d times", c.failures, tried, err, c.tried)
		}
	}
}

func TestCreateRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{"": os.DevNull, filepath.Join(dir, "record"): filepath.Join(dir, "record")} {
		f, err := CreateRecord(path)
		if err != nil || f.Name() != want || f.Close() != nil {
			t.Errorf("%q: %v, %v", path, f, err)
		}
	}
	if _, err := CreateRecord(filepath.Join(dir, "nowhere", "record")); err == nil {
		t.Error("created in a folder that is not there")
	}
}

// analyzer is a perf_analyzer that writes its input as the report, and its arguments into a file.
const analyzer = `#!/bin/sh
dir="${0%/*}"
echo "$@" > "$dir/args"
while [ "$1" != -f ]; do shift; done
cp "$dir/report" "$2"
`

func TestMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := programtest.Write(t, filepath.Join(dir, "analyzer"), analyzer)
	a := Analyzer{Name: "it", Command: []string{program, "perf"}, Work: t.TempDir()}
	d := Demand{Model: "m", Protocol: GRPC, Address: "here:1", Window: 1500 * time.Millisecond, Args: []string{"--concurrency-range", "2"}}
	if _, err := Measure(t.Context(), a, d, io.ReadAll); err == nil || !strings.Contains(err.Error(), "it failed: exit status 1") {
		t.Errorf("without a report: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report"), []byte("figures"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Measure(t.Context(), a, d, io.ReadAll); err != nil || string(got) != "figures" {
		t.Errorf("%q, %v", got, err)
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	want := "perf -m m -i grpc -u here:1 --input-data zero -f " + a.Work + "/report.csv --verbose-csv -p 1500 -s 100000 -r 3 --concurrency-range 2\n"
	if err != nil || string(args) != want {
		t.Errorf("arguments %q, want %q (%v)", args, want, err)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	second := time.Second
	// In a window of 1 s others took half of the time of all processors, 0.1 of it through the
	// hypervisor.
	all := time.Duration(hostinfo.Read(t.Context()).CPU.Logical) * second
	if got := Foreign(hostinfo.CPUUsage{Busy: all * 6 / 10, Steal: all / 10}, all*2/10, second); got < 0.499 || got > 0.501 {
		t.Errorf("%v, want 0.5", got)
	}
	if got := Foreign(hostinfo.CPUUsage{}, second, second); got != 0 {
		t.Errorf("%v of a clock that did not move", got)
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	if line := Machine(t.Context()); !strings.HasPrefix(line, "Machine: ") || strings.ContainsAny(line, "!\n") {
		t.Errorf("%q", line)
	}
}
