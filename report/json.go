package report

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
	"tuner/journal"
	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/spec"
)

// ResultFormat is the version of result.json; it grows when a field changes its meaning or goes away.
const ResultFormat = 1

// The statuses of a result.
const (
	statusSatisfied  = "satisfied"  // the best configuration satisfies the constraints
	statusInfeasible = "infeasible" // none does
	statusUnmeasured = "unmeasured" // every trial failed
)

// document is result.json, described in docs/reference/results.md. Times are seconds, sizes bytes.
type document struct {
	Format         int              `json:"format"`
	Status         string           `json:"status"`
	Summary        string           `json:"summary"`
	Answer         jsonAnswer       `json:"answer"`
	Model          string           `json:"model"`
	Best           string           `json:"best,omitempty"`
	Nearest        string           `json:"nearest,omitempty"`
	Goal           jsonGoal         `json:"goal"`
	Requests       []jsonRequest    `json:"requests,omitempty"`
	RankedBy       jsonRanking      `json:"ranked_by"`
	Configurations []jsonConfig     `json:"configurations"`
	Loads          []jsonLoad       `json:"loads"`
	Pareto         []jsonFront      `json:"pareto"`
	Explanation    *jsonExplanation `json:"explanation,omitempty"`
	FirstStage     string           `json:"first_stage,omitempty"`
	Variants       []jsonVariant    `json:"variants"`
	Failures       []jsonFailure    `json:"failures"`
	LeftOut        []jsonFold       `json:"left_out"`
	Trials         int              `json:"trials"`
	Windows        *int             `json:"windows,omitempty"`
	ServiceTrials  int              `json:"service_trials,omitempty"`
	Earlier        []jsonEarlier    `json:"earlier,omitempty"`
	Withheld       *jsonWithheld    `json:"withheld,omitempty"` // absent where others took nothing
	Ending         *jsonEnding      `json:"ending,omitempty"`
	Time           *jsonAccount     `json:"time,omitempty"`
	Steps          []jsonStep       `json:"steps,omitempty"`
	Origin         *jsonOrigin      `json:"origin,omitempty"`
	Machine        jsontext.Value   `json:"machine,omitempty"`
	Recorded       string           `json:"recorded,omitempty"` // file of another program; then what a campaign alone knows is missing
}

// jsonWithheld is what others took of the CPU time, and what that did to throughput.
type jsonWithheld struct {
	Mean      float64 `json:"mean"`
	Most      float64 `json:"most"`
	Steal     float64 `json:"steal"`
	Foreign   float64 `json:"foreign"`
	Slope     float64 `json:"slope"`
	Deviation float64 `json:"deviation"`
}

func newJSONWithheld(w analyze.Withheld) *jsonWithheld {
	if w.Mean == 0 {
		return nil
	}
	return &jsonWithheld{Mean: significant(w.Mean), Most: significant(w.Most), Steal: significant(w.Steal), Foreign: significant(w.Foreign), Slope: significant(w.Slope),
		Deviation: significant(w.Deviation)}
}

type jsonGoal struct {
	Objective   []search.Term       `json:"objective"`
	Constraints []search.Constraint `json:"constraints"`
	Accuracy    *jsonLimit          `json:"accuracy,omitempty"`
	Price       float64             `json:"price_per_hour,omitempty"`
}

// jsonRequest is the shape of an input in the measured requests.
type jsonRequest struct {
	Input  string              `json:"input"`
	Shape  []int64             `json:"shape"`
	Source analyze.ShapeSource `json:"source"`
}

// jsonRanking is what configurations are ranked by.
type jsonRanking struct {
	Rank string `json:"rank"` // score, top3-mean
	At   string `json:"at"`   // best, or the load of all: concurrency=8
}

// jsonLoad is what is best at one load, ranked by that alone.
type jsonLoad struct {
	Load     measure.Load  `json:"load"`
	Measured int           `json:"measured"`
	Best     string        `json:"best,omitempty"`
	TiedWith []string      `json:"tied_with,omitempty"`
	Gain     *jsonEstimate `json:"gain,omitempty"`
}

// jsonFront is a Pareto set.
type jsonFront struct {
	Metrics []measure.Metric `json:"metrics"`
	Points  []jsonFrontPoint `json:"points"`
}

type jsonFrontPoint struct {
	Name   string       `json:"name"`
	Load   measure.Load `json:"load"`
	Values []float64    `json:"values"`
}

// jsonChance is the probability that a constraint holds.
type jsonChance struct {
	Constraint  search.Constraint `json:"constraint"`
	Probability float64           `json:"probability"`
}

