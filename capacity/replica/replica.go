// Package replica is one server of a configuration under any rate of requests: a simulation that
// follows the figures of an analyzed campaign.
//
// A campaign measures closed loops, and a service gets requests that do not wait for each other. Package
// queuesim simulates these on the times of batches in service trials. They are scaled until they are the times
// of the batches under the measured loads. Where the campaign knows the path (queuesim.ServiceCurve), it is
// scaled until the latencies are the measured ones. Package capacity makes a fleet of replicas. This package
// chooses nothing.
package replica

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/ort/provider"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// Replica is one server of a configuration. It is immutable.
type Replica struct {
	Type          string // of machine, as the user named its result
	Configuration string
	Setup         string  // for people: "2 instances × 1 thread, int8, batch 8"
	Price         float64 // per hour; 0: unknown
	IsDefault     bool
	Rows          int // inferences in each request
	Batcher       queuesim.Batcher
	Curve         queuesim.ServiceCurve
	Capacity      float64       // requests/s that it answers at most
	Launch        time.Duration // longest measured launch until the model was loaded; 0: unknown
	Cores         float64       // of its machine: what a pod asks for
	Usage         []Usage       // processor time at rates, ascending; nil: unknown
	Checks        []Check
}

// Usage is the processor time that a replica uses at a rate.
type Usage struct {
	Rate  float64 // requests/s
	Cores float64
}

// Check compares the simulation with a measured load.
type Check struct {
	Load      measure.Load
	Measured  float64 // s, 99th percentile of the latency
	Simulated float64 // s
}

// checked is the number of measured loads that the simulation is compared with: the lowest, the best and the
// highest say where it bends.
const checked = 3

// Of makes the replica of a configuration. machine is the result's; seed is of the simulations. It
// returns an error for a configuration whose figures do not say how long a batch takes.
func Of(kind string, r result.Result, c result.Configuration, seed uint64) (Replica, error) {
	x := Replica{Type: kind, Configuration: c.Name, IsDefault: c.Default, Price: r.Goal.Price, Rows: 1, Setup: SetupText(c.Setup)}
	if c.BestLoad != nil {
		x.Rows = max(1, c.BestLoad.BatchSize)
	}
	config, err := modelconfig.Parse("config of "+c.Name, []byte(c.Config))
	if err != nil {
		return Replica{}, err
	}
	x.Batcher = queuesim.Batcher{Instances: 1, MaxBatch: int(max(config.GetMaxBatchSize(), 1))}
	if c.Setup.Instances != nil {
		x.Batcher.Instances = max(1, *c.Setup.Instances)
	}
	if d := config.GetDynamicBatching(); d != nil {
		x.Batcher.Dynamic, x.Batcher.Delay = true, time.Duration(d.GetMaxQueueDelayMicroseconds())*time.Microsecond
		for _, size := range d.GetPreferredBatchSize() {
			x.Batcher.Preferred = append(x.Batcher.Preferred, int(size))
		}
	}
	if x.Rows > x.Batcher.MaxBatch {
		return Replica{}, fmt.Errorf("%s takes %d inferences at once, and its requests have %d", c.Name, x.Batcher.MaxBatch, x.Rows)
	}
	points := usable(c.Points, x.Rows)
	if x.Curve, err = curveOf(r, c, x.Batcher, points); err != nil {
		return Replica{}, err
	}
	if x.Launch = longestLaunch(c); x.Launch == 0 { // its engine was reconfigured: others of the model were launched
		for _, other := range r.Configurations {
			x.Launch = max(x.Launch, longestLaunch(other))
		}
	}
	x.setCores(r, c)
	x.Curve.Cores = int(math.Ceil(x.Cores))
	x.Curve.Threads = Threads(c.Setup, x.Curve.Cores)
	x.Curve.Path = pathWithin(x.Curve.Overhead, pathOf(r, x.Curve.Cores))
	if r.Speed != nil {
		if s := *r.Speed; !(s.Deviation >= 0 && s.Deviation <= widestSpeed && s.Time > 0 && s.Time <= longestBatch) {
			return Replica{}, fmt.Errorf("the speed of the machine has a deviation of %g and a time of %g s: it must be from 0 to %g, and above 0 and up to %g s",
				s.Deviation, s.Time, widestSpeed, float64(longestBatch))
		}
		x.Curve.Speed = *r.Speed
	}
	x.fit(points, chosen(points, c.BestLoad), seed)
	return x, nil
}

