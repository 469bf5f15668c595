// Package analyzetest makes synthetic campaigns for the tests of analyze, report and the verbs. The
// measurements come from a server that follows a formula, with small deterministic noise. No figure
// in it comes from a machine.
package analyzetest

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/precision/recipe"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// Cores is the number of cores of the synthetic machine.
const Cores = 2

// Profile is the profile.yaml of the synthetic campaigns.
const Profile = `model: minilm.onnx
name: minilm
output: out
search: {strategy: grid, budget: 3m}
space:
  intra_op_threads: [1, 2]
  instance_count: [1, 2]
  max_batch_size: [4, 8, 16]
load: {concurrency: {min: 1, max: 64, scale: pow2}, inputs: {shape: {input_ids: [32]}}}
objective: throughput
constraints: {latency_p99: {max: 50ms}}
`

// BaseConfig is the default configuration's config.pbtxt.
const BaseConfig = `name: "minilm"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
default_model_filename: "model.onnx"
version_policy { latest { num_versions: 1 } }
max_batch_size: 4
input { name: "input_ids" data_type: TYPE_INT64 dims: -1 }
output { name: "embedding" data_type: TYPE_FP32 dims: 384 }
instance_group { name: "minilm" kind: KIND_CPU count: 2 }
dynamic_batching {}
`

// Builder collects the events of a campaign. Its methods are for one goroutine.
type Builder struct {
	t        testing.TB
	campaign analyze.Campaign
	noise    *rand.Rand
	spread   float64 // standard deviation of the logarithm of a trial's speed factor, common to its windows
	process
	elapsed time.Duration
}

// New starts a campaign from the text of a profile, usually Profile.
func New(t testing.TB, profile string) *Builder {
	t.Helper()
	p, err := spec.ParseProfile("minilm.profile.yaml", []byte(profile))
	if err != nil {
		t.Fatal(err)
	}
	base, err := modelconfig.Parse("the base configuration", []byte(BaseConfig))
	if err != nil {
		t.Fatal(err)
	}
	facts := search.Facts{Cores: Cores, Batching: true, TritonOnly: true, Precisions: []string{"fp32"}, Base: knobs.Base(base)}
	encoded, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	header := newHeader(journal.Format, p, profile)
	header.BaseConfig, header.Facts = BaseConfig, encoded
	header.Models = []journal.ModelFile{{Precision: "fp32", Path: "minilm.onnx", SHA256: "ab12", Bytes: 90_000_000}}
	return &Builder{
		t:        t,
		campaign: analyze.Campaign{Campaign: campaign.Campaign{Dir: "out", Header: header, Profile: p, Facts: facts}},
		noise:    rand.New(rand.NewPCG(1, 2)),
	}
}

// newHeader returns what the headers of all synthetic campaigns have.
func newHeader(format int, p spec.Profile, text string) journal.Header {
	return journal.Header{
		Format: format, Tool: "tuner test", Created: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
		Spec: journal.NewSpecFile(p.Path, []byte(text)), Seed: 1,
		Runtime:     journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1", Library: "libonnxruntime.so.1.31.1"},
		Machine:     json.RawMessage(`{"cpu":{"model":"Formula","logical":2},"memory":{"total":16000000000}}`),
		Fingerprint: "2 cores", Model: p.Name,
	}
}

// process is the engine process that runs.
type process struct {
	launch int
	pool   string
}

// times returns the durations of a trial of two windows in a pool. A trial of another pool launches a
// process, and so does a fresh one.
func (p *process) times(pool string, fresh bool) measure.Times {
	t := measure.Times{WarmUp: 400 * time.Millisecond, Windows: 2 * time.Second}
	if fresh || p.pool != pool {
		p.launch++
		p.pool = pool
		t.Launch = 600 * time.Millisecond
	} else {
		t.Reconfigure = 80 * time.Millisecond
	}
	return t
}

