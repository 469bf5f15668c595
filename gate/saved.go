package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/gate/decide"
	"tuner/internal/durable"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/model/modelconfig"
	"tuner/profile"
)

// savedSchema is the version of saved baselines that this package writes and reads.
const savedSchema = 1

// mostJobs is the number of measurements in a saved baseline, the latest ones. It is enough to know
// how jobs differ.
const mostJobs = 10

// leastJobs is the number of jobs from which their spread can be estimated.
const leastJobs = 3

// Saved is a saved baseline: measurements of a model, for the comparison with later candidates.
// docs/reference/gate.md describes it.
type Saved struct {
	Schema  int                `json:"schema"`                 // version of this format: 1
	Tool    string             `json:"tool"`                   // version of tuner
	Name    string             `json:"name"`                   // name of the gate
	Model   string             `json:"model_sha256"`           // digest of the model file, in hexadecimal
	Config  string             `json:"config"`                 // the config.pbtxt
	Runtime string             `json:"runtime"`                // build of ONNX Runtime
	Engine  string             `json:"engine,omitempty"`       // program file of another tuner
	Load    measure.Load       `json:"load"`                   // the load
	Shapes  map[string][]int64 `json:"input_shapes,omitempty"` // shapes of the inputs in the requests
	// when the requests of a rate arrive; "" for Poisson
	Arrivals string  `json:"arrivals,omitempty"`
	Data     string  `json:"data,omitempty"` // sha256 of the rows from which requests are drawn; "": random values
	Mix      string  `json:"mix,omitempty"`  // sha256 of the kinds of requests; "": one shape
	Window   float64 `json:"window_seconds"` // length of the windows
	// the windows had no pauses between them; in earlier versions they had
	Settled bool `json:"settled,omitempty"`
	// fingerprint of the machine; figures of machines with different fingerprints do not compare
	Fingerprint string                   `json:"machine_fingerprint"`
	Machine     json.RawMessage          `json:"machine,omitempty"` // facts of the machine
	Noise       map[measure.Metric]Noise `json:"noise"`             // difference between jobs, by metric
	Jobs        []SavedJob               `json:"jobs"`              // the latest ten jobs, the latest last
}

// SavedJob is one run of the gate.
type SavedJob struct {
	Time     time.Time                    `json:"time"`               // when the gate began
	Revision string                       `json:"revision,omitempty"` // commit that was measured
	Pairs    map[measure.Metric][]float64 `json:"pairs"`              // one value per pair by metric, in base units
}

// Noise is the difference of a metric between jobs with the same model on one machine.
type Noise struct {
	// standard deviation of the logarithm between jobs
	Spread float64 `json:"spread"`
	Jobs   int     `json:"jobs"` // number of jobs behind the spread
}

