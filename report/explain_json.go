package report

import (
	"tuner/analyze"
	"tuner/measure"
	"tuner/search"
)

// jsonExplanation says in result.json why the best configuration is the best. Times are seconds, changes relative.
type jsonExplanation struct {
	Subjects []jsonSubject    `json:"subjects"`
	Knobs    []jsonKnob       `json:"knobs"`
	Barred   *jsonBarred      `json:"barred,omitempty"`
	Untried  jsonUntried      `json:"untried"`
	Dropped  []measure.Metric `json:"dropped,omitempty"`
}

type jsonSubject struct {
	Name         string             `json:"name"`
	Load         measure.Load       `json:"load"`
	Change       *jsonEstimate      `json:"change,omitempty"`
	Bottleneck   analyze.Bottleneck `json:"bottleneck"`
	Breakdown    *jsonBreakdown     `json:"breakdown,omitempty"`
	Higher       *jsonHigher        `json:"higher,omitempty"`
	HighestLoad  bool               `json:"highest_load"`
	Predictions  []jsonPrediction   `json:"predictions,omitempty"`
	ServiceCurve *jsonCurve         `json:"service_curve,omitempty"`
}

type jsonBreakdown struct {
	Latency       float64     `json:"latency"`
	Queue         float64     `json:"queue"`
	ComputeInput  float64     `json:"compute_input"`
	ComputeInfer  float64     `json:"compute_infer"`
	ComputeOutput float64     `json:"compute_output"`
	Outside       float64     `json:"outside"`
	Instances     int         `json:"instances"`
	Busy          float64     `json:"instances_busy"`
	MeanBatch     float64     `json:"mean_batch,omitempty"`
	Batches       []jsonBatch `json:"batches,omitempty"`
	EngineCPU     float64     `json:"engine_cpu,omitempty"`
	ClientCPU     float64     `json:"client_cpu,omitempty"`
	Foreign       float64     `json:"foreign"`
	Steal         float64     `json:"steal"`
	Throttled     float64     `json:"throttled,omitempty"`
	GPU           float64     `json:"gpu,omitempty"`
}

// jsonBatch is how often a batch size was executed.
type jsonBatch struct {
	Size  int     `json:"size"`
	Share float64 `json:"share"`
}

type jsonHigher struct {
	Load   measure.Load `json:"load"`
	Change float64      `json:"change"`
	Misses []string     `json:"misses,omitempty"`
}

type jsonPrediction struct {
	Metric    measure.Metric `json:"metric"`
	Simulated *float64       `json:"simulated,omitempty"`
	Believed  *jsonEstimate  `json:"believed,omitempty"`
	Measured  jsonEstimate   `json:"measured"`
}

type jsonCurve struct {
	Sizes    []int     `json:"sizes"`
	Alone    []float64 `json:"alone"`
	Crowded  []float64 `json:"crowded,omitempty"`
	Overhead float64   `json:"overhead"`
}

type jsonKnob struct {
	Knob   string       `json:"knob"`
	Chosen search.Value `json:"chosen"`
	Others []jsonEffect `json:"others"`
}

type jsonEffect struct {
	Value  search.Value  `json:"value"`
	Basis  search.Basis  `json:"basis"`
	Change *jsonEstimate `json:"change,omitempty"`
	Misses []string      `json:"misses,omitempty"`
}

type jsonBarred struct {
	Name   string       `json:"name"`
	Load   measure.Load `json:"load"`
	Change float64      `json:"change"`
	Misses []string     `json:"misses"`
}

type jsonUntried struct {
	Candidates   int        `json:"candidates"`
	Measured     int        `json:"measured"`
	Predicted    int        `json:"predicted"`
	Unreached    int        `json:"unreached"`
	Skipped      []jsonFold `json:"skipped"`
	PossibleGain *float64   `json:"possible_gain,omitempty"`
}