// Threads returns the cores that an instance computes on, on a machine with so many; 0: none, as on a GPU.
func Threads(s result.Setup, cores int) int {
	switch {
	case provider.OnGPU(s.Provider):
		return 0
	case s.IntraOpThreads != nil && *s.IntraOpThreads > 0:
		return min(cores, *s.IntraOpThreads)
	}
	return cores
}

// longestLaunch returns the longest measured launch of a configuration; 0 if it was not launched.
func longestLaunch(c result.Configuration) (longest time.Duration) {
	for _, p := range c.Points {
		seconds := p.Launch
		if p.Searched != nil {
			seconds = max(seconds, p.Searched.Launch)
		}
		longest = max(longest, time.Duration(min(seconds, longestBatch)*float64(time.Second)))
	}
	return longest
}

// usable returns the points of a client batch that have what a simulation is fitted to, by ascending load.
func usable(all []result.Point, rows int) (points []result.Point) {
	for _, p := range all {
		if max(1, p.Load.BatchSize) == rows && p.Values[measure.LatencyAvg].Value > 0 && p.Values[measure.Throughput].Value > 0 {
			points = append(points, p)
		}
	}
	slices.SortStableFunc(points, func(a, b result.Point) int { return cmp.Compare(a.Load.Level(), b.Load.Level()) })
	return points
}

// chosen returns the points that the simulation is compared with.
func chosen(points []result.Point, best *measure.Load) []result.Point {
	if len(points) <= checked {
		return points
	}
	at := len(points) / 2
	if best != nil {
		at = max(1, slices.IndexFunc(points, func(p result.Point) bool { return p.Load == *best }))
	}
	last := len(points) - 1
	if at == last {
		at--
	}
	return []result.Point{points[0], points[at], points[last]}
}

// SetupText describes a server's setup.
func SetupText(s result.Setup) string {
	text := s.Precision
	if s.Instances != nil {
		text = fmt.Sprintf("%d × %s", *s.Instances, text)
	}
	if s.MaxBatchSize != nil && *s.MaxBatchSize > 1 {
		text += fmt.Sprintf(", batch %d", *s.MaxBatchSize)
	}
	return text
}

// curveOf returns the times of batches: those of the campaign's service trials, or those that
// the measured loads imply.
func curveOf(r result.Result, c result.Configuration, b queuesim.Batcher, points []result.Point) (queuesim.ServiceCurve, error) {
	if curve, has := serviceCurve(r, c); has {
		return curve, check(c.Name, curve)
	}
	times := map[int][]float64{}
	overhead := math.Inf(1)
	for _, p := range points {
		mean, seconds, rest, ok := batchOf(p, b)
		if batch := int(math.Round(mean)); ok {
			times[batch], overhead = append(times[batch], seconds), min(overhead, rest)
		}
	}
	if len(times) == 0 {
		return queuesim.ServiceCurve{}, fmt.Errorf("the figures of %s do not say how long a batch takes: they lack throughput, latency_avg, or mean_batch", c.Name)
	}
	var curve queuesim.ServiceCurve
	longest := 0.0
	for size := range b.MaxBatch + 1 {
		if list := times[size]; len(list) > 0 {
			longest = max(longest, slices.Min(list)) // a larger batch never takes less time
			curve.Sizes, curve.Alone = append(curve.Sizes, size), append(curve.Alone, longest)
		}
	}
	curve.Overhead = overhead
	return curve, check(c.Name, curve)
}

// serviceCurve returns the times of a configuration's service trials, or those of another one that differs
// only in how requests are batched. It returns false without any.
func serviceCurve(r result.Result, c result.Configuration) (curve queuesim.ServiceCurve, has bool) {
	if r.Explanation == nil {
		return curve, false
	}
	for _, s := range r.Explanation.Subjects {
		k := s.ServiceCurve
		isWhole := k != nil && len(k.Sizes) > 0 && len(k.Alone) == len(k.Sizes) && (len(k.Crowded) == 0 || len(k.Crowded) == len(k.Sizes))
		if !isWhole || has && s.Name != c.Name || !servesAlike(r, s.Name, c) {
			continue
		}
		curve, has = queuesim.ServiceCurve{Sizes: k.Sizes, Alone: k.Alone, Crowded: k.Crowded, Overhead: max(0, k.Overhead)}, true
	}
	return curve, has
}