// savedMetrics lists the metrics of a saved baseline, if they are measured.
func savedMetrics(s Setup) []measure.Metric {
	list := slices.DeleteFunc(measure.Metrics(), func(m measure.Metric) bool { return m == measure.Cost })
	for _, m := range s.Spec.AllMetrics() {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// NewSaved makes a baseline from the candidate's measurements.
func NewSaved(s Setup, pairs []Pair, now time.Time, revision string) (Saved, error) {
	config, err := modelconfig.Format(s.Candidate.Config)
	if err != nil {
		return Saved{}, fmt.Errorf("cannot print configuration: %w", err)
	}
	job := SavedJob{Time: now.UTC(), Revision: revision, Pairs: map[measure.Metric][]float64{}}
	for _, metric := range savedMetrics(s) {
		var values []float64
		for _, p := range pairs {
			if v, ok := Figure(metric, p.Candidate); ok && v > leastFigure {
				values = append(values, six(v))
			}
		}
		if len(values) == len(pairs) && len(values) > 0 {
			job.Pairs[metric] = values
		}
	}
	if len(job.Pairs) == 0 {
		return Saved{}, errors.New("cannot save a baseline: nothing was measured")
	}
	return Saved{
		Schema: savedSchema, Tool: s.Tool, Name: s.Spec.Name, Model: s.Candidate.Files[0].Source.Digest, Config: string(config),
		Runtime: s.Candidate.Runtime, Engine: s.Candidate.Engine, Load: s.Load, Shapes: s.Spec.Inputs.Shape, Arrivals: s.arrivalsText(), Data: s.Candidate.DataDigest(), Mix: s.Candidate.MixDigest(), Window: s.Spec.Window.Seconds(),
		Settled: s.Baseline == nil || s.Load.RequestRate > 0, Fingerprint: s.Fingerprint, Machine: s.Machine, Noise: map[measure.Metric]Noise{}, Jobs: []SavedJob{job},
	}, nil
}

// arrivalsText describes when the requests of a rate arrive; "" for Poisson, and in a closed loop.
func (s Setup) arrivalsText() string {
	p := s.Candidate.Arrivals(s.Spec.Arrivals)
	switch {
	case s.Load.RequestRate == 0 || p.IsPoisson():
		return ""
	case p.Trace != nil:
		return p.String() + ", sha256 " + p.Trace.SHA256
	}
	return p.String()
}

// After merges a new baseline with the one that it replaces. For the same machine and load it keeps
// the noise between jobs. For the same model, requests and method it also keeps the jobs, at most
// ten. For another machine or load it returns s.
func (s Saved) After(old Saved) Saved {
	if s.Fingerprint != old.Fingerprint || s.Load != old.Load || s.Arrivals != old.Arrivals {
		return s
	}
	for metric, noise := range old.Noise {
		s.Noise[metric] = noise
	}
	if s.isOf(old) {
		jobs := slices.Concat(old.Jobs, s.Jobs)
		s.Jobs = jobs[max(0, len(jobs)-mostJobs):]
	}
	for metric := range s.Jobs[len(s.Jobs)-1].Pairs {
		if centers := s.centers(metric); len(centers) >= leastJobs {
			s.Noise[metric] = Noise{Spread: six(deviation(centers)), Jobs: len(centers)}
		}
	}
	return s
}

// isOf reports whether two baselines of a machine and a load have the same model, requests and
// method.
func (s Saved) isOf(old Saved) bool {
	return s.Model == old.Model && s.Config == old.Config && s.Runtime == old.Runtime && s.Engine == old.Engine && s.Tool == old.Tool &&
		sameShapes(s.Shapes, old.Shapes) && s.Data == old.Data && s.Mix == old.Mix && s.Window == old.Window && s.Settled == old.Settled
}

// centers returns the middles of a metric's logarithms in the jobs that have it.
func (s Saved) centers(metric measure.Metric) []float64 {
	var list []float64
	for _, job := range s.Jobs {
		if values := job.Pairs[metric]; len(values) > 0 {
			list = append(list, decide.Mean(logs(values)).Mean)
		}
	}
	return list
}

func logs(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = math.Log(v)
	}
	return list
}

func deviation(values []float64) float64 {
	mean, squares := stats.Mean(values).Value, 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / float64(len(values)-1))
}

// Reference returns a metric's value in the baseline, and its spread between jobs. ok is false if
// the baseline does not have the metric. assumed reports that too few jobs are known to estimate
// the spread.
func (s Saved) Reference(metric measure.Metric) (r Reference, assumed, ok bool) {
	centers := s.centers(metric)
	if len(centers) == 0 {
		return Reference{}, false, false
	}
	within := 0.0 // variance of the mean of the centers, from the spread of the pairs
	for _, job := range s.Jobs {
		if values := job.Pairs[metric]; len(values) > 0 {
			e := decide.Mean(logs(values)).Error / float64(len(centers))
			within += e * e
		}
	}
	spread, noise := measure.AssumedSpread, s.Noise[metric]
	isKnown := noise.Jobs >= leastJobs
	if isKnown {
		// A few jobs may be similar by chance. So the spread grows by the quotient of Student's and
		// the normal quantile.
		spread = noise.Spread * stats.TQuantile(0.975, float64(noise.Jobs-1)) / distuv.UnitNormal.Quantile(0.975)
	}
	between := spread * math.Sqrt(1+1/float64(len(centers)))
	return Reference{Log: stats.Mean(centers).Value, Spread: math.Hypot(between, math.Sqrt(within))}, !isKnown, true
}

