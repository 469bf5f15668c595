package search

import (
	"cmp"
	"time"

	"tuner/ort/provider"
)

// Serving describes how a candidate serves: batcher, instances and threads.
//
// All code reads these knobs through it. Package spec writes it into the configuration, the queue
// simulation predicts with it, and the space's rules use it. A knob that the candidate does not set
// has the default configuration's value.
type Serving struct {
	MaxBatch  int           // max_batch_size of the configuration; 0 if the model does not batch
	Dynamic   bool          // the configuration has the dynamic batcher
	Preferred []int         // preferred batch sizes of the dynamic batcher
	Delay     time.Duration // longest time that the dynamic batcher lets a request wait for others
	Instances int           // on all devices together
	Devices   int           // each device has the same number of instances
	Threads   int           // intra-op threads of an instance; 0: ONNX Runtime's own choice
}

// Serving reads a candidate of one model. Of several, each part has its own.
func (s Space) Serving(c Candidate) Serving {
	x := Serving{
		MaxBatch: s.configuredBatch(c), Instances: s.Facts.Instances(c), Devices: 1,
		Threads: s.intOr(c, KnobIntraOpThreads, 0),
	}
	if _, isGrouped := s.Facts.grouped(c); !isGrouped {
		x.Devices = s.Facts.devices(c)
	}
	if x.Dynamic = x.MaxBatch > 0 && s.hasBatcher(c); !x.Dynamic {
		return x
	}
	x.Preferred = s.preferredSizes(c, x.MaxBatch)
	if delay, err := s.Value(c, KnobMaxQueueDelay).Duration(); err == nil {
		x.Delay = delay
	}
	return x
}

// The values that Triton's auto-completion gives a model with a batch dimension.
const completedBatch, completedInstances = 4, 2

// defaultBatch returns the largest batch of the default configuration.
func (f Facts) defaultBatch() int { return cmp.Or(f.BaseMaxBatchSize, completedBatch) }

// configuredBatch returns the max_batch_size of a candidate's configuration; 0 if it does not
// batch.
func (s Space) configuredBatch(c Candidate) int {
	if !s.Facts.Batching {
		return 0
	}
	return s.intOr(c, KnobMaxBatchSize, s.Facts.defaultBatch())
}

// MaxBatch returns the largest batch of a candidate's executions; 1 if it does not batch. Of several
// models it is the sum of theirs, since their memory adds up.
func (s Space) MaxBatch(c Candidate) int {
	if !s.IsSeveral() {
		return max(s.configuredBatch(c), 1)
	}
	n := 0
	for _, p := range s.Parts {
		n += p.Space.MaxBatch(c.Of(p.Model))
	}
	return n
}

// hasBatcher reports whether a candidate that batches has the dynamic batcher. The default
// configuration may have it, with its size as a knob or completed by the server. Otherwise a
// candidate's own batcher settings add it.
func (s Space) hasBatcher(c Candidate) bool {
	return s.Value(c, KnobMaxBatchSize) != "" || s.Facts.BaseMaxBatchSize == 0 || c.NeedsBatcher()
}

// NeedsBatcher reports whether a candidate sets preferred batch sizes or a queue delay, which only
// the dynamic batcher has.
func (c Candidate) NeedsBatcher() bool {
	sizes, hasSizes := c.Get(KnobPreferredBatchSize)
	delay, hasDelay := c.Get(KnobMaxQueueDelay)
	return hasSizes && sizes != IntsValue(nil) || hasDelay && delay != DurationValue(0)
}

// preferredSizes returns the preferred batch sizes of a candidate with a largest batch: its own, or
// the default's. The default's are dropped if the largest batch differs, since they no longer fit.
func (s Space) preferredSizes(c Candidate, batch int) []int {
	if _, own := c.Get(KnobPreferredBatchSize); !own && batch != s.configuredBatch(Candidate{}) {
		return nil
	}
	sizes, err := s.Value(c, KnobPreferredBatchSize).Ints()
	if err != nil || len(sizes) == 0 {
		return nil
	}
	return sizes
}

// intOr returns the integer value of a knob in a candidate or in the default configuration, else
// base.
func (s Space) intOr(c Candidate, knob string, base int) int {
	n, err := s.Value(c, knob).Int()
	if err != nil {
		return base
	}
	return n
}

// grouped returns the number of instances of a candidate that sets the knob instance_group.
func (f Facts) grouped(c Candidate) (n int, ok bool) {
	v, set := c.Get(KnobInstanceGroup)
	n, known := f.InstanceGroups[v]
	return n, set && known
}

// Instances returns the number of instances of a candidate on all its devices, from its own
// settings and those of the default configuration.
func (f Facts) Instances(c Candidate) int {
	n, ok := f.grouped(c)
	if ok {
		return max(n, 1)
	}
	v, set := c.Get(KnobInstanceCount)
	if !set {
		v = f.Base[KnobInstanceCount]
	}
	n, err := v.Int()
	if err != nil {
		return max(cmp.Or(f.BaseInstances, completedInstances), 1)
	}
	return max(n, 1) * f.devices(c)
}

// devices returns the number of devices on which the counted instances run.
func (f Facts) devices(c Candidate) int {
	of, set := c.Get(KnobExecutionProvider)
	if !set {
		of = f.Base[KnobExecutionProvider]
	}
	if provider.OnGPU(string(of)) {
		return max(f.GPUs, 1)
	}
	return 1
}
