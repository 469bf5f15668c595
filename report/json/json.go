// Package json writes result.json, which has the whole analyzed campaign for programs. Package
// report/result has the types of the file. This package fills them from package analyze, rounds,
// and encodes on all cores.
package json

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"tuner/analyze"
	"tuner/internal/parallel"
	"tuner/measure"
	"tuner/report"
	"tuner/report/figures"
	"tuner/report/result"
	"tuner/spec"
)

func newWithheld(w analyze.Withheld) *result.Withheld {
	if w.Mean == 0 && w.GPU == 0 {
		return nil
	}
	return &result.Withheld{Mean: figures.Significant(w.Mean), Most: figures.Significant(w.Most), Steal: figures.Significant(w.Steal), Foreign: figures.Significant(w.Foreign), Slope: figures.Significant(w.Slope),
		Deviation: figures.Significant(w.Deviation), GPU: figures.Significant(w.GPU)}
}

// Format writes result.json.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return "json" }

// Files implements report.Format.
func (Format) Files(r analyze.Result, _ report.Output) []report.File {
	return []report.File{{Path: result.FileName, Write: func(w io.Writer) error { return Write(w, r) }}}
}

// Write writes result.json.
func Write(w io.Writer, r analyze.Result) error {
	around, err := json.Marshal(newResult(r), style(""))
	if err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	const list = "\n  \"configurations\": [" // occurs nowhere else, since JSON strings have no line breaks
	before, after, _ := bytes.Cut(append(around, '\n'), []byte(list))
	shares, err := encodeConfigs(r)
	if err != nil {
		return err
	}
	parts := [][]byte{before, []byte(list)}
	for i, share := range shares {
		if i > 0 {
			parts = append(parts, []byte(","))
		}
		parts = append(parts, []byte("\n    "), share)
	}
	if len(shares) > 0 {
		parts = append(parts, []byte("\n  "))
	}
	for _, part := range append(parts, after) {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("cannot write JSON: %w", err)
		}
	}
	return nil
}

// style returns the encoding options of result.json: those of encoding/json, indented. Each line
// after the first begins with the prefix.
func style(prefix string) json.Options {
	return json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.WithIndentPrefix(prefix), jsontext.WithIndent("  "))
}

// encodeConfigs encodes the list of configurations as the file has it, in shares. The list is
// nearly all of a large result. So it is encoded on all cores, and not held in memory twice.
func encodeConfigs(r analyze.Result) (shares [][]byte, err error) {
	const size = 100 // configurations per share
	list := slices.Collect(slices.Chunk(r.Configs, size))
	shares = make([][]byte, len(list))
	return shares, parallel.Try(len(list), func(i int) (err error) {
		shares[i], err = encodeShare(r, list[i])
		return err
	})
}

func encodeShare(r analyze.Result, configs []analyze.Config) ([]byte, error) {
	var b bytes.Buffer
	const indent = "    "
	for i, c := range configs {
		if i > 0 {
			b.WriteString(",\n" + indent)
		}
		if err := json.MarshalWrite(&b, newConfiguration(r, c), style(indent)); err != nil {
			return nil, fmt.Errorf("cannot write JSON of configuration %s: %w", c.Name, err)
		}
	}
	return b.Bytes(), nil
}

