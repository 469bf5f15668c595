package json

import (
	"tuner/analyze"
	"tuner/measure"
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
		j.Barred = &result.Barred{Name: b.Name, Load: b.Load, Change: significant(b.Change), Misses: missTexts(b.Misses)}
	}
	return j
}

func newSubject(s analyze.Subject) result.Subject {
	j := result.Subject{Name: s.Name, Load: s.Load, Change: estimateOf(s.Change), Bottleneck: s.Bottleneck, HighestLoad: s.IsHighest}
	if b := s.Breakdown; b != nil {
		j.Breakdown = &result.Breakdown{
			Latency: significant(b.Latency), Queue: significant(b.Queue), ComputeInput: significant(b.ComputeInput),
			ComputeInfer: significant(b.ComputeInfer), ComputeOutput: significant(b.ComputeOutput), Outside: significant(b.Outside),
			Instances: b.Instances, Busy: significant(b.Busy), MeanBatch: significant(b.MeanBatch), EngineCPU: significant(b.EngineCPU),
			ClientCPU: significant(b.ClientCPU), Foreign: significant(b.Foreign), Steal: significant(b.Steal), Throttled: significant(b.Throttled), GPU: significant(b.GPU),
		}
		for _, batch := range b.Batches {
			j.Breakdown.Batches = append(j.Breakdown.Batches, result.Batch{Size: batch.Size, Share: significant(batch.Share)})
		}
	}
	if h := s.Higher; h != nil {
		j.Higher = &result.Higher{Load: h.Load, Change: significant(h.Change), Misses: missTexts(h.Misses)}
	}
	for _, p := range s.Predictions {
		prediction := result.Prediction{Metric: p.Metric, Believed: estimateOf(p.Believed), Measured: newEstimate(p.Measured)}
		if p.Simulated != nil {
			v := significant(*p.Simulated)
			prediction.Simulated = &v
		}
		j.Predictions = append(j.Predictions, prediction)
	}
	if c := s.Curve; c != nil {
		j.ServiceCurve = &result.ServiceCurve{Sizes: c.Sizes, Overhead: significant(c.Overhead)}
		for _, t := range c.Alone {
			j.ServiceCurve.Alone = append(j.ServiceCurve.Alone, significant(t))
		}
		for _, t := range c.Crowded {
			j.ServiceCurve.Crowded = append(j.ServiceCurve.Crowded, significant(t))
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
		gain := significant(*u.Gain)
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

// significant rounds a number like newEstimate.
func significant(v float64) float64 { return newEstimate(measure.Estimate{Value: v}).Value }

func missTexts(misses []search.Miss) []string {
	var texts []string
	for _, m := range misses {
		texts = append(texts, m.String())
	}
	return texts
}