// jsonLimit is what every variant had to keep.
type jsonLimit struct {
	Metric  string   `json:"metric"`
	Min     *float64 `json:"min,omitempty"`
	Max     *float64 `json:"max,omitempty"`
	Command string   `json:"command,omitempty"`
}

type jsonConfig struct {
	Name      string           `json:"name"`
	Rank      int              `json:"rank,omitempty"`
	Default   bool             `json:"default"`
	Satisfies bool             `json:"satisfies"`
	Confirmed bool             `json:"confirmed"`
	TiedWith  []string         `json:"tied_with,omitempty"`
	Gain      *jsonEstimate    `json:"gain,omitempty"`
	BestLoad  *measure.Load    `json:"best_load,omitempty"`
	Setup     jsonSetup        `json:"setup"`
	Settings  search.Candidate `json:"settings"`
	Memory    *jsonMemory      `json:"memory,omitempty"`
	Points    []jsonPoint      `json:"points"`
	Config    string           `json:"config"`
}

// jsonMemory is what a configuration holds, and what that rests on.
type jsonMemory struct {
	jsonEstimate
	Basis footprint.Basis `json:"basis"`
}

type jsonSetup struct {
	Provider       string  `json:"execution_provider"`
	Runtime        string  `json:"runtime"`
	Precision      string  `json:"precision"`
	Instances      *int    `json:"instance_count,omitempty"` // these three are missing where they are not known
	IntraOpThreads *int    `json:"intra_op_threads,omitempty"`
	MaxBatchSize   *int    `json:"max_batch_size,omitempty"`
	QueueDelay     float64 `json:"max_queue_delay"`
}

type jsonPoint struct {
	Server    string       `json:"server,omitempty"` // where another one than the bundled engine was measured
	Load      measure.Load `json:"load"`
	Confirmed bool         `json:"confirmed"`
	jsonSample
	Searched *jsonSample `json:"searched,omitempty"`
}

type jsonSample struct {
	Satisfies bool                            `json:"satisfies"`
	Misses    []string                        `json:"misses,omitempty"`
	Chances   []jsonChance                    `json:"chances,omitempty"`
	Values    map[measure.Metric]jsonEstimate `json:"values"`
	Windows   *int                            `json:"windows,omitempty"` // these four are missing where they are not known
	Launches  *int                            `json:"launches,omitempty"`
	Requests  *int                            `json:"requests,omitempty"`
	Errors    *int                            `json:"errors,omitempty"`
	Launch    float64                         `json:"launch_time,omitempty"`
	MeanBatch float64                         `json:"mean_batch,omitempty"`
	Flags     []measure.Flag                  `json:"flags,omitempty"`
	GPUs      []measure.GPUWindow             `json:"gpus,omitempty"`
}

type jsonEstimate struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

type jsonFailure struct {
	Name   string        `json:"name"`
	Load   measure.Load  `json:"load"`
	Stage  measure.Stage `json:"stage"`
	Reason string        `json:"reason"`
}

type jsonFold struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	Into   string `json:"into,omitempty"`
}

// jsonEarlier is an earlier campaign that was reused.
type jsonEarlier struct {
	From    string    `json:"from"`
	Created time.Time `json:"created"`
	Same    bool      `json:"same_machine"`
	Trials  int       `json:"trials"`
}

type jsonEnding struct {
	Interrupted bool     `json:"interrupted"`
	Reason      string   `json:"reason"`
	Statement   []string `json:"statement,omitempty"`
	Notes       []string `json:"notes,omitempty"`
}

type jsonAccount struct {
	Elapsed          float64 `json:"elapsed"`
	Windows          float64 `json:"windows"`
	Launches         float64 `json:"launches"`
	Reconfigurations float64 `json:"reconfigurations"`
	WarmUps          float64 `json:"warm_ups"`
	Decisions        float64 `json:"decisions"`
}

type jsonOrigin struct {
	Tool          string      `json:"tool"`
	Created       time.Time   `json:"created"`
	Profile       string      `json:"profile"`
	ProfileSHA256 string      `json:"profile_sha256"`
	Seed          uint64      `json:"seed"`
	Flavour       string      `json:"runtime"` // the default's build
	Version       string      `json:"runtime_version"`
	Runtimes      []string    `json:"runtimes"` // every build that was measured, flavour@version
	Fingerprint   string      `json:"machine_fingerprint"`
	Models        []jsonModel `json:"models"`

	Server *journal.ServerInfo `json:"server,omitempty"` // none: the bundled engine
	Finals *journal.ServerInfo `json:"finals,omitempty"` // none: the same
}