// endOf returns the record of a campaign's end.
func endOf(events []search.Event, elapsed time.Duration, reason string) *journal.End {
	var t measure.Times
	for _, e := range events {
		t = t.Add(e.Measurement.Times)
	}
	return &journal.End{
		Reason: reason, Elapsed: elapsed, Windows: t.Windows, Launches: t.Launch, Reconfigurations: t.Reconfigure,
		WarmUps: t.Outside(), Decisions: elapsed - t.Total(),
	}
}

// Noisy draws the noise of trials from a seed. All windows of a trial are faster or slower by the
// same factor, whose logarithm has the standard deviation spread.
func (b *Builder) Noisy(seed uint64, spread float64) *Builder {
	b.noise, b.spread = rand.New(rand.NewPCG(seed, 2)), spread
	return b
}

// Config is BaseConfig with a candidate applied to it.
func Config(t testing.TB, c search.Candidate) *modelconfig.Config {
	t.Helper()
	base, err := modelconfig.Parse("base", []byte(BaseConfig))
	if err != nil {
		t.Fatal(err)
	}
	config, err := knobs.Apply(base, c)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Candidate makes a candidate of the synthetic space.
func Candidate(instances, threads, batch int) search.Candidate {
	return search.NewCandidate(
		search.Setting{Knob: search.KnobIntraOpThreads, Value: search.IntValue(threads)},
		search.Setting{Knob: search.KnobInstanceCount, Value: search.IntValue(instances)},
		search.Setting{Knob: search.KnobMaxBatchSize, Value: search.IntValue(batch)},
	)
}

// Measure adds a search-phase trial of two windows at each concurrency.
func (b *Builder) Measure(c search.Candidate, concurrencies ...int) *Builder {
	for _, n := range concurrencies {
		phase := search.PhaseSearch
		if c.IsDefault() {
			phase = search.PhaseDefault
		}
		b.trial(c, n, phase, false)
	}
	return b
}

// Given adds a search-phase trial with given figures: a throughput in inferences/s, and one latency
// for all requests.
func (b *Builder) Given(c search.Candidate, concurrency int, throughput float64, latency time.Duration) *Builder {
	b.t.Helper()
	const parts, length = 10, 100 * time.Second // long enough to resolve a tenth of an inference per second
	part := max(1, int(math.Round(throughput*length.Seconds()/parts)))
	h := measure.NewHistogram(slices.Repeat([]time.Duration{latency}, part))
	requests := parts * part
	w := measure.Window{Start: b.elapsed, Duration: length, Requests: requests, Inferences: requests,
		Sub:    slices.Repeat([]measure.SubWindow{{Requests: part, Latency: h}}, parts),
		Server: measure.ServerStats{Requests: requests, Inferences: requests, Executions: requests}}
	b.launch++
	b.elapsed += length
	b.addTrial(c, concurrency, search.PhaseSearch, false, measure.Measurement{
		Launch: b.launch, Memory: memory(c), Times: measure.Times{Windows: length}, Windows: []measure.Window{w},
	})
	return b
}

// Beside gives other processes a share of the machine's CPU time, 0..1, in the windows of the last
// trial. The figures do not change.
func (b *Builder) Beside(share float64) *Builder {
	windows := b.campaign.Events[len(b.campaign.Events)-1].Measurement.Windows
	for i := range windows {
		windows[i].Foreign = share
	}
	return b
}

// Confirm adds a final-phase trial on a fresh launch.
func (b *Builder) Confirm(c search.Candidate, concurrency int) *Builder {
	b.trial(c, concurrency, search.PhaseFinal, true)
	return b
}

// Finals confirms a configuration and the default, the latter at concurrency 8, twice each.
func (b *Builder) Finals(c search.Candidate, concurrency int) *Builder {
	return b.Confirm(c, concurrency).Confirm(search.Candidate{}, 8).Confirm(search.Candidate{}, 8).Confirm(c, concurrency)
}

// Won ends a search that was won by a configuration: it and the default are measured, and have
// their finals.
func (b *Builder) Won(c search.Candidate) *Builder {
	return b.Measure(search.Candidate{}, 4, 8).Measure(c, 8, 16).Finals(c, 16).End("the space is exhausted", false)
}

// Curve adds trials of the phase that measures load curves.
func (b *Builder) Curve(c search.Candidate, concurrencies ...int) *Builder {
	for _, n := range concurrencies {
		b.trial(c, n, search.PhaseLoadCurve, false)
	}
	return b
}

// Service adds a service trial: two batch sizes at a concurrency.
func (b *Builder) Service(c search.Candidate, concurrency int) *Builder {
	b.trial(c, concurrency, search.PhaseService, false)
	trial := &b.campaign.Events[len(b.campaign.Events)-1].Trial
	trial.Sizes = []int{1, 2}
	return b
}

// Claim adds the strategy's claims to the record of the campaign's end.
func (b *Builder) Claim(sentences ...string) *Builder {
	b.campaign.End.Statement = sentences
	return b
}

// Compared adds variants that were compared with the original. Those that serve get a model file.
func (b *Builder) Compared(variants ...journal.Variant) *Builder {
	b.t.Helper()
	for _, v := range variants {
		for provider, reason := range v.Rejected {
			b.campaign.Facts.Rejected = append(b.campaign.Facts.Rejected, search.Rejection{Precision: v.Precision, Provider: provider, Reason: reason})
		}
		if v.Path != "" && v.Precision != recipe.Original && len(v.Rejected) < len(v.Accuracy) {
			b.campaign.Header.Models = append(b.campaign.Header.Models,
				journal.ModelFile{Precision: v.Precision, Path: v.Path, SHA256: v.SHA256, Bytes: v.Bytes})
		}
	}
	slices.SortFunc(b.campaign.Facts.Rejected, func(x, y search.Rejection) int {
		return cmp.Or(cmp.Compare(x.Precision, y.Precision), cmp.Compare(x.Provider, y.Provider))
	})
	b.campaign.Header.Variants = append(b.campaign.Header.Variants, variants...)
	encoded, err := json.Marshal(b.campaign.Facts)
	if err != nil {
		b.t.Fatal(err)
	}
	b.campaign.Header.Facts = encoded
	return b
}

// Fail adds a search-phase trial without figures.
func (b *Builder) Fail(c search.Candidate, concurrency int, stage measure.Stage, reason string) *Builder {
	return b.fail(c, concurrency, search.PhaseSearch, &measure.Failure{Stage: stage, Reason: reason})
}

// FailFinal adds a final-phase trial on a fresh launch that yields no figures.
func (b *Builder) FailFinal(c search.Candidate, concurrency int) *Builder {
	return b.fail(c, concurrency, search.PhaseFinal, &measure.Failure{Stage: measure.StageStart, Reason: "the engine was not ready after 1m0s"})
}

func (b *Builder) fail(c search.Candidate, concurrency int, phase search.Phase, why *measure.Failure) *Builder {
	b.elapsed += 2 * time.Second
	b.pool = ""
	b.addTrial(c, concurrency, phase, phase == search.PhaseFinal, measure.Measurement{Failure: why, Times: measure.Times{Launch: 2 * time.Second}})
	return b
}

// End adds the record of the campaign's end.
func (b *Builder) End(reason string, interrupted bool) *Builder {
	b.campaign.End = endOf(b.campaign.Events, b.elapsed, reason)
	b.campaign.End.Interrupted = interrupted
	return b
}

// Campaign returns the campaign.
func (b *Builder) Campaign() analyze.Campaign { return b.campaign }

// WriteJournal writes the campaign as a journal into a folder.
func (b *Builder) WriteJournal(dir string) {
	b.t.Helper()
	WriteJournal(b.t, b.campaign, dir)
}

// WriteJournal writes a campaign as a journal into a folder.
func WriteJournal(t testing.TB, c analyze.Campaign, dir string) {
	t.Helper()
	j, err := journal.Create(dir, c.Header)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(j.Append(journal.KindSession, journal.Session{Tool: "tuner test"}))
	for _, e := range c.Events {
		check(j.Append(journal.KindTrial, e))
	}
	if c.End != nil {
		check(j.Append(journal.KindEnd, c.End))
	}
	check(j.Close())
}

func (b *Builder) trial(c search.Candidate, concurrency int, phase search.Phase, fresh bool) {
	times := b.times(c.PoolKey(), fresh)
	m := measure.Measurement{Launch: b.launch, Memory: memory(c), Times: times}
	factor := 1.0
	if b.spread > 0 {
		factor = math.Exp(b.spread * b.noise.NormFloat64())
	}
	for range 2 {
		m.Windows = append(m.Windows, b.window(c, concurrency, factor))
	}
	b.elapsed += times.Total() + 20*time.Millisecond
	b.addTrial(c, concurrency, phase, fresh, m)
}

func (b *Builder) addTrial(c search.Candidate, concurrency int, phase search.Phase, fresh bool, m measure.Measurement) {
	b.campaign.Events = append(b.campaign.Events, search.Event{
		Trial: search.Trial{
			Candidate: c, Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Windows: 2, Window: time.Second,
			Fresh: fresh, Phase: phase,
		},
		Measurement: m, Elapsed: b.elapsed,
	})
}

// shape returns the candidate's values that the formula uses. The default runs two instances, each
// on all cores.
func shape(c search.Candidate) (instances, threads, batch float64) {
	read := func(knob string, otherwise int) float64 {
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
	return read(search.KnobInstanceCount, 2), read(search.KnobIntraOpThreads, Cores), read(search.KnobMaxBatchSize, 4)
}

// memory returns the memory in bytes: 100 MB, plus 95 MB for each instance.
func memory(c search.Candidate) int64 {
	instances, _, _ := shape(c)
	return int64(100e6 + 95e6*instances)
}

// throughput is the formula of the synthetic server.
//
// A batch of b takes 2 ms + 3 ms · b on one thread. Threads speed it up with exponent 0.7. Threads
// beyond the number of cores share them, with a loss of a tenth for each surplus core. int8 takes
// half the time. A batch has as many requests as wait for its instance, up to the maximum.
func throughput(c search.Candidate, concurrency int) (inferPerSecond, executed float64) {
	instances, threads, most := shape(c)
	busy := math.Min(instances, float64(concurrency))
	executed = math.Max(1, math.Min(most, float64(concurrency)/busy))
	seconds := (0.002 + 0.003*executed) / math.Pow(threads, 0.7)
	if surplus := busy*threads/Cores - 1; surplus > 0 {
		seconds *= (1 + surplus) * (1 + 0.1*surplus*Cores)
	}
	if precision, _ := c.Get(search.KnobPrecision); precision == "int8" {
		seconds /= 2
	}
	return busy * executed / seconds, executed
}

// window makes one second of load with a relative noise of 1 %. The server is faster by the factor.
func (b *Builder) window(c search.Candidate, concurrency int, factor float64) measure.Window {
	rate, batch := throughput(c, concurrency)
	rate *= factor
	w := measure.Window{Start: b.elapsed, Duration: time.Second, EngineCPU: 1900 * time.Millisecond, ClientCPU: 50 * time.Millisecond}
	for range 10 {
		n := max(1, int(math.Round(rate/10*(1+0.01*b.noise.NormFloat64()))))
		latencies := make([]time.Duration, n)
		for i := range latencies {
			mean := float64(concurrency) / rate
			latencies[i] = time.Duration(mean * (1 + 0.08*math.Abs(b.noise.NormFloat64())) * float64(time.Second))
		}
		h := measure.NewHistogram(latencies)
		w.Sub = append(w.Sub, measure.SubWindow{Requests: n, Latency: h})
		w.Requests += n
	}
	w.Inferences = w.Requests
	executions := max(1, int(float64(w.Requests)/batch))
	instances, _, _ := shape(c)
	infer := math.Min(instances, float64(concurrency)) * batch / rate // s for a batch, by the formula
	queue := math.Max(0, float64(concurrency)/rate-infer)             // s; the rest of the latency by Little's law
	all := func(perRequest float64) time.Duration {
		return time.Duration(perRequest * float64(w.Requests) * float64(time.Second))
	}
	w.Server = measure.ServerStats{
		Requests: w.Requests, Inferences: w.Requests, Executions: executions, Queue: all(queue), ComputeInfer: all(infer),
	}
	return w
}
