package scaling

import (
	"fmt"
	"strconv"
	"time"

	"tuner/capacity"
	"tuner/capacity/autoscaler"
)

// Rule says how the number of a deployment's pods changes. Without a scaler it is fixed.
type Rule struct {
	Scaler   capacity.Scaler // capacity.HPA, KEDA or Fixed
	Min, Max int
	Metric   Metric // of an autoscaler
	behavior behavior
}

// Metric is the input of an autoscaler: a mean over the pods.
type Metric struct {
	Name   string // as prometheus-adapter names it
	Target string // as a quantity of Kubernetes
	series string // Triton's counter by which prometheus-adapter finds the pods
	query  string // of prometheus-adapter
	window string // of the mean, for Prometheus
	rate   float64
}

// Names of the metrics.
const (
	// Requests is the rate of answered requests of a pod.
	Requests = "inference_requests_per_second"
	// Queue is the mean time that a request waits in a server's queue, in microseconds.
	Queue = "avg_time_queue_us"
)

// Triton's counters.
const (
	answered = "nv_inference_request_success"
	waited   = "nv_inference_queue_duration_us"
)

// queueWindow is the period over which the queue time is a mean. A rate needs two samples, and Prometheus
// scrapes once a minute by default.
const queueWindow = "5m"

// queueDown is the time for which the load must be low before a server is removed. It is about the time
// that a new server needs to start.
const queueDown = 5 * time.Minute

// ByQueue is the rule of a deployment without a plan: servers are added while requests wait longer than a
// time. Queue time grows when a server gets more load than it was tuned for. CPU and GPU are busy before
// that, so their use is no signal. Without room between the numbers there is no autoscaler.
func ByQueue(least, most int, wait time.Duration) Rule {
	scaler := capacity.HPA
	if most <= least {
		scaler, most = capacity.Fixed, least
	}
	return Rule{
		Scaler: scaler, Min: least, Max: most,
		Metric: Metric{
			Name: Queue, Target: strconv.FormatInt(max(1, wait.Microseconds()), 10), series: waited, window: queueWindow,
			// The queue time of a pod without requests is zero.
			query: fmt.Sprintf("%s / clamp_min(%s, 0.001)", podRate(waited, queueWindow), podRate(answered, queueWindow)),
		},
		behavior: behavior{Down: &rules{Stabilization: int(queueDown.Seconds())}},
	}
}

// OfPlan is the rule of a plan. It has every setting that the plan simulated, so nothing is left to a
// cluster's defaults.
func OfPlan(s capacity.Scaling) Rule {
	if s.Scaler != capacity.HPA && s.Scaler != capacity.KEDA {
		return Rule{Scaler: capacity.Fixed, Min: s.Min, Max: s.Min}
	}
	window := strconv.Itoa(int(s.Window)) + "s"
	return Rule{
		Scaler: s.Scaler, Min: s.Min, Max: s.Max, behavior: behaviorOf(s),
		Metric: Metric{Name: Requests, Target: quantity(s.Target), series: answered, query: podRate(answered, window), window: window, rate: s.Target},
	}
}

// Scales reports whether the number changes.
func (r Rule) Scales() bool { return r.Scaler != capacity.Fixed }

// polling is the time between two looks of KEDA, in seconds: as often as Kubernetes' autoscaler looks.
func polling() int { return int(autoscaler.SyncPeriod.Seconds()) }

// query returns KEDA's query: the sum of the rates of all pods of a deployment. The matchers are those of the
// pods' namespace, or none. Kubernetes names a pod DEPLOYMENT-HASH-SUFFIX, and leaves out the last dash of a long name. The pods of
// another deployment DEPLOYMENT-MORE have a dash more, and do not count.
func (r Rule) query(deployment, matchers string) string {
	return fmt.Sprintf(`sum(rate(%s{%spod=~"%s-[a-z0-9]+(-[a-z0-9]{5})?"}[%s]))`, r.Metric.series, matchers, deployment, r.Metric.window)
}

// threshold returns KEDA's target, in requests/s of a pod.
func (r Rule) threshold() string { return strconv.FormatFloat(r.Metric.rate, 'f', 3, 64) }

// podRate is prometheus-adapter's query for the rate of a pod's counter.
func podRate(counter, window string) string {
	return fmt.Sprintf("sum by (<<.GroupBy>>) (rate(%s{<<.LabelMatchers>>}[%s]))", counter, window)
}

// quantity writes a number with thousandths in Kubernetes' form.
func quantity(x float64) string { return strconv.FormatFloat(x*1000, 'f', 0, 64) + "m" }

func behaviorOf(s capacity.Scaling) behavior {
	b := autoscaler.DefaultBehavior()
	b.Down.Stabilization = time.Duration(s.Down * float64(time.Second))
	if s.Scaler == capacity.HPA && s.Tolerance > 0 {
		b.Up.Tolerance, b.Down.Tolerance = s.Tolerance, s.Tolerance
	}
	return behavior{rulesOf(b.Up), rulesOf(b.Down)}
}

func rulesOf(r autoscaler.Rules) *rules {
	x := &rules{Stabilization: int(r.Stabilization.Seconds()), Select: string(r.Select)}
	if r.Tolerance != autoscaler.DefaultTolerance {
		x.Tolerance = quantity(r.Tolerance)
	}
	for _, p := range r.Policies {
		kind := "Pods"
		if p.Percent {
			kind = "Percent"
		}
		x.Policies = append(x.Policies, policy{kind, p.Value, int(p.Period.Seconds())})
	}
	return x
}