type jsonModel struct {
	Precision string `json:"precision"`
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	Bytes     int64  `json:"bytes"`
}

// WriteJSON writes result.json: everything that is known, for programs.
func WriteJSON(w io.Writer, r analyze.Result) error {
	around, err := json.Marshal(newDocument(r), jsonStyle(""))
	if err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	const list = "\n  \"configurations\": [" // stands nowhere else, since no text has a line break within
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

// jsonStyle is how result.json is written: as encoding/json writes it, indented, each line after the first behind a prefix.
func jsonStyle(prefix string) json.Options {
	return json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.WithIndentPrefix(prefix), jsontext.WithIndent("  "))
}

// encodeConfigs are the elements of the list of configurations as they stand in the file, in shares: nearly all of a large result is in there, so
// that it is encoded on all cores, and not in memory twice.
func encodeConfigs(r analyze.Result) (shares [][]byte, err error) {
	const size = 100 // of a share
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
		if err := json.MarshalWrite(&b, newJSONConfig(r, c), jsonStyle(indent)); err != nil {
			return nil, fmt.Errorf("cannot write JSON of configuration %s: %w", c.Name, err)
		}
	}
	return b.Bytes(), nil
}

// newDocument is the document without its configurations, see encodeConfigs.
func newDocument(r analyze.Result) document {
	d := document{
		Format: ResultFormat, Status: statusUnmeasured, Summary: AnswerOf(r).Summary(), Answer: newJSONAnswer(r), Model: r.Header.Model,
		Goal:        jsonGoal{Objective: r.Goal.Objective.Terms, Constraints: notNil(r.Goal.Constraints), Price: r.Goal.Price},
		Explanation: newJSONExplanation(r.Explanation), FirstStage: r.FirstStage, Variants: []jsonVariant{},
		Configurations: []jsonConfig{}, Failures: []jsonFailure{}, LeftOut: []jsonFold{}, Loads: []jsonLoad{}, Pareto: []jsonFront{},
		Trials: r.Trials, ServiceTrials: r.ServiceTrials, Steps: newJSONSteps(r.Steps), Recorded: r.Recorded, Machine: jsontext.Value(r.Header.Machine),
	}
	if r.Recorded == "" {
		ending, account, origin := jsonEnding(r.Ending), newJSONAccount(r.Account), newJSONOrigin(r)
		d.Withheld = newJSONWithheld(r.Withheld)
		d.Windows, d.Ending, d.Time, d.Origin = &r.Windows, &ending, &account, &origin
	}
	d.addViews(r)
	if l := r.Accuracy.Limit; l != nil && len(r.Header.Variants) > 0 {
		d.Goal.Accuracy = &jsonLimit{l.Metric, l.Min, l.Max, l.Command}
	}
	for _, v := range r.Header.Variants {
		d.Variants = append(d.Variants, newJSONVariant(r, v))
	}
	if best, ok := r.Winner(); ok {
		d.Status, d.Best = statusSatisfied, best.Name
	}
	if nearest, ok := r.Nearest(); ok {
		d.Status, d.Nearest = statusInfeasible, nearest.Name
	}
	for _, s := range r.Requests {
		d.Requests = append(d.Requests, jsonRequest{s.Input, s.Dims, s.Source})
	}
	for _, e := range r.Reused {
		d.Earlier = append(d.Earlier, jsonEarlier(e))
	}
	for _, f := range r.Failures {
		d.Failures = append(d.Failures, jsonFailure{f.Name, f.Load, f.Stage, f.Reason})
	}
	for _, f := range r.Folds {
		d.LeftOut = append(d.LeftOut, jsonFold(f))
	}
	return d
}

func newJSONConfig(r analyze.Result, c analyze.Config) jsonConfig {
	s := c.Setup
	j := jsonConfig{
		Name: c.Name, Rank: c.Rank, Default: c.Candidate.IsDefault(), Satisfies: c.Satisfies(), TiedWith: c.TiedWith,
		Setup:    newJSONSetup(s),
		Settings: c.Candidate, Points: []jsonPoint{}, Config: c.Text,
	}
	if c.Best != nil {
		j.BestLoad, j.Confirmed = &c.Best.Load, c.Best.Confirmed
	}
	if c.Gain != nil {
		gain := newJSONEstimate(*c.Gain)
		j.Gain = &gain
	}
	if c.Memory != nil {
		j.Memory = &jsonMemory{newJSONEstimate(c.Memory.Estimate), c.Memory.Basis}
	}
	for _, p := range c.Points {
		point := jsonPoint{Load: p.Load, Confirmed: p.Confirmed, jsonSample: newJSONSample(p.Sample)}
		if p.Searched != nil {
			searched := newJSONSample(*p.Searched)
			point.Searched = &searched
		}
		if hasServers(r) {
			point.Server = r.Server(p)
		}
		j.Points = append(j.Points, point)
	}
	return j
}

