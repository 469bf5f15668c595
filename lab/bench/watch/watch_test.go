package main

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"tuner/internal/live"
	"tuner/lab/program"
	"tuner/measure"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	check := func(args, want string) {
		t.Helper()
		args = "-tuner main.go -ort-library a.so " + args
		if _, err := program.Parse(define, strings.Fields(args), io.Discard); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	check("", "")
	check("-concurrency 0", "above 0")
	check("-turn 100s", "four turns")
}

// Each pair has a turn with the view and one without it, and as many pairs begin with either.
func TestOrder(t *testing.T) {
	t.Parallel()
	first := 0
	for i := 0; i < 400; i += 2 {
		if isDrawn(i) == isDrawn(i+1) {
			t.Fatalf("turns %d and %d are alike", i, i+1)
		}
		if isDrawn(i) {
			first++
		}
	}
	if first != 100 {
		t.Errorf("%d of 200 pairs begin with the view", first)
	}
}

// locked is a display as a screen is: one change at a time.
type locked struct {
	mu    sync.Mutex
	frame live.Frame
}

func (l *locked) Update(change func(*live.Frame)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.frame)
}

// A view that is held draws nothing until it is let go.
func TestHold(t *testing.T) {
	t.Parallel()
	shown := &locked{frame: frame(time.Now())}
	v := view{shown: shown}
	v.draw()
	v.hold()
	v.hold()
	if shown.mu.TryLock() {
		t.Error("a view that is held can be drawn")
	}
	v.draw()
	if !shown.mu.TryLock() {
		t.Fatal("a view that was let go cannot be drawn")
	}
	shown.mu.Unlock()
	v.measured(99)
	if n := len(shown.frame.Recent); n != kept || shown.frame.Recent[n-1].Text == "" || len(shown.frame.Chart.Points) != kept {
		t.Errorf("%d measurements in the list, %d in the chart", n, len(shown.frame.Chart.Points))
	}
}

// The view costs 1 % of the throughput and 2 % of a core here, and nothing of the latency.
func TestReport(t *testing.T) {
	t.Parallel()
	var turns []turn
	for i := range 40 {
		n, cpu := 1000+20*(i/2), 100*time.Millisecond
		if isDrawn(i) {
			n, cpu = n*99/100, 110*time.Millisecond
		}
		turns = append(turns, turn{isDrawn: isDrawn(i), cpu: cpu, window: measure.Window{
			Duration: 500 * time.Millisecond, Requests: n, Inferences: n,
			Sub: []measure.SubWindow{{Requests: n, Latency: measure.NewHistogram([]time.Duration{time.Millisecond})}},
		}})
	}
	text := report(options{turn: 500 * time.Millisecond, concurrency: 8}, turns)
	for _, want := range []string{"20 pairs of turns of 500ms at concurrency 8", "throughput ratio 0.98", "p99 ratio 1.0000 [1.0000, 1.0000] in 20 pairs", "+2.00 % of a core"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
