package measure

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

// closedLoop simulates a server whose single instance executes batches, with n requests always in
// flight: each answer is followed by the next request. A batch takes 8 ms and 1 ms more for each
// request, with a deviation of 5 %. It returns windows that begin at random instants of one run,
// and the throughput of the whole run in inferences per second.
func closedLoop(random *rand.Rand, n, batch, windows int, length time.Duration) ([]Window, float64) {
	const parts = 10
	type answer struct{ at, latency float64 } // s
	var answers []answer
	sent := make([]float64, n) // of the requests in the queue, the oldest first
	total := float64(4*windows) * length.Seconds()
	now := 0.0
	for now < total {
		size := min(batch, len(sent))
		now += (0.008 + 0.001*float64(size)) * math.Exp(0.05*random.NormFloat64())
		for range size {
			answers = append(answers, answer{now, now - sent[0]})
			sent = append(sent[1:], now)
		}
	}
	var list []Window
	for i := range windows {
		begin := (4*float64(i) + 1 + 2*random.Float64()) * length.Seconds()
		w := Window{Duration: length, InFlight: float64(n)}
		for p := range parts {
			from := begin + length.Seconds()*float64(p)/parts
			var latencies []time.Duration
			s := SubWindow{Duration: length / parts}
			first := sort.Search(len(answers), func(i int) bool { return answers[i].at >= from })
			for _, a := range answers[first:] {
				if a.at >= from+length.Seconds()/parts {
					break
				}
				latency := time.Duration(a.latency * float64(time.Second))
				latencies, s.Sum, s.Requests = append(latencies, latency), s.Sum+latency, s.Requests+1
			}
			s.Latency = NewHistogram(latencies)
			w.Sub, w.Requests = append(w.Sub, s), w.Requests+s.Requests
		}
		w.Inferences = w.Requests
		list = append(list, w)
	}
	return list, float64(len(answers)) / now
}

// In short windows of a closed loop, Little's law has a smaller error than the number of completed
// requests, and its intervals hold the truth. Windows last for 3 to 20 batches, and for 1.2 to 22
// times the latency.
func TestLittleIsCloserThanCounting(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 1))
	for _, c := range []struct {
		n, batch int
		length   time.Duration
	}{
		{1, 1, 30 * time.Millisecond}, {1, 1, 200 * time.Millisecond}, {8, 8, 100 * time.Millisecond},
		{32, 8, 100 * time.Millisecond}, {32, 8, 300 * time.Millisecond}, {128, 8, 300 * time.Millisecond},
	} {
		windows, truth := closedLoop(random, c.n, c.batch, 300, c.length)
		var little, counted float64
		held, known := 0, 0
		for _, w := range windows {
			m := Measurement{Windows: []Window{w}}
			rate, _ := m.Value(Throughput)
			e, ok := m.Little()
			if !ok {
				continue // fewer than two parts with answers
			}
			known++
			little += math.Pow(math.Log(e.Value/truth), 2)
			counted += math.Pow(math.Log(rate/truth), 2)
			if e.Lo <= truth && truth <= e.Hi {
				held++
			}
		}
		share := float64(held) / float64(known)
		t.Logf("%d in flight, batch %d, %v: error %.1f %% by Little's law, %.1f %% by counting; %.0f %% of %d intervals hold",
			c.n, c.batch, c.length, 100*math.Sqrt(little/float64(known)), 100*math.Sqrt(counted/float64(known)), 100*share, known)
		if known < 200 || little > 0.3*counted {
			t.Errorf("%d in flight, batch %d, %v: squared errors of %.3g by Little's law and %.3g by counting, %d of 300 known", c.n, c.batch, c.length, little, counted, known)
		}
		if share < 0.85 {
			t.Errorf("%d in flight, batch %d, %v: %.2f of the intervals hold the truth", c.n, c.batch, c.length, share)
		}
	}
}
