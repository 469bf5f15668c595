package queuesim

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
)

// pairs are two requests at once, every two seconds.
type pairs struct{ n int }

func (p *pairs) Next() time.Duration {
	p.n++
	return time.Duration((p.n+1)/2) * 2 * time.Second
}

// Of two requests that come at once, one takes half a second and the other waits for it: half of them
// are within 0.5 s. The mean rate is 1/s. Poisson arrivals of that rate would wait otherwise.
func TestArrivalsOfASchedule(t *testing.T) {
	t.Parallel()
	r := Simulate(Batcher{}, constant(0.5), measure.Load{RequestRate: 1}, Options{Requests: 1000, Arrivals: &pairs{}, Within: []float64{0.5}})
	for name, values := range map[string][2]float64{
		"throughput": {r.Throughput, 1}, "mean": {r.Mean, 0.75}, "p99": {r.P99, 1}, "queue": {r.Queue, 0.25}, "share within 0.5 s": {r.Within[0], 0.5},
	} {
		if math.Abs(values[0]-values[1]) > 0.005 {
			t.Errorf("%s is %v, want %v", name, values[0], values[1])
		}
	}
}