// newResult converts the result without its configurations, see encodeConfigs.
func newResult(r analyze.Result) result.Result {
	answer := figures.AnswerOf(r)
	d := result.Result{
		Format: result.Format, Status: result.Unmeasured, Summary: answer.Summary(), Answer: newAnswer(r, answer), Model: r.Header.Model, Models: newServed(r),
		Goal:        result.Goal{Objective: r.Goal.Objective.Terms, Constraints: notNil(r.Goal.Constraints), Price: r.Goal.Price},
		Explanation: newExplanation(r.Explanation), FirstStage: r.FirstStage, Variants: []result.Variant{},
		Configurations: []result.Configuration{}, Failures: []result.Failure{}, LeftOut: []result.Fold{}, Loads: []result.BestAtLoad{}, Pareto: []result.Front{},
		Trials: r.Trials, ServiceTrials: r.ServiceTrials, Steps: newSteps(r.Steps), Recorded: r.Recorded, Machine: jsontext.Value(r.Header.Machine),
	}
	if r.Recorded == "" {
		ending, account, origin := result.Ending(r.Ending), newAccount(r.Account), newOrigin(r)
		d.Withheld = newWithheld(r.Withheld)
		if r.Speed != (measure.Speed{}) {
			d.Speed = &measure.Speed{Deviation: figures.Significant(r.Speed.Deviation), Time: figures.Significant(r.Speed.Time)}
		}
		d.Windows, d.Ending, d.Time, d.Origin = &r.Windows, &ending, &account, &origin
	}
	for _, m := range r.Stages {
		if !m.Calls {
			d.Stages = append(d.Stages, m.Header.Model)
		}
	}
	addViews(&d, r)
	if l := r.Accuracy.Limit; l != nil && len(r.Header.Variants) > 0 {
		d.Goal.Accuracy = &result.AccuracyLimit{Metric: l.Metric, Min: l.Min, Max: l.Max, Command: l.Command}
	}
	for _, one := range r.OfEach() {
		for _, v := range one.Header.Variants {
			variant := newVariant(one, v)
			if len(r.Served()) > 0 {
				variant.Model = one.Header.Model
			}
			d.Variants = append(d.Variants, variant)
		}
	}
	if best, ok := r.Winner(); ok {
		d.Status, d.Best = result.Satisfied, best.Name
	}
	if nearest, ok := r.Nearest(); ok {
		d.Status, d.Nearest = result.Infeasible, nearest.Name
	}
	for _, s := range r.Requests {
		d.Requests = append(d.Requests, result.Request{Input: s.Input, Shape: s.Dims, Source: s.Source, Reason: s.Reason})
	}
	d.Arrivals = r.Arrivals
	if r.Header.Mix != nil {
		d.Mix = r.Header.Mix.Kinds
	}
	for _, e := range r.Reused {
		d.Earlier = append(d.Earlier, result.Earlier(e))
	}
	for _, f := range r.Failures {
		d.Failures = append(d.Failures, result.Failure{Name: f.Name, Load: f.Load, Stage: f.Stage, Reason: f.Reason})
	}
	for _, f := range r.Folds {
		d.LeftOut = append(d.LeftOut, result.Fold(f))
	}
	return d
}

func newConfiguration(r analyze.Result, c analyze.Config) result.Configuration {
	s := c.Setup
	j := result.Configuration{
		Name: c.Name, Rank: c.Rank, Default: c.Candidate.IsDefault(), Satisfies: c.Satisfies(), TiedWith: c.TiedWith,
		Setup: newSetup(s), Models: newConfigured(c), HostPolicies: c.HostPolicies(),
		Settings: c.Candidate, Points: []result.Point{}, Config: c.Text,
	}
	if c.Best != nil {
		j.BestLoad, j.Confirmed = &c.Best.Load, c.Best.Confirmed
	}
	if c.Gain != nil {
		gain := newEstimate(*c.Gain)
		j.Gain = &gain
	}
	if c.Memory != nil {
		j.Memory = &result.Memory{Estimate: newEstimate(c.Memory.Estimate), Basis: c.Memory.Basis}
	}
	for _, p := range c.Points {
		point := result.Point{Load: p.Load, Confirmed: p.Confirmed, Sample: newSample(p.Sample)}
		if p.Searched != nil {
			searched := newSample(*p.Searched)
			point.Searched = &searched
		}
		if figures.HasServers(r) {
			point.Server = r.Server(p)
		}
		j.Points = append(j.Points, point)
	}
	return j
}

func newSetup(s analyze.Setup) result.Setup {
	j := result.Setup{Provider: s.Provider, Runtime: s.Runtime, Precision: s.Precision}
	if s.Instances == 0 {
		return j
	}
	j.Instances = &s.Instances
	if s.IntraOpThreads >= 0 {
		j.IntraOpThreads = &s.IntraOpThreads
	}
	if s.MaxBatchSize >= 0 {
		j.MaxBatchSize = &s.MaxBatchSize
	}
	if s.QueueDelay >= 0 {
		delay := s.QueueDelay.Seconds()
		j.QueueDelay = &delay
	}
	return j
}

