package measure

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// loopsAt returns the windows of closed loops on a machine whose speed is an Ornstein-Uhlenbeck process. Each loop
// has three windows of ten sub-windows of 0.1 s.
func loopsAt(speed Speed, noise float64, loops int, flags ...Flag) [][]Window {
	r := rand.New(rand.NewPCG(5, 6))
	const step = 0.1
	var list [][]Window
	at := time.Duration(0)
	for range loops {
		x := speed.Deviation * r.NormFloat64()
		var windows []Window
		for range 3 {
			w := Window{Start: at, Duration: time.Second, Flags: flags}
			for range 10 {
				mean := 0.02 * math.Exp(x+noise*r.NormFloat64())
				w.Sub = append(w.Sub, SubWindow{Requests: 10, Duration: 100 * time.Millisecond, Sum: time.Duration(10 * mean * float64(time.Second)),
					Latency: NewHistogram([]time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond,
						20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond})})
				left := math.Exp(-step / speed.Time)
				x = x*left + speed.Deviation*math.Sqrt(1-left*left)*r.NormFloat64()
			}
			windows = append(windows, w)
			at += w.Duration
		}
		list = append(list, windows)
	}
	return list
}

func TestSpeedIsLearned(t *testing.T) {
	t.Parallel()
	for _, want := range []Speed{{0.12, 0.7}, {0.05, 2}, {0.2, 0.3}} {
		got := SpeedOf(loopsAt(want, 0.05, 2000))
		if math.Abs(got.Deviation/want.Deviation-1) > 0.1 || math.Abs(math.Log(got.Time/want.Time)) > math.Log(1.3) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// What other programs do to the machine is not its speed. Nothing is known without windows, and of a window without parts.
func TestSpeedOfNothing(t *testing.T) {
	t.Parallel()
	for name, loops := range map[string][][]Window{
		"none": nil, "others": loopsAt(Speed{0.2, 1}, 0.05, 20, FlagForeign), "no parts": {{{Duration: time.Second, Requests: 5}}},
	} {
		if got := SpeedOf(loops); got != (Speed{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Times of inputs and outputs count in the batches of all sizes. A server without statistics tells nothing.
func TestBatchTimes(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	w := Window{Server: ServerStats{
		Requests: 5, Inferences: 5, Executions: 3, ComputeInput: 5 * ms, ComputeInfer: 100 * ms, ComputeOutput: 5 * ms,
		Batches: []BatchStat{{Size: 1, Executions: 1, ComputeInfer: 10 * ms}, {Size: 2, Executions: 2, ComputeInfer: 50 * ms}},
	}}
	// executions take 60 ms of compute_infer, and 3/5 of 10 ms beside it: a tenth more
	want := []BatchTime{{1, 2, 0.011}, {2, 4, 0.0275}}
	got := Measurement{Windows: []Window{w, w}}.BatchTimes()
	for i := range got {
		got[i].Seconds = math.Round(got[i].Seconds*1e9) / 1e9
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Measurement{Windows: []Window{{Requests: 3}}}).BatchTimes(); got != nil {
		t.Errorf("without statistics: %v", got)
	}
}
