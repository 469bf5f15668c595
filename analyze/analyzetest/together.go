package analyzetest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// ProfileOfTwo is the profile.yaml of the synthetic campaigns of two models on one server.
const ProfileOfTwo = `models:
  encoder:
    model: minilm.onnx
    load: {request_rate: 60}
    constraints: {latency_p99: 50ms}
    space: {instance_count: [1, 2], max_batch_size: [4, 8, 16]}
  ranker:
    model: mlp.onnx
    load: {concurrency: 2, client_batch_size: 2}
    constraints: {latency_p99: 10ms}
    space: {instance_count: [1, 2]}
output: out
scale: [0.5, 1, 1.5, 2, 3, 4]
search: {strategy: grid, budget: 3m}
constraints: {memory: 2GB}
`

// rankerConfig is the config.pbtxt of the second model's default configuration.
const rankerConfig = `name: "ranker"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
default_model_filename: "model.onnx"
version_policy { latest { num_versions: 1 } }
max_batch_size: 8
input { name: "features" data_type: TYPE_FP32 dims: 32 }
output { name: "score" data_type: TYPE_FP32 dims: 1 }
instance_group { name: "ranker" kind: KIND_CPU count: 1 }
dynamic_batching {}
`

// encoderConfig is the config.pbtxt of the first model's default configuration.
const encoderConfig = `name: "encoder"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
default_model_filename: "model.onnx"
version_policy { latest { num_versions: 1 } }
max_batch_size: 4
input { name: "input_ids" data_type: TYPE_INT64 dims: -1 }
output { name: "embedding" data_type: TYPE_FP32 dims: 384 }
instance_group { name: "encoder" kind: KIND_CPU count: 1 }
dynamic_batching {}
`

// Together collects the events of a campaign of two models on one server. Its methods are for one
// goroutine.
type Together struct {
	t        testing.TB
	campaign analyze.Campaign
	space    search.Space
	noise    *rand.Rand
	process
	elapsed time.Duration
}

// NewTogether starts a campaign from the text of a profile, usually ProfileOfTwo. Its models are
// encoder and ranker.
func NewTogether(t testing.TB, profile string) *Together {
	t.Helper()
	p, err := spec.ParseProfile("two.profile.yaml", []byte(profile))
	if err != nil {
		t.Fatal(err)
	}
	configs := map[string]string{"encoder": encoderConfig, "ranker": rankerConfig}
	joint := search.Facts{Cores: Cores, Parts: map[string]search.Facts{}}
	header := newHeader(journal.SeveralFormat, p, profile)
	header.Models = []journal.ModelFile{}
	if p.DividesCores() {
		header.Processors = &isolation.Machine{}
		for id := range Cores {
			header.Processors.Cores = append(header.Processors.Cores, hostinfo.Core{ID: id, Sibling: id})
		}
	}
	for _, m := range p.Models {
		base, err := modelconfig.Parse("the base configuration", []byte(configs[m.Name]))
		if err != nil {
			t.Fatal(err)
		}
		joint.Parts[m.Name] = search.Facts{Cores: Cores, Batching: true, TritonOnly: true, Precisions: []string{"fp32"}, Base: knobs.Base(base)}
		header.Parts = append(header.Parts, journal.ModelPart{Model: m.Name, BaseConfig: configs[m.Name],
			Models: []journal.ModelFile{{Precision: "fp32", Path: m.Model.Path, SHA256: "ab" + m.Name, Bytes: 90_000_000}}})
	}
	if header.Facts, err = json.Marshal(joint); err != nil {
		t.Fatal(err)
	}
	return &Together{
		t:        t,
		campaign: analyze.Campaign{Campaign: campaign.Campaign{Dir: "out", Header: header, Profile: p, Facts: joint}},
		space:    p.Space(joint),
		noise:    rand.New(rand.NewPCG(1, 2)),
	}
}

// Seeded draws the noise from a seed.
func (b *Together) Seeded(seed uint64) *Together {
	b.noise = rand.New(rand.NewPCG(seed, 2))
	return b
}

// Both makes a candidate: instances and the largest batch of the encoder, and instances of the ranker.
func Both(encoders, batch, rankers int) search.Candidate {
	return search.NewCandidate(
		search.Setting{Knob: "encoder.instance_count", Value: search.IntValue(encoders)},
		search.Setting{Knob: "encoder.max_batch_size", Value: search.IntValue(batch)},
		search.Setting{Knob: "ranker.instance_count", Value: search.IntValue(rankers)},
	)
}

// Measure adds a search-phase trial of two windows at each scale.
func (b *Together) Measure(c search.Candidate, scales ...float64) *Together {
	for _, s := range scales {
		phase := search.PhaseSearch
		if c.IsDefault() {
			phase = search.PhaseDefault
		}
		b.trial(c, s, phase, false)
	}
	return b
}

// Confirm adds a final-phase trial on a fresh launch.
func (b *Together) Confirm(c search.Candidate, scale float64) *Together {
	b.trial(c, scale, search.PhaseFinal, true)
	return b
}

// Finals confirms a configuration and the default, each twice.
func (b *Together) Finals(c search.Candidate, scale, ofDefault float64) *Together {
	return b.Confirm(c, scale).Confirm(search.Candidate{}, ofDefault).Confirm(search.Candidate{}, ofDefault).Confirm(c, scale)
}