func newJSONSetup(s analyze.Setup) jsonSetup {
	j := jsonSetup{Provider: s.Provider, Runtime: s.Runtime, Precision: s.Precision, QueueDelay: s.QueueDelay.Seconds()}
	if s.Instances > 0 {
		j.Instances, j.MaxBatchSize = &s.Instances, &s.MaxBatchSize
	}
	if s.Instances > 0 && s.IntraOpThreads >= 0 {
		j.IntraOpThreads = &s.IntraOpThreads
	}
	return j
}

func newJSONSample(s analyze.Sample) jsonSample {
	j := jsonSample{
		Satisfies: len(s.Misses) == 0, Values: map[measure.Metric]jsonEstimate{},
		Launch: s.LaunchTime.Round(time.Millisecond).Seconds(), MeanBatch: math.Round(s.MeanBatch*1000) / 1000, Flags: s.Flags, GPUs: s.GPUs,
	}
	if s.Windows > 0 {
		j.Windows, j.Launches, j.Requests, j.Errors = &s.Windows, &s.Launches, &s.Requests, &s.Errors
	}
	for metric, e := range s.Values {
		j.Values[metric] = newJSONEstimate(e)
	}
	for _, m := range s.Misses {
		j.Misses = append(j.Misses, m.String())
	}
	for _, c := range s.Chances {
		j.Chances = append(j.Chances, jsonChance{c.Constraint, math.Round(c.Probability*1e4) / 1e4})
	}
	return j
}

// addViews fills in how configurations were compared, and in which other ways they can be.
func (d *document) addViews(r analyze.Result) {
	d.RankedBy = jsonRanking{cmp.Or(r.Rank, spec.RankScore), "best"}
	if r.At != nil {
		d.RankedBy.At = spec.At{Load: *r.At}.String()
	}
	for _, l := range r.Loads {
		j := jsonLoad{Load: l.Load, Measured: l.Measured}
		if l.Best != nil {
			j.Best, j.TiedWith, j.Gain = l.Best.Name, l.Best.TiedWith, estimateOf(l.Best.Gain)
		}
		d.Loads = append(d.Loads, j)
	}
	for _, f := range r.Fronts {
		j := jsonFront{Metrics: f.Metrics, Points: []jsonFrontPoint{}}
		for _, p := range f.Points {
			point := jsonFrontPoint{Name: p.Name, Load: p.Load}
			for _, v := range p.Values {
				point.Values = append(point.Values, significant(v))
			}
			j.Points = append(j.Points, point)
		}
		d.Pareto = append(d.Pareto, j)
	}
}

// newJSONEstimate keeps six significant digits, which is more than any measurement has.
func newJSONEstimate(e measure.Estimate) jsonEstimate {
	round := func(v float64) float64 {
		if v == 0 {
			return 0
		}
		scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
		return math.Round(v*scale) / scale
	}
	return jsonEstimate{round(e.Value), round(e.Lo), round(e.Hi)}
}

func newJSONAccount(a analyze.Account) jsonAccount {
	return jsonAccount{a.Elapsed.Seconds(), a.Windows.Seconds(), a.Launches.Seconds(), a.Reconfigurations.Seconds(),
		a.WarmUps.Seconds(), a.Decisions.Seconds()}
}

func newJSONOrigin(r analyze.Result) jsonOrigin {
	h := r.Header
	o := jsonOrigin{
		Tool: h.Tool, Created: h.Created, Profile: h.Spec.Path, ProfileSHA256: h.Spec.SHA256, Seed: h.Seed,
		Flavour: h.Runtime.Flavour, Version: h.Runtime.Version, Fingerprint: h.Fingerprint, Models: []jsonModel{},
		Runtimes: []string{}, Server: h.Server, Finals: h.Finals,
	}
	for _, build := range runtimes(h) {
		o.Runtimes = append(o.Runtimes, build.Name())
	}
	for _, m := range h.Models {
		o.Models = append(o.Models, jsonModel{m.Precision, m.Path, m.SHA256, m.Bytes})
	}
	return o
}

// notNil makes an absent list an empty one, which JSON prints as [].
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