// References returns all compared metrics, with sentences for people about their basis. It returns
// an InputError if the baseline lacks a metric, has another load, or has a model with other inputs
// and outputs.
func (s Saved) References(path string, setup Setup) (map[measure.Metric]Reference, []string, error) {
	fail := func(format string, args ...any) (map[measure.Metric]Reference, []string, error) {
		return nil, nil, &profile.InputError{Err: fmt.Errorf("%s: baseline: %s: %s; save a new one with --save-baseline", setup.Spec.Path, path, fmt.Sprintf(format, args...))}
	}
	if s.Load != setup.Load {
		return fail("it was measured at %s, but the candidate's load is %s", s.Load, setup.Load)
	}
	if !sameShapes(s.Shapes, setup.Spec.Inputs.Shape) {
		return fail("it was measured with the input shapes %v, but the candidate's are %v", s.Shapes, setup.Spec.Inputs.Shape)
	}
	if now := setup.arrivalsText(); s.Arrivals != now {
		return fail("it was measured with the arrivals %q, but the candidate's are %q", s.Arrivals, now)
	}
	if s.Data != setup.Candidate.DataDigest() {
		return fail("its requests had other data (load.inputs.data)")
	}
	if s.Mix != setup.Candidate.MixDigest() {
		return fail("its requests had another mix of shapes (load.inputs.mix, or the rows' shapes)")
	}
	config, err := modelconfig.Parse("config", []byte(s.Config))
	if err != nil {
		return fail("%v", err)
	}
	if then, now := differing(signature(config), signature(setup.Candidate.Config)); then != now {
		return fail("its model has %s, but the candidate's has %s", then, now)
	}
	references, notes := map[measure.Metric]Reference{}, s.differences(setup)
	for _, m := range setup.Spec.Metrics {
		r, assumed, ok := s.Reference(m.Metric)
		if !ok {
			return fail("it has no %s", m.Metric)
		}
		references[m.Metric] = r
		note := ""
		if assumed {
			note = fmt.Sprintf("The spread of %s between jobs is not known yet, so %.0f %% is assumed. --save-baseline in %d jobs with the same model and "+
				"version of tuner measures it. ", m.Metric, 100*measure.AssumedSpread, leastJobs)
		}
		if c := (Criterion{Metric: m.Metric, Margin: m.Margin}); !c.judged(references).CanPass() {
			note += fmt.Sprintf("%s: jobs differ so much that an equally good candidate cannot pass (%s is allowed).", m.Metric, c.Tolerated())
		}
		if note != "" {
			notes = append(notes, strings.TrimSpace(note))
		}
	}
	return references, notes, nil
}

// differences describe how the measurement of the baseline differs from that of the candidate, if
// they may still be compared.
func (s Saved) differences(setup Setup) []string {
	var notes []string
	if s.Name != setup.Spec.Name {
		notes = append(notes, fmt.Sprintf("Note that the baseline's model is named %q, and the candidate's is named %q.", s.Name, setup.Spec.Name))
	}
	if now := setup.Spec.Window; s.Window != now.Seconds() {
		notes = append(notes, fmt.Sprintf("Note that the baseline was measured in windows of %g s, and the candidate in windows of %v.", s.Window, now))
	}
	if !s.Settled {
		notes = append(notes, "Note that the baseline was measured with pauses between its windows, and the candidate without. "+
			"A new baseline compares better: save one with --save-baseline.")
	}
	return notes
}

