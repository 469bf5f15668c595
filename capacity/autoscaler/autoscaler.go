// Package autoscaler is Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) as a pure function of
// readings and instants.
//
// Package capacity simulates it over a traffic. It follows pkg/controller/podautoscaler of Kubernetes
// v1.36: the number of replicas for a metric, the tolerance, missing metrics and pods that are not
// ready, stabilization, and policies. The laboratory compares both at each sync
// (lab/conformance/autoscaling). The package has no clock, reads no metric and knows no cluster. It
// omits several metrics in one object, and scaling to and from zero.
package autoscaler

import (
	"math"
	"time"
)

// SyncPeriod is the time between two looks at the metric: the default of kube-controller-manager's
// --horizontal-pod-autoscaler-sync-period.
const SyncPeriod = 15 * time.Second

// Kubernetes' defaults.
const (
	// DefaultTolerance: relative distance from the target within which nothing changes
	// (--horizontal-pod-autoscaler-tolerance)
	DefaultTolerance = 0.1
	// DefaultScaleDown: stabilization of scaling down (--horizontal-pod-autoscaler-downscale-stabilization)
	DefaultScaleDown = 5 * time.Minute
)

// Source is the kind of a metric, which decides how readings become replicas.
type Source string

// The sources, by their names in autoscaling/v2.
const (
	Pods     Source = "Pods"     // a value of each pod, with a target for their mean
	External Source = "External" // a sum over all pods, with a target per pod: AverageValue, as KEDA makes it
	Resource Source = "Resource" // processor time, with a target for its share of the request in percent
)

// Settings are those of a HorizontalPodAutoscaler. They are immutable.
type Settings struct {
	Min, Max int // replicas, 1 ≤ Min ≤ Max
	Source   Source
	// Target of the metric per pod, above 0: in thousandths of its unit for Pods and External, in
	// percent for Resource
	Target int64
	// Behavior is nil for an object without one. Kubernetes then limits scaling up to twice the
	// replicas, at least to 4, and stabilizes scaling down for DefaultScaleDown.
	Behavior *Behavior
}

// Behavior has the rules of both directions.
type Behavior struct{ Up, Down Rules }

// Rules limit the change in one direction.
type Rules struct {
	Stabilization time.Duration // the most cautious recommendation of this time counts
	Select        Select
	Policies      []Policy // at least one, unless Select is Disabled
	Tolerance     float64  // relative distance from the target within which nothing changes, 0..1
}

// Select chooses among the policies of a direction.
type Select string

// The choices, by their names in autoscaling/v2.
const (
	Most     Select = "Max"      // the policy that allows the largest change
	Least    Select = "Min"      // the policy that allows the smallest change
	Disabled Select = "Disabled" // no change in this direction
)

// Policy bounds the change within a period.
type Policy struct {
	Percent bool // Value is in percent of the replicas at the beginning of the period; false: in pods
	Value   int
	Period  time.Duration
}

// DefaultBehavior returns what Kubernetes fills into an empty behavior.
func DefaultBehavior() Behavior {
	return Behavior{
		Up: Rules{Select: Most, Tolerance: DefaultTolerance, Policies: []Policy{
			{Value: 4, Period: 15 * time.Second}, {Percent: true, Value: 100, Period: 15 * time.Second},
		}},
		Down: Rules{Stabilization: DefaultScaleDown, Select: Most, Tolerance: DefaultTolerance, Policies: []Policy{
			{Percent: true, Value: 100, Period: 15 * time.Second},
		}},
	}
}

// Reading is the metric at a sync, with the states of the pods.
type Reading struct {
	// Sum is the metric's sum over the measured pods: in thousandths of its unit, for Resource in
	// thousandths of a core.
	Sum      int64
	Measured int   // ready pods that have the metric
	Unready  int   // pods that are not ready yet; they have no metric
	Missing  int   // ready pods without the metric
	Request  int64 // Resource: the processor request of each pod, in thousandths of a core
}

// pods returns the number of all pods.
func (r Reading) pods() int { return r.Measured + r.Unready + r.Missing }

// Autoscaler is one object of Kubernetes with its memory of earlier syncs. It is for one goroutine.
type Autoscaler struct {
	settings Settings
	up, down Rules    // of the behavior; Kubernetes' defaults without one
	lowest   extremes // recommendations within up.Stabilization
	highest  extremes // recommendations within down.Stabilization
	added    changes
	removed  changes
	hasBegun bool // a sync was before
}

