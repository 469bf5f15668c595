package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tuner/internal/golden"
)

// at is the instant of the frames: 28 s after their beginning.
var at = time.Date(2026, 11, 27, 2, 0, 28, 0, time.UTC)

// sample is a frame in the middle of a campaign.
func sample() Frame {
	f := Frame{
		Title: "cnn within p99 ≤ 30 ms", Began: at.Add(-28 * time.Second), Ends: at.Add(33 * time.Second), IsGood: true,
		Answer: []string{
			"Best so far: 2 instances × 1 thread, batch 32 at concurrency 74: 45531.7 infer/s [36247.8, 57193.3], p99 6.61 ms [4.57, 9.55]; p99 ≤ 30 ms kept: >99 %; 1.89 × the default's throughput [1.42, 2.52].",
		},
		Now:   "searching: 2 instances × 1 thread, batch 32, delay 100 µs · concurrency 74",
		Noise: Noise{IsKnown: true, Steal: 0.002, Others: 0.013, Drift: -0.004, History: []float64{0, 0.1, 0.5, 0.7, 0.02}},
		Keys:  []Key{{Rune: 's', Text: "stop and keep"}, {Rune: '+', Text: "two minutes more"}},
		Chart: Chart{
			X: Axis{"throughput", "infer/s", func(x float64) string { return fmt.Sprintf("%.0f infer/s", x) }},
			Y: Axis{"p99", "s", func(x float64) string { return fmt.Sprintf("%.0f ms", 1000*x) }}, Limit: 0.030,
			Points: []Point{
				{X: 20000, Y: 0.080}, {X: 20000, Y: 0.030, IsKept: true}, {X: 45531, Y: 0.0066, IsKept: true, IsBest: true},
				{X: 100, Y: 0.002, IsKept: true},
			},
		},
	}
	for i := range 30 {
		f.Recent = append(f.Recent, Entry{Head: fmt.Sprintf("%4d  %6s  ", i+1, fmt.Sprint(i, "s")), Text: "2 instances × 2 threads, batch 16 · concurrency 64",
			Outcome: "23498.1 infer/s, p99 27.7 ms"})
	}
	f.Recent[29].Outcome, f.Recent[29].IsBad = "× "+f.Recent[29].Outcome, true
	return f
}

func textOf(f Frame, size Size, isASCII, hasColors bool) string {
	var b strings.Builder
	for _, l := range f.Lines(size, at, isASCII) {
		fmt.Fprintln(&b, l.Text(hasColors))
	}
	return b.String()
}

// The frame fits terminals of the usual sizes.
func TestFrames(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]Size{"60x20": {60, 20}, "80x24": {80, 24}, "140x40": {140, 40}} {
		golden.Check(t, "testdata/"+name+".txt", textOf(sample(), size, false, false))
	}
	spoilt := sample()
	spoilt.Noise.Spoilt = []string{"other processes used more than 10 % of the CPU time"}
	spoilt.Note = "The budget of this run is now 3m0s."
	golden.Check(t, "testdata/spoilt.txt", textOf(spoilt, Size{80, 24}, false, false))
	golden.Check(t, "testdata/ascii.txt", textOf(spoilt, Size{80, 24}, true, false))
	golden.Check(t, "testdata/first.txt", textOf(Frame{Title: "cnn", Answer: []string{"No configuration was measured yet."}, Now: "starting",
		Began: at, Keys: sample().Keys}, Size{80, 24}, false, false))
}

// No frame is larger than its terminal, and an ASCII one has ASCII alone, whatever its texts.
func TestFramesFit(t *testing.T) {
	t.Parallel()
	hostile := sample()
	hostile.Title = strings.Repeat("模型", 100)
	hostile.Now = "a\x1b[2J\u202eb"
	hostile.Recent[3].Text, hostile.Recent[29].Outcome = "模型模型", strings.Repeat("x", 500)
	hostile.Note = strings.Repeat("é", 300)
	hostile.Chart.Points = append(hostile.Chart.Points, Point{}, Point{X: 1e12, Y: 1e12})
	for _, f := range []Frame{{}, sample(), hostile} {
		for _, columns := range []int{1, 20, 39, 40, 60, 61, 80, 141, 500} {
			for _, rows := range []int{1, 5, 8, 9, 12, 20, 24, 50, 200} {
				for _, isASCII := range []bool{false, true} {
					lines := f.Lines(Size{columns, rows}, at, isASCII)
					if len(lines) > rows {
						t.Errorf("%d × %d: %d lines", columns, rows, len(lines))
					}
					for _, l := range lines {
						text := l.Text(false)
						if width(text) > columns || strings.ContainsAny(text, "\x1b\u202e\n") {
							t.Errorf("%d × %d: a line of %d columns: %q", columns, rows, width(text), text)
						}
						if isASCII && strings.ContainsFunc(text, func(c rune) bool { return c > '~' || c < ' ' }) {
							t.Errorf("%d × %d: not ASCII: %q", columns, rows, text)
						}
					}
				}
			}
		}
	}
}

// The meter is red while figures are spoilt, and only then; without colours nothing has any.
func TestNoiseTurnsRed(t *testing.T) {
	t.Parallel()
	const red = "\x1b[1;31msteal 0.2 %"
	f := sample()
	if text := textOf(f, Size{80, 24}, false, true); strings.Contains(text, red) || !strings.Contains(text, "\x1b[32mBest so far") {
		t.Errorf("on a quiet machine:\n%q", text)
	}
	f.Noise.Spoilt = []string{"the hypervisor took more than 1 % of the CPU time"}
	if text := textOf(f, Size{80, 24}, false, true); !strings.Contains(text, red) || !strings.Contains(text, "▲ the hypervisor took") {
		t.Errorf("on a noisy machine:\n%q", text)
	}
	if text := textOf(f, Size{80, 24}, false, false); strings.Contains(text, "\x1b") {
		t.Errorf("without colours:\n%q", text)
	}
}

// A redrawing writes changed lines alone, and nothing where nothing changed.
func TestChanges(t *testing.T) {
	t.Parallel()
	check := func(before, now []string, want string) {
		t.Helper()
		if got := changes(before, now); got != want {
			t.Errorf("%q → %q: %q, want %q", before, now, got, want)
		}
	}
	check(nil, []string{"a", "b"}, "\x1b[1;1Ha\x1b[K\x1b[2;1Hb\x1b[K\x1b[3;1H\x1b[J")
	check([]string{"a", "b"}, []string{"a", "b"}, "")
	check([]string{"a", "b"}, []string{"a", "c"}, "\x1b[2;1Hc\x1b[K")
	check([]string{"a", "b"}, []string{"a"}, "\x1b[2;1H\x1b[J")
}