// signature lists the tensors in a model's requests and answers, in order: names, types, and shapes
// with the batch dimension.
func signature(c *modelconfig.Config) []string {
	var list []string
	add := func(kind, name string, dataType fmt.Stringer, dims []int64) {
		if c.GetMaxBatchSize() > 0 {
			dims = slices.Concat([]int64{-1}, dims)
		}
		list = append(list, fmt.Sprintf("%s %s %s %v", kind, name, dataType, dims))
	}
	for _, in := range c.GetInput() {
		add("input", in.GetName(), in.GetDataType(), in.GetDims())
	}
	for _, out := range c.GetOutput() {
		add("output", out.GetName(), out.GetDataType(), out.GetDims())
	}
	slices.Sort(list)
	return list
}

// differing returns the entries that only one of two signatures has.
func differing(a, b []string) (onlyA, onlyB string) {
	only := func(list, other []string) string {
		rest := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
		return strings.Join(rest, ", ")
	}
	return cmp.Or(only(a, b), "nothing else"), cmp.Or(only(b, a), "nothing else")
}

func sameShapes(a, b map[string][]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for name, dims := range a {
		if !slices.Equal(dims, b[name]) {
			return false
		}
	}
	return true
}

// ReadSaved reads a saved baseline. A mistake in the file is an InputError. A missing file is also
// fs.ErrNotExist.
func ReadSaved(path string) (Saved, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Saved{}, &profile.InputError{Err: fmt.Errorf("cannot read the baseline %q: %w; tuner gate --save-baseline writes one", path, durable.Cause(err))}
	}
	s, err := parseSaved(text)
	if err != nil {
		return Saved{}, &profile.InputError{Err: fmt.Errorf("cannot read the baseline %q: %w", path, err)}
	}
	return s, nil
}

func parseSaved(text []byte) (Saved, error) {
	var s Saved
	if err := json.Unmarshal(text, &s); err != nil {
		return Saved{}, fmt.Errorf("this is not a saved baseline: %w", err)
	}
	switch {
	case s.Schema != savedSchema:
		return Saved{}, fmt.Errorf("it has schema %d; this version of tuner reads %d", s.Schema, savedSchema)
	case len(s.Jobs) == 0:
		return Saved{}, errors.New("jobs: it has none")
	}
	for i, job := range s.Jobs {
		for metric, values := range job.Pairs {
			if slices.ContainsFunc(values, func(v float64) bool { return !(v > 0) }) {
				return Saved{}, fmt.Errorf("jobs[%d].pairs.%s: every value must be above 0", i, metric)
			}
		}
	}
	for metric, noise := range s.Noise {
		if !(noise.Spread >= 0) {
			return Saved{}, fmt.Errorf("noise.%s.spread: must be 0 or more", metric)
		}
	}
	if s.Noise == nil {
		s.Noise = map[measure.Metric]Noise{}
	}
	return s, nil
}

// CheckSaved checks early whether a baseline can be saved to a file. It returns an InputError if
// not.
func CheckSaved(path string) error {
	if !strings.EqualFold(filepath.Ext(path), ".json") {
		return &profile.InputError{Err: fmt.Errorf("cannot save a baseline to %q: name a file that ends in .json, as a gate's baseline does", path)}
	}
	if _, err := ReadSaved(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // a file of another kind is not replaced
	}
	if err := durable.CheckNamed(path); err != nil {
		return &profile.InputError{Err: fmt.Errorf("cannot write the baseline %q: %w", path, durable.Cause(err))}
	}
	return nil
}

// Save writes the baseline to a file, completely or not at all. It merges it with an existing
// baseline. It blocks while another gate saves.
func (s Saved) Save(path string) error {
	fail := func(err error) error {
		return &profile.InputError{Err: fmt.Errorf("cannot write the baseline %q: %w", path, durable.Cause(err))}
	}
	unlock, err := lock(path)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	old, err := ReadSaved(path)
	switch {
	case err == nil:
		s = s.After(old)
	case !errors.Is(err, fs.ErrNotExist):
		return err // a file of another kind is not replaced
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the baseline %q: %w", path, err)
	}
	if err := durable.WriteNamed(path, durable.Bytes(append(text, '\n'))); err != nil {
		return fail(err)
	}
	return nil
}
