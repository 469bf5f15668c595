// Package capacity finds how many replicas of which configuration on which type of machine a traffic
// needs, with which autoscaler: the lowest cost at which a share of the requests keeps a limit on the
// latency.
//
// It simulates R replicas behind a balancer in steps of the autoscaler's sync period, 15 s. Within a
// step the requests have the latencies of a steady state at the step's rate, which package replica
// simulates request by request (the pointwise stationary approximation: Green and Kolesar, Management
// Science 37(1), 1991). What exceeds the replicas' capacity waits as a fluid, and is carried over. So a
// week is 40,000 steps and not 100 million requests, and hundreds of settings take less than a second.
// A step is long against a latency, and so the steady state is reached within it.
//
// Package capacity/traffic reads the requests, capacity/autoscaler is Kubernetes' algorithm. This
// package measures nothing and knows no cluster.
package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"tuner/capacity/autoscaler"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/search/queuesim"
)

// Question is the task of a plan.
type Question struct {
	Traffic  traffic.Traffic
	Limit    time.Duration // on the latency of a request
	Share    float64       // of the requests that must keep it, 0..1
	Balancer queuesim.Balancer
	Scaler   Scaler
	// Startup is the time from the wish for a pod to its first request. Below 0: the measured launch
	// and PodOverhead.
	Startup  time.Duration
	slower   float64       // factor of the time until the first request; 0: 1
	Window   time.Duration // over which the autoscaler's metric is a mean
	Min, Max int           // bounds of the number of replicas
	// DefaultTolerance keeps Kubernetes' tolerance of 10 %. Before version 1.35 an object cannot have
	// another.
	DefaultTolerance bool
	Seed             uint64
}

// Scaler names what changes the number of replicas.
type Scaler string

// The scalers.
const (
	HPA   Scaler = "hpa"   // a HorizontalPodAutoscaler on the mean rate of a pod
	KEDA  Scaler = "keda"  // a ScaledObject on the sum of the rates
	Fixed Scaler = "fixed" // nothing
)

// Scalers lists the scalers.
func Scalers() []Scaler { return []Scaler{HPA, KEDA, Fixed} }

// source returns the kind of metric of a scaler.
func (s Scaler) source() autoscaler.Source {
	if s == KEDA {
		return autoscaler.External
	}
	return autoscaler.Pods
}

// Defaults of a question.
const (
	DefaultWindow = time.Minute
	DefaultMax    = 100
	// PodOverhead is the assumed time of a new pod beside the launch of the server: it is scheduled on
	// a node that has the image, its container starts, and its first probe succeeds.
	PodOverhead = 20 * time.Second
	// MostReplicas bounds Max, to detect typing errors.
	MostReplicas = 10_000
)

// windowSteps returns the metric's window in steps.
func (q *Question) windowSteps() int { return max(1, int(q.Window/traffic.Step)) }

// check returns an error for a question without an answer.
func (q *Question) check() error {
	switch {
	case q.Limit <= 0:
		return errors.New("a plan needs a limit on the latency above 0")
	case !(q.Share > 0 && q.Share < 1):
		return fmt.Errorf("a share of %g of the requests cannot keep a limit: it must lie between 0 and 1", q.Share)
	case q.Min < 1 || q.Max < q.Min || q.Max > MostReplicas:
		return fmt.Errorf("%d to %d replicas are impossible: allowed are 1 to %d, ascending", q.Min, q.Max, MostReplicas)
	case q.Window < traffic.Step || q.Window > time.Hour:
		return fmt.Errorf("a metric over %v is impossible: allowed are %v to %v", q.Window, traffic.Step, time.Hour)
	case q.Window%traffic.Step != 0:
		return fmt.Errorf("a metric over %v is impossible: the autoscaler looks every %[2]v, so it must be a multiple of %[2]v", q.Window, traffic.Step)
	case q.Startup > time.Hour:
		return fmt.Errorf("a start of %v is impossible: allowed are up to %v", q.Startup, time.Hour)
	}
	return nil
}

// startup returns the time that a pod of a replica takes to start.
func (q *Question) startup(r *replica.Replica) time.Duration {
	own := r.Launch + PodOverhead
	if q.Startup >= 0 {
		own = q.Startup
	}
	return time.Duration(cmp.Or(q.slower, 1) * float64(own))
}

// latencyLimits are the limits whose shares make up a table of latencies: the question's first, then
// powers of √2 from a sixteenth of it to sixteen times it.
func latencyLimits(limit float64) []float64 {
	list := []float64{limit}
	for i := -8; i <= 8; i++ {
		list = append(list, limit*math.Pow(math.Sqrt2, float64(i)))
	}
	return list
}