// Fail adds a search-phase trial in which a model failed.
func (b *Together) Fail(c search.Candidate, scale float64, model string) *Together {
	b.elapsed += 2 * time.Second
	b.pool = ""
	b.add(c, scale, search.PhaseSearch, false, measure.Measurement{
		Failure: &measure.Failure{Stage: measure.StageLoad, Reason: model + ": the model did not load", Model: model}, Times: measure.Times{Launch: 2 * time.Second}})
	return b
}

// End adds the record of the campaign's end.
func (b *Together) End(reason string) *Together {
	b.campaign.End = endOf(b.campaign.Events, b.elapsed, reason)
	return b
}

// Campaign returns the campaign.
func (b *Together) Campaign() analyze.Campaign { return b.campaign }

func (b *Together) trial(c search.Candidate, scale float64, phase search.Phase, fresh bool) {
	times := b.times(c.PoolKey(), fresh)
	m := measure.Measurement{Launch: b.launch, Memory: memoryOfBoth(c), Times: times, Scale: scale}
	for i := range 2 {
		start := b.elapsed + time.Duration(i)*time.Second
		for _, p := range b.space.Load.Mix.Parts() {
			m.Windows = append(m.Windows, b.window(c, p.Model, scale, start))
		}
	}
	b.elapsed += times.Total() + 20*time.Millisecond
	b.add(c, scale, phase, fresh, m)
}

func (b *Together) add(c search.Candidate, scale float64, phase search.Phase, fresh bool, m measure.Measurement) {
	b.campaign.Events = append(b.campaign.Events, search.Event{
		Trial:       search.Trial{Candidate: c, Load: b.space.Load.At(scale), Windows: 2, Window: time.Second, Fresh: fresh, Phase: phase},
		Measurement: m, Elapsed: b.elapsed,
	})
}

// settingOf returns a knob's value, or that of the default.
func settingOf(c search.Candidate, knob string, otherwise int) float64 {
	v, ok := c.Get(knob)
	if !ok {
		return float64(otherwise)
	}
	n, err := v.Int()
	if err != nil {
		return float64(otherwise)
	}
	return float64(n)
}

// memoryOfBoth returns the memory in bytes: 100 MB, plus 95 MB for each instance of the encoder and 20 MB
// for each of the ranker.
func memoryOfBoth(c search.Candidate) int64 {
	return int64(100e6 + 95e6*settingOf(c, "encoder.instance_count", 1) + 20e6*settingOf(c, "ranker.instance_count", 1))
}

// both is the formula of the synthetic server at a scale. An inference of the encoder takes 4 ms + 32 ms
// / batch of a core, and one of the ranker 0.4 ms. The clients of the ranker send as fast as it
// answers, so only the encoder's rate grows with the scale. A latency is the time of one request,
// divided by the share of the cores that is idle. A second instance takes a quarter off it.
func both(c search.Candidate, model string, l measure.Load) (perSecond, latency float64) {
	const encoderCost, perBatch, rankerCost = 0.004, 0.032, 0.0004
	cost := encoderCost + perBatch/settingOf(c, "encoder.max_batch_size", 4)
	encoder, ranker := l.Of("encoder"), l.Of("ranker")
	idle := max(0.02, 1-encoder.RequestRate*cost/Cores)
	quicker := func(knob string) float64 { return 1 - 0.25*(settingOf(c, knob, 1)-1) }
	if model == "encoder" {
		return encoder.RequestRate, 1.6 * cost / idle * quicker("encoder.instance_count")
	}
	latency = 3 * rankerCost / idle * float64(ranker.Concurrency) / 2 * quicker("ranker.instance_count")
	return float64(ranker.Concurrency) / latency, latency
}

// window makes one second of load on a model with a relative noise of 1 %.
func (b *Together) window(c search.Candidate, model string, scale float64, start time.Duration) measure.Window {
	load := b.space.Load.At(scale)
	rate, mean := both(c, model, load)
	w := measure.Window{Model: model, Start: start, Duration: time.Second, EngineCPU: 1500 * time.Millisecond, ClientCPU: 50 * time.Millisecond}
	for range 10 {
		n := max(1, int(math.Round(rate/10*(1+0.01*b.noise.NormFloat64()))))
		latencies := make([]time.Duration, n)
		for i := range latencies {
			latencies[i] = time.Duration(mean * (1 + 0.08*math.Abs(b.noise.NormFloat64())) * float64(time.Second))
		}
		w.Sub = append(w.Sub, measure.SubWindow{Requests: n, Latency: measure.NewHistogram(latencies)})
		w.Requests += n
	}
	w.Inferences = w.Requests * load.Of(model).BatchSize
	if load.Of(model).RequestRate > 0 {
		w.Scheduled = w.Requests
	}
	w.Server = measure.ServerStats{Requests: w.Requests, Inferences: w.Inferences, Executions: max(1, w.Inferences/2),
		Queue: time.Duration(mean / 2 * float64(w.Requests) * float64(time.Second)), ComputeInfer: time.Duration(mean / 3 * float64(w.Requests) * float64(time.Second))}
	return w
}

// OfTwo returns a campaign of two models with a winner, a failure of one model, and confirmed
// finalists.
func OfTwo(t testing.TB) *Together {
	best := Both(2, 16, 2)
	return NewTogether(t, ProfileOfTwo).
		Measure(search.Candidate{}, 0.5, 1, 1.5, 2).
		Measure(Both(1, 8, 1), 1, 1.5, 2).
		Measure(Both(2, 8, 1), 1.5, 2).
		Fail(Both(2, 8, 2), 2, "ranker").
		Measure(best, slices.Repeat([]float64{1.5, 2, 3, 4}, 2)...).
		Finals(best, 3, 1.5).
		End("the space is exhausted")
}