// New returns an autoscaler that has seen nothing.
func New(s Settings) *Autoscaler {
	b := DefaultBehavior()
	if s.Behavior != nil {
		b = *s.Behavior
	} else {
		b.Down.Stabilization++ // without a behavior, the beginning of the window belongs to it
	}
	return &Autoscaler{
		settings: s, up: b.Up, down: b.Down,
		lowest: extremes{window: b.Up.Stabilization, sign: -1}, highest: extremes{window: b.Down.Stabilization, sign: 1},
		added: changes{longest: b.Up.longest()}, removed: changes{longest: b.Down.longest()},
	}
}

// longest returns the longest period of the policies.
func (r Rules) longest() (period time.Duration) {
	for _, p := range r.Policies {
		period = max(period, p.Period)
	}
	return period
}

// Sync returns the number of replicas that the autoscaler wants from now on. now is the time since
// any beginning, and must ascend from call to call. current is the number that was wanted before.
func (a *Autoscaler) Sync(now time.Duration, current int, r Reading) int {
	if !a.hasBegun { // the first number counts as recommended
		a.hasBegun = true
		a.lowest.add(now, current)
		a.highest.add(now, current)
	}
	wanted := current
	switch {
	case current > a.settings.Max:
		wanted = a.settings.Max
	case current < a.settings.Min:
		wanted = a.settings.Min
	default:
		proposed, known := a.proposed(current, r)
		if !known {
			return current
		}
		if a.settings.Behavior == nil {
			wanted = a.withoutBehavior(now, current, proposed)
		} else {
			wanted = a.withBehavior(now, current, proposed)
		}
	}
	if a.settings.Behavior != nil {
		a.added.record(now, wanted-current)
		a.removed.record(now, current-wanted)
	}
	return wanted
}

// proposed returns the number of replicas for a reading alone. It returns false without a metric.
func (a *Autoscaler) proposed(current int, r Reading) (replicas int, known bool) {
	if a.settings.Source == External {
		return a.external(r)
	}
	if r.Measured == 0 {
		return current, false
	}
	ratio := a.ratio(r.Sum, r.Measured, r.Request)
	addsUnready := r.Unready > 0 && ratio > 1
	if !addsUnready && r.Missing == 0 {
		if a.isTolerated(ratio) {
			return current, true
		}
		return int(math.Ceil(ratio * float64(r.Measured))), true
	}
	// Pods that are not ready use nothing while more are wanted. Pods without a metric are taken to
	// use whatever makes the change smaller.
	sum, counted := r.Sum, r.Measured
	if ratio != 1 {
		counted += r.Missing
	}
	if ratio < 1 {
		sum += int64(r.Missing) * a.assumed(r.Request)
	}
	if addsUnready {
		counted += r.Unready
	}
	corrected := a.ratio(sum, counted, r.Request)
	if a.isTolerated(corrected) || ratio < 1 && corrected > 1 || ratio > 1 && corrected < 1 {
		return current, true
	}
	replicas = int(math.Ceil(corrected * float64(counted)))
	if corrected < 1 && replicas > current || corrected > 1 && replicas < current {
		return current, true
	}
	return replicas, true
}

// external returns the number of replicas for a sum with a target per pod.
func (a *Autoscaler) external(r Reading) (replicas int, known bool) {
	pods := r.pods()
	if pods == 0 {
		return 0, false
	}
	ratio := float64(r.Sum) / (float64(a.settings.Target) * float64(pods))
	if a.isTolerated(ratio) {
		return pods, true
	}
	return int(math.Ceil(float64(r.Sum) / float64(a.settings.Target))), true
}

// ratio returns the metric over the target. Kubernetes rounds means and percentages down.
func (a *Autoscaler) ratio(sum int64, pods int, request int64) float64 {
	if a.settings.Source == Resource {
		return float64(sum*100/(request*int64(pods))) / float64(a.settings.Target)
	}
	return float64(sum/int64(pods)) / float64(a.settings.Target)
}

// assumed returns the metric of a pod that has none, where fewer replicas are proposed.
func (a *Autoscaler) assumed(request int64) int64 {
	if a.settings.Source == Resource {
		return request * max(100, a.settings.Target) / 100
	}
	return a.settings.Target
}

func (a *Autoscaler) isTolerated(ratio float64) bool {
	return 1-a.down.Tolerance <= ratio && ratio <= 1+a.up.Tolerance
}
