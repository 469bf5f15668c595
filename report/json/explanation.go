package json

import (
	"tuner/analyze"
	"tuner/analyze/bottleneck"
	"tuner/measure"
	"tuner/report/figures"
	"tuner/report/result"
	"tuner/search"
)

// newExplanation converts an explanation. It returns nil if nothing is explained.
func newExplanation(e analyze.Explanation) *result.Explanation {
	if len(e.Subjects) == 0 {
		return nil
	}
	j := &result.Explanation{Knobs: []result.Knob{}, Dropped: e.Dropped, Untried: newUntried(e.Untried)}
	for _, s := range e.Subjects {
		j.Subjects = append(j.Subjects, newSubject(s))
	}
	for _, k := range e.Knobs {
		knob := result.Knob{Knob: k.Knob, Chosen: k.Chosen}
		for _, other := range k.Others {
			effect := result.Effect{Value: other.Value, Basis: other.Basis, Misses: missTexts(other.Misses)}
			if len(other.Misses) == 0 && other.Basis != search.BasisUnknown {
				effect.Change = estimateOf(&other.Change)
			}
			knob.Others = append(knob.Others, effect)
		}
		j.Knobs = append(j.Knobs, knob)
	}
	if b := e.Barred; b != nil {
		j.Barred = &result.Barred{Name: b.Name, Load: b.Load, Change: figures.Significant(b.Change), Misses: missTexts(b.Misses)}
	}
	return j
}

func newSubject(s analyze.Subject) result.Subject {
	j := result.Subject{Name: s.Name, Load: s.Load, Change: estimateOf(s.Change), Bottleneck: s.Bottleneck, HighestLoad: s.IsHighest}
	if b := s.Breakdown; b != nil {
		j.Breakdown = &result.Breakdown{
			Latency: figures.Significant(b.Latency), Queue: figures.Significant(b.Queue), ComputeInput: figures.Significant(b.ComputeInput),
			ComputeInfer: figures.Significant(b.ComputeInfer), ComputeOutput: figures.Significant(b.ComputeOutput), Outside: figures.Significant(b.Outside),
			Instances: b.Instances, Busy: figures.Significant(b.Busy), MeanBatch: figures.Significant(b.MeanBatch), EngineCPU: figures.Significant(b.EngineCPU),
			ClientCPU: figures.Significant(b.ClientCPU), Foreign: figures.Significant(b.Foreign), Steal: figures.Significant(b.Steal), Throttled: figures.Significant(b.Throttled), GPU: figures.Significant(b.GPU),
		}
		for _, batch := range b.Batches {
			j.Breakdown.Batches = append(j.Breakdown.Batches, result.Batch{Size: batch.Size, Share: figures.Significant(batch.Share)})
		}
	}
	for _, x := range s.Stages {
		j.Stages = append(j.Stages, result.Stage{Model: x.Model, Instances: x.Instances, Busy: figures.Significant(x.Busy), Calls: figures.Significant(x.Calls),
			Queue: figures.Significant(x.Queue), Compute: figures.Significant(x.Compute), MeanBatch: figures.Significant(x.MeanBatch)})
	}
	if limiting, ok := bottleneck.Limiting(s.Stages); ok {
		j.BottleneckStage = limiting.Model
	}
	if h := s.Higher; h != nil {
		j.Higher = &result.Higher{Load: h.Load, Change: figures.Significant(h.Change), Misses: missTexts(h.Misses)}
	}
	for _, p := range s.Predictions {
		prediction := result.Prediction{Metric: p.Metric, Believed: estimateOf(p.Believed), Measured: newEstimate(p.Measured)}
		if p.Simulated != nil {
			v := figures.Significant(*p.Simulated)
			prediction.Simulated = &v
		}
		j.Predictions = append(j.Predictions, prediction)
	}
	if c := s.Curve; c != nil {
		j.ServiceCurve = &result.ServiceCurve{Sizes: c.Sizes, Overhead: figures.Significant(c.Overhead), Path: figures.Significant(c.Path)}
		for _, t := range c.Alone {
			j.ServiceCurve.Alone = append(j.ServiceCurve.Alone, figures.Significant(t))
		}
		for _, t := range c.Crowded {
			j.ServiceCurve.Crowded = append(j.ServiceCurve.Crowded, figures.Significant(t))
		}
	}
	return j
}

func newUntried(u analyze.Untried) result.Untried {
	j := result.Untried{Candidates: u.Candidates, Measured: u.Measured, Predicted: u.Predicted, Unreached: u.Unreached, Skipped: []result.Fold{}}
	for _, f := range u.Skipped {
		j.Skipped = append(j.Skipped, result.Fold(f))
	}
	if u.Gain != nil {
		gain := figures.Significant(*u.Gain)
		j.PossibleGain = &gain
	}
	return j
}

// estimateOf converts an estimate that may be missing.
func estimateOf(e *measure.Estimate) *result.Estimate {
	if e == nil {
		return nil
	}
	j := newEstimate(*e)
	return &j
}

func missTexts(misses []search.Miss) []string {
	var texts []string
	for _, m := range misses {
		texts = append(texts, m.String())
	}
	return texts
}