// servesAlike reports whether the configuration with a name differs from another one only in its batching.
func servesAlike(r result.Result, name string, c result.Configuration) bool {
	if name == c.Name {
		return true
	}
	i := slices.IndexFunc(r.Configurations, func(o result.Configuration) bool { return o.Name == name })
	if i < 0 {
		return false
	}
	o := r.Configurations[i]
	if o.Setup.Precision != c.Setup.Precision || o.Setup.Provider != c.Setup.Provider || o.Setup.Runtime != c.Setup.Runtime {
		return false
	}
	a, err := modelconfig.Parse("config of "+o.Name, []byte(o.Config))
	if err != nil {
		return false // it is not this configuration's mistake
	}
	b, err := modelconfig.Parse("config of "+c.Name, []byte(c.Config))
	return err == nil && modelconfig.SameButBatching(a, b)
}

// check refuses times that no server has.
func check(name string, c queuesim.ServiceCurve) error {
	for i, size := range c.Sizes {
		if size < 1 || i > 0 && size <= c.Sizes[i-1] {
			return fmt.Errorf("the service curve of %s has the batch sizes %v: they must ascend from 1", name, c.Sizes)
		}
	}
	for _, seconds := range slices.Concat(c.Alone, c.Crowded, []float64{1e-9 + c.Overhead}) {
		if !(seconds > 0 && seconds < longestBatch) {
			return fmt.Errorf("the service curve of %s has a time of %g s: it must be above 0 and below %g s", name, seconds, float64(longestBatch))
		}
	}
	return nil
}

// widestSpeed bounds the deviation of the machine's speed. It detects files that are no result: with 1, the speed is
// between a seventh and seven times its median for 95 % of the time.
const widestSpeed = 1.0

// longestBatch bounds the time of a batch in s. It detects files that are no result.
const longestBatch = 3600

// batchOf returns the mean batch of a measured load, the seconds that such a batch takes there, and the
// seconds of a request outside of queue and instance. The mean time of the requests stands for an unknown
// one of the batches. It is longer where batches differ, since more requests are in the large ones.
func batchOf(p result.Point, b queuesim.Batcher) (mean, seconds, overhead float64, ok bool) {
	rows := max(1, p.Load.BatchSize)
	if mean = p.MeanBatch; mean == 0 && (b.MaxBatch == 1 || !b.Dynamic) {
		mean = float64(rows)
	}
	if batch := int(math.Round(mean)); batch < 1 || batch > b.MaxBatch {
		return 0, 0, 0, false
	}
	value := func(m measure.Metric) float64 { return p.Values[m].Value }
	inside := value(measure.ComputeInput) + value(measure.ComputeInfer) + value(measure.ComputeOutput)
	if seconds = cmp.Or(p.BatchTime, inside); seconds > 0 {
		return mean, seconds, max(0, value(measure.LatencyAvg)-value(measure.QueueTime)-cmp.Or(inside, seconds)), true
	}
	busy := float64(b.Instances)
	if p.Load.Concurrency > 0 {
		busy = min(busy, math.Ceil(float64(p.Load.Concurrency*rows)/mean))
	}
	return mean, busy * mean / value(measure.Throughput), 0, true
}

// setCores sets the machine's cores; without a machine, as many as the highest measured processor time takes.
func (x *Replica) setCores(r result.Result, c result.Configuration) {
	var host hostinfo.Host
	if r.Machine != nil && json.Unmarshal(r.Machine, &host) == nil && host.CPU.Logical > 0 {
		x.Cores = float64(host.UsableCores())
		return
	}
	for _, p := range c.Points {
		x.Cores = max(x.Cores, math.Ceil(p.Values[measure.CPU].Value))
	}
}

// UsageAt returns the cores that a replica uses at a rate in requests/s: linear between the rates of Usage,
// and at most the highest. 0: unknown.
func (x *Replica) UsageAt(rate float64) float64 {
	before := Usage{}
	for _, u := range x.Usage {
		if u.Rate <= before.Rate {
			continue
		}
		u.Cores = max(u.Cores, before.Cores) // batches grow with the rate, and may save time
		if rate <= u.Rate {
			return before.Cores + (u.Cores-before.Cores)*(rate-before.Rate)/(u.Rate-before.Rate)
		}
		before = u
	}
	return before.Cores
}