func newBatches(list []measure.BatchTime) []measure.BatchTime {
	list = slices.Clone(list)
	for i := range list {
		list[i].Seconds = figures.Significant(list[i].Seconds)
	}
	return list
}

func newSample(s analyze.Sample) result.Sample {
	j := result.Sample{
		Satisfies: s.Satisfies(), Values: map[measure.Metric]result.Estimate{},
		Launch: s.LaunchTime.Round(time.Millisecond).Seconds(), MeanBatch: math.Round(s.MeanBatch*1000) / 1000, BatchTime: figures.Significant(s.BatchTime), Batches: newBatches(s.Batches), Flags: s.Flags, GPUs: s.GPUs,
		Misses: missTexts(s.Misses),
	}
	if s.Windows > 0 {
		j.Windows, j.Launches, j.Requests, j.Errors = &s.Windows, &s.Launches, &s.Requests, &s.Errors
	}
	for metric, e := range s.Values {
		j.Values[metric] = newEstimate(e)
	}
	for _, c := range s.Chances {
		j.Chances = append(j.Chances, result.Chance{Constraint: c.Constraint, Probability: math.Round(c.Probability*1e4) / 1e4})
	}
	return j
}

// addViews describes how configurations were compared, and the other possible comparisons.
func addViews(d *result.Result, r analyze.Result) {
	d.RankedBy = result.Ranking{Rank: cmp.Or(r.Rank, spec.RankScore), At: "best"}
	if r.At != nil {
		d.RankedBy.At = spec.At{Load: *r.At}.String()
	}
	for _, l := range r.Loads {
		j := result.BestAtLoad{Load: l.Load, Measured: l.Measured}
		if l.Best != nil {
			j.Best, j.TiedWith, j.Gain = l.Best.Name, l.Best.TiedWith, estimateOf(l.Best.Gain)
			j.Values = map[measure.Metric]result.Estimate{}
			for metric, e := range l.Best.Best.Values {
				j.Values[metric] = newEstimate(e)
			}
		}
		d.Loads = append(d.Loads, j)
	}
	for _, f := range r.Fronts {
		j := result.Front{Metrics: f.Metrics, Points: []result.FrontPoint{}}
		for _, p := range f.Points {
			point := result.FrontPoint{Name: p.Name, Load: p.Load}
			for _, v := range p.Values {
				point.Values = append(point.Values, figures.Significant(v))
			}
			j.Points = append(j.Points, point)
		}
		d.Pareto = append(d.Pareto, j)
	}
}

func newEstimate(e measure.Estimate) result.Estimate {
	return result.Estimate{Value: figures.Significant(e.Value), Lo: figures.Significant(e.Lo), Hi: figures.Significant(e.Hi)}
}

func newAccount(a analyze.Account) result.Account {
	return result.Account{
		Elapsed: a.Elapsed.Seconds(), Windows: a.Windows.Seconds(), Launches: a.Launches.Seconds(),
		Reconfigurations: a.Reconfigurations.Seconds(), WarmUps: a.WarmUps.Seconds(), Decisions: a.Decisions.Seconds(),
	}
}

func newOrigin(r analyze.Result) result.Origin {
	h := r.Header
	o := result.Origin{
		Tool: h.Tool, Created: h.Created, Profile: h.Spec.Path, ProfileSHA256: h.Spec.SHA256, Seed: h.Seed,
		Flavour: h.Runtime.Flavour, Version: h.Runtime.Version, Fingerprint: h.Fingerprint, Models: []result.Model{},
		Runtimes: []string{}, Operators: h.Operators, ProviderLibrary: h.ProviderLibrary, Placements: r.Placements, Server: h.Server, Finals: h.Finals,
	}
	for _, build := range figures.Runtimes(h) {
		o.Runtimes = append(o.Runtimes, build.Name())
	}
	for _, one := range r.OfEach() {
		name := ""
		if len(r.Served()) > 0 {
			name = one.Header.Model
		}
		for _, m := range one.Header.Models {
			o.Models = append(o.Models, result.Model{Model: name, Precision: m.Precision, Path: m.Path, SHA256: m.SHA256, Bytes: m.Bytes})
		}
	}
	return o
}

// notNil replaces a nil list by an empty one, which JSON prints as [].
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
