package hostinfo

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"tuner/internal/alloctest"
)

// A stat line with 123 ticks of user and 45 of system time. The command has spaces and parentheses
// in its name.
const stat = "77 (my (odd) cmd) S 1 77 77 0 -1 4194304 98 0 0 0 123 45 6 7 20 0 8 0 172817 3133440 382 184467440737095\n"

func TestParseProcess(t *testing.T) {
	t.Parallel()
	got, err := parseProcess(stat, "Name:\tmy\nVmHWM:\t    2224 kB\nVmRSS:\t    1024 kB\n")
	want := ProcessUsage{CPU: 1680 * time.Millisecond, RSS: 1024 << 10, PeakRSS: 2224 << 10} // (123+45) × 10 ms
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	// A zombie has no memory lines.
	if got, err := parseProcess(stat, "Name:\tmy\nState:\tZ (zombie)\n"); err != nil || got.RSS != 0 || got.CPU == 0 {
		t.Errorf("zombie: %+v, %v", got, err)
	}
	for _, bad := range [][2]string{
		{"", ""}, {"77 (x", ""}, {"77 (x) S 1 2", ""},
		{strings.Replace(stat, "123", "-1", 1), ""},
		{stat, "VmRSS:\t1024 MB\n"},
	} {
		if got, err := parseProcess(bad[0], bad[1]); err == nil {
			t.Errorf("%q, %q: %+v, no error", bad[0], bad[1], got)
		}
	}
}

func TestParseCPUTimes(t *testing.T) {
	t.Parallel()
	got, err := parseCPUTimes("cpu  100 20 30 400 5 6 7 8 50 0\ncpu0 1 2 3 4\n")
	// busy 100+20+30+6+7 = 163 ticks, idle 400+5 = 405, steal 8
	if want := (CPUSnapshot{163, 405, 8, 13}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	// A tick is 10 ms.
	want := CPUUsage{Busy: 630 * time.Millisecond, Idle: 50 * time.Millisecond, Steal: 80 * time.Millisecond, Interrupts: 100 * time.Millisecond}
	if usage := got.Since(CPUSnapshot{100, 400, 0, 3}); usage != want {
		t.Errorf("usage %+v, want %+v", usage, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"} {
		if got, err := parseCPUTimes(bad); err == nil {
			t.Errorf("%q: %+v, no error", bad, got)
		}
	}
}

func FuzzParseProcess(f *testing.F) {
	f.Add(stat, "VmHWM: 5 kB\nVmRSS: 4 kB\n")
	f.Add("1 (a) S", "VmRSS: kB")
	f.Add(")", ":")
	f.Fuzz(func(t *testing.T, stat, status string) {
		usage, err := parseProcess(stat, status)
		if err != nil {
			return
		}
		if usage.CPU < 0 || usage.RSS < 0 || usage.PeakRSS < 0 {
			t.Errorf("%+v", usage)
		}
		printed := fmt.Sprintf("VmRSS:\t%d kB\nVmHWM:\t%d kB\n", usage.RSS>>10, usage.PeakRSS>>10)
		if again, err := parseProcess(stat, printed); err != nil || again != usage {
			t.Errorf("%+v reads back as %+v, %v", usage, again, err)
		}
	})
}

func FuzzParseCPUTimes(f *testing.F) {
	f.Add("cpu  100 20 30 400 5 6 7 8 50 0\n")
	f.Add("cpu 9223372036854775807 1 1 1 1 1 1 1")
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		snapshot, err := parseCPUTimes(text)
		if err != nil {
			return
		}
		const limit = 1 << 48 // limit of one field; a larger sum does not fit into one
		if snapshot.busy >= limit || snapshot.idle >= limit {
			return
		}
		printed := fmt.Sprintf("cpu %d 0 0 %d 0 %d 0 %d\n", snapshot.busy-snapshot.interrupts, snapshot.idle, snapshot.interrupts, snapshot.steal)
		if again, err := parseCPUTimes(printed); err != nil || again != snapshot {
			t.Errorf("%+v reads back as %+v, %v", snapshot, again, err)
		}
	})
}

// For this process, touched memory raises the peak, and a reset lowers the peak to the memory held.
func TestOwnProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	pid := os.Getpid()
	before, err := Process(pid)
	if err != nil {
		t.Fatal(err)
	}
	if before.RSS <= 0 || before.PeakRSS < before.RSS/2 {
		t.Errorf("%+v", before)
	}
	if err := ResetPeak(pid); err != nil {
		t.Skipf("this system forbids it: %v", err)
	}
	after, err := Process(pid)
	if err != nil {
		t.Fatal(err)
	}
	if after.CPU < before.CPU {
		t.Errorf("CPU time fell from %v to %v", before.CPU, after.CPU)
	}
	if _, err := CPUTimes(); err != nil {
		t.Error(err)
	}
	if _, err := Process(1 << 30); err == nil {
		t.Error("no such process: no error")
	}
}

func TestUsedCPU(t *testing.T) {
	t.Parallel()
	before, err := OwnCPU()
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now == before; { // this takes CPU time
		if now, err = OwnCPU(); err != nil {
			t.Fatal(err)
		}
	}
	before, err = ChildrenCPU()
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	if after, err := ChildrenCPU(); err != nil || after <= before {
		t.Errorf("a child that has ended took nothing: %v, then %v, %v", before, after, err)
	}
}