// newJSONExplanation returns nil where nothing is explained.
func newJSONExplanation(e analyze.Explanation) *jsonExplanation {
	if len(e.Subjects) == 0 {
		return nil
	}
	j := &jsonExplanation{Knobs: []jsonKnob{}, Dropped: e.Dropped, Untried: newJSONUntried(e.Untried)}
	for _, s := range e.Subjects {
		j.Subjects = append(j.Subjects, newJSONSubject(s))
	}
	for _, k := range e.Knobs {
		knob := jsonKnob{Knob: k.Knob, Chosen: k.Chosen}
		for _, other := range k.Others {
			effect := jsonEffect{Value: other.Value, Basis: other.Basis, Misses: missTexts(other.Misses)}
			if len(other.Misses) == 0 && other.Basis != search.BasisUnknown {
				effect.Change = estimateOf(&other.Change)
			}
			knob.Others = append(knob.Others, effect)
		}
		j.Knobs = append(j.Knobs, knob)
	}
	if b := e.Barred; b != nil {
		j.Barred = &jsonBarred{b.Name, b.Load, significant(b.Change), missTexts(b.Misses)}
	}
	return j
}

func newJSONSubject(s analyze.Subject) jsonSubject {
	j := jsonSubject{Name: s.Name, Load: s.Load, Change: estimateOf(s.Change), Bottleneck: s.Bottleneck, HighestLoad: s.IsHighest}
	if b := s.Breakdown; b != nil {
		j.Breakdown = &jsonBreakdown{
			Latency: significant(b.Latency), Queue: significant(b.Queue), ComputeInput: significant(b.ComputeInput),
			ComputeInfer: significant(b.ComputeInfer), ComputeOutput: significant(b.ComputeOutput), Outside: significant(b.Outside),
			Instances: b.Instances, Busy: significant(b.Busy), MeanBatch: significant(b.MeanBatch), EngineCPU: significant(b.EngineCPU),
			ClientCPU: significant(b.ClientCPU), Foreign: significant(b.Foreign), Steal: significant(b.Steal), Throttled: significant(b.Throttled), GPU: significant(b.GPU),
		}
		for _, batch := range b.Batches {
			j.Breakdown.Batches = append(j.Breakdown.Batches, jsonBatch{batch.Size, significant(batch.Share)})
		}
	}
	if h := s.Higher; h != nil {
		j.Higher = &jsonHigher{h.Load, significant(h.Change), missTexts(h.Misses)}
	}
	for _, p := range s.Predictions {
		prediction := jsonPrediction{Metric: p.Metric, Believed: estimateOf(p.Believed), Measured: newJSONEstimate(p.Measured)}
		if p.Simulated != nil {
			v := significant(*p.Simulated)
			prediction.Simulated = &v
		}
		j.Predictions = append(j.Predictions, prediction)
	}
	if c := s.Curve; c != nil {
		j.ServiceCurve = &jsonCurve{Sizes: c.Sizes, Overhead: significant(c.Overhead)}
		for _, t := range c.Alone {
			j.ServiceCurve.Alone = append(j.ServiceCurve.Alone, significant(t))
		}
		for _, t := range c.Crowded {
			j.ServiceCurve.Crowded = append(j.ServiceCurve.Crowded, significant(t))
		}
	}
	return j
}

func newJSONUntried(u analyze.Untried) jsonUntried {
	j := jsonUntried{Candidates: u.Candidates, Measured: u.Measured, Predicted: u.Predicted, Unreached: u.Unreached, Skipped: []jsonFold{}}
	for _, f := range u.Skipped {
		j.Skipped = append(j.Skipped, jsonFold(f))
	}
	if u.Gain != nil {
		gain := significant(*u.Gain)
		j.PossibleGain = &gain
	}
	return j
}

// estimateOf is an estimate that may be missing.
func estimateOf(e *measure.Estimate) *jsonEstimate {
	if e == nil {
		return nil
	}
	j := newJSONEstimate(*e)
	return &j
}

// significant keeps as many digits of a number as newJSONEstimate does.
func significant(v float64) float64 { return newJSONEstimate(measure.Estimate{Value: v}).Value }

func missTexts(misses []search.Miss) []string {
	var texts []string
	for _, m := range misses {
		texts = append(texts, m.String())
	}
	return texts
}
