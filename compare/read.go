package compare

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

	"tuner/internal/durable"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/profile/campaign"
	"tuner/report/result"
	"tuner/search"
)

// gateFile is the name of a gate's result in its output folder.
const gateFile = "gate.json"

// maxBytes bounds a file that is read. A result of a thousand configurations has 20 MB.
const maxBytes = 256 << 20

// The names of facts on which a comparison depends.
const (
	factFingerprint = "machine fingerprint"
	factRequests    = "requests"
	factGoal        = "goal"
	factServer      = "server"
	factFinals      = "server of the finals"
)

// The roles of the servers in a campaign that measured two.
const (
	searchServer = "search"
	finalsServer = "finals"
)

// Read reads a run: an output folder with result.json or gate.json, or a file of these or of
// `tuner perf --format json`. Errors name the path and what to do.
//
// A campaign's single windows come from the journal beside it. Without one the run has no samples.
func Read(path string) (Run, error) {
	file, err := fileOf(path)
	if err != nil {
		return Run{}, err
	}
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxBytes {
		return Run{}, fmt.Errorf("cannot read %q: the file has %d bytes, and the limit is %d", file, info.Size(), maxBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Run{}, fmt.Errorf("cannot read %q: %w", file, durable.Cause(err))
	}
	run, err := Parse(file, text)
	if err != nil {
		return Run{}, err
	}
	if file != path {
		run.Name = filepath.Base(filepath.Clean(path)) // the folder's name tells more than result
	}
	if run.Kind == Campaign {
		return run, addSamples(&run, filepath.Dir(file))
	}
	return run, nil
}

// fileOf returns the file of a run in a folder, or the path of a file.
func fileOf(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no %q: name the output folder of a run, or its JSON file", path)
	case err != nil:
		return "", fmt.Errorf("cannot read %q: %w", path, durable.Cause(err))
	case !info.IsDir():
		return path, nil
	}
	for _, name := range []string{result.FileName, gateFile} {
		file := filepath.Join(path, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("the folder %q has neither %s nor %s: run 'tuner analyze --input %s', or name another folder", path, result.FileName, gateFile, words.ShellWord(path))
}

// NotARunError says that a file is no result that tuner writes. It may be another program's.
type NotARunError struct {
	Path  string
	Cause error
}

// Error implements error.
func (e *NotARunError) Error() string {
	return fmt.Sprintf("%s is not a result of tuner (%v): name an output folder, result.json, gate.json, or the JSON of 'tuner perf'", e.Path, e.Cause)
}

// Parse reads the text of a run. path is its name in errors and in the run.
func Parse(path string, text []byte) (Run, error) {
	var head struct {
		Configurations []json.RawMessage `json:"configurations"`
		Criteria       []json.RawMessage `json:"criteria"`
		Levels         []json.RawMessage `json:"levels"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Run{}, &NotARunError{path, err}
	}
	var run Run
	var err error
	switch {
	case head.Configurations != nil:
		run, err = readCampaign(path, text)
	case head.Criteria != nil:
		run, err = readGate(path, text)
	case head.Levels != nil:
		run, err = readPerf(path, text)
	default:
		return Run{}, &NotARunError{path, errors.New("it has neither configurations, criteria nor levels")}
	}
	run.Path, run.Name = path, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return run, err
}

// Named gives runs of one name different names: by the folder above, then by number.
func Named(runs []Run) []Run {
	runs = slices.Clone(runs)
	isTaken := func(i int) bool {
		return slices.ContainsFunc(runs[:i], func(r Run) bool { return r.Name == runs[i].Name })
	}
	for i := range runs {
		name := runs[i].Name
		for n := 2; isTaken(i); n++ {
			runs[i].Name = fmt.Sprintf("%s#%d", name, n)
		}
	}
	return runs
}

func readCampaign(path string, text []byte) (Run, error) {
	r, err := result.Parse(path, text)
	if err != nil {
		return Run{}, err
	}
	run := Run{Kind: Campaign, Model: r.Model, Answer: r.Answer.Headline, Winner: r.Best, Facts: campaignFacts(r), Configurations: []Configuration{}}
	if r.Recorded != "" {
		run.Kind = Imported
	}
	if r.Origin != nil {
		run.Created = created(r.Origin.Created)
	}
	run.several = len(r.Models) > 0
	for _, t := range r.Goal.Objective {
		if t.Metric != measure.Scale { // a load has it
			run.shown = append(run.shown, t.Metric)
		}
	}
	for _, c := range r.Goal.Constraints {
		if c.Metric != measure.ErrorRate {
			run.shown = append(run.shown, c.Metric)
		}
	}
	if w := r.Withheld; w != nil {
		run.withheld = newWithheld(w.Mean, w.Slope, w.Deviation)
	}
	for _, c := range r.Configurations {
		if c.Default && r.Recorded == "" {
			run.space = spaceOf(c)
		}
		run.Configurations = append(run.Configurations, configurationOf(r, c))
	}
	return run, nil
}

// configurationOf converts a configuration. Those of other programs have no settings, so their
// names name them.
func configurationOf(r result.Result, c result.Configuration) Configuration {
	one := Configuration{Name: c.Name, Key: keyOf(c.Settings), Description: c.Settings.Describe(), Config: c.Config, Points: []Point{}, tied: c.TiedWith}
	switch {
	case c.Default:
		one.Key, one.Description = defaultKey, "default"
	case r.Recorded != "":
		one.Key, one.Description = c.Name, c.Name
	default:
		one.settings = c.Settings
	}
	if c.Gain != nil {
		gain := c.Gain.Measured()
		one.gain = &gain
	}
	for _, p := range c.Points {
		point := Point{Load: p.Load, Values: map[measure.Metric]Figure{}}
		point.Server, point.served = serverOf(r.Origin, p.Confirmed)
		for metric, e := range p.Values {
			point.Values[metric] = Figure(e)
		}
		one.Points = append(one.Points, point)
		if c.BestLoad == nil || p.Load != *c.BestLoad {
			continue
		}
		one.best, one.isConfirmed = p.Load, p.Confirmed
		if !p.Satisfies {
			one.misses = p.Misses
		}
	}
	return one
}

// serverOf returns the role and the name of the server that a campaign's point was measured on. One server has no role.
func serverOf(o *result.Origin, isConfirmed bool) (role, name string) {
	switch {
	case o == nil: // another program measured
		return "", ""
	case o.Finals == nil:
		return "", o.Server.String()
	case isConfirmed:
		return finalsServer, o.Finals.String()
	}
	return searchServer, o.Server.String()
}

// campaignFacts names what a campaign's figures depend on.
func campaignFacts(r result.Result) map[string]string {
	facts := machineFacts(r.Machine)
	facts["model"] = r.Model
	var goal, requests []string
	for _, t := range r.Goal.Objective {
		goal = append(goal, fmt.Sprintf("best %s × %g", t.Metric, t.Weight))
	}
	for _, c := range r.Goal.Constraints {
		if c.Min != nil {
			goal = append(goal, fmt.Sprintf("%s ≥ %s", c.Metric, c.Metric.Format(*c.Min)))
		}
		if c.Max != nil {
			goal = append(goal, fmt.Sprintf("%s ≤ %s", c.Metric, c.Metric.Format(*c.Max)))
		}
	}
	for _, request := range r.Requests {
		requests = append(requests, fmt.Sprintf("%s %v", request.Input, request.Shape))
	}
	if len(r.Mix) > 0 {
		requests = append(requests, fmt.Sprintf("mix of %d shapes %s", len(r.Mix), inJSON(r.Mix)))
	}
	if r.Arrivals != "" {
		requests = append(requests, r.Arrivals)
	}
	for _, m := range r.Models {
		requests = append(requests, fmt.Sprintf("%s %s", m.Model, m.Load))
	}
	facts[factGoal], facts[factRequests] = strings.Join(goal, ", "), strings.Join(requests, ", ")
	if o := r.Origin; o != nil {
		facts["tuner"], facts["ONNX Runtime"], facts[factFingerprint] = o.Tool, strings.Join(o.Runtimes, ", "), o.Fingerprint
		for _, p := range o.Placements[:min(1, len(o.Placements))] {
			facts["machine's name"], facts["instance type"], facts["image"] = cmp.Or(p.Node, p.Host), p.InstanceType, p.Image
		}
		if o.Server != nil {
			facts[factServer] = inJSON(o.Server)
		}
		if o.Finals != nil {
			facts[factFinals] = inJSON(o.Finals)
		}
		for _, m := range o.Models {
			facts["model file, "+strings.TrimSpace(m.Model+" "+m.Precision)] = m.SHA256
		}
	}
	return facts
}

func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // such values cannot be encoded; the fact is still one for people
	}
	return string(text)
}

// mostFact bounds the text of a machine's fact.
const mostFact = 200

// machineFacts names the facts of a machine that are plain values. What changes from minute to
// minute (memory that is available, load) is no fact of a machine.
func machineFacts(machine []byte) map[string]string {
	facts := map[string]string{}
	var all map[string]any
	if json.Unmarshal(machine, &all) != nil {
		return facts
	}
	for name, value := range all {
		switch value.(type) {
		case string, float64, bool:
			text := fmt.Sprint(value)
			if !strings.Contains(name, "available") && !strings.Contains(name, "load") && text != "" && len(text) <= mostFact {
				facts["machine, "+name] = text
			}
		}
	}
	return facts
}

// addSamples reads the windows of a campaign's trials from its journal, if there is one.
func addSamples(run *Run, dir string) error {
	c, err := campaign.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the journal in %q: %w", dir, err)
	}
	for _, e := range c.Events {
		key := keyOf(e.Trial.Candidate)
		i := slices.IndexFunc(run.Configurations, func(c Configuration) bool { return c.Key == key })
		isOfLoad := e.Measurement.Failure == nil && e.Trial.Phase != search.PhaseService // a service trial measures batches
		if i < 0 || !isOfLoad {
			continue
		}
		points := run.Configurations[i].Points
		j := slices.IndexFunc(points, func(p Point) bool {
			return sameLoad(p.Load, e.Trial.Load) && (p.Server == "" || (p.Server == finalsServer) == (e.Trial.Phase == search.PhaseFinal))
		})
		if j < 0 {
			continue
		}
		for windows := range slices.Chunk(e.Measurement.Windows, max(1, len(e.Measurement.Models()))) {
			points[j].samples = append(points[j].samples, sampleOf(windows))
		}
	}
	return nil
}

// sampleOf returns the figures of a window, or of the windows of several models between the same edges.
func sampleOf(windows []measure.Window) Sample {
	s := Sample{Values: map[measure.Metric]float64{}}
	for _, w := range windows {
		s.Requests += w.Requests
		m := measure.Measurement{Windows: []measure.Window{w}}.Alone()
		for _, metric := range []measure.Metric{measure.Throughput, measure.LatencyAvg, measure.LatencyP50, measure.LatencyP99} {
			if v, ok := m.Value(metric); ok && v > 0 {
				s.Values[metric.Of(w.Model)] = v
			}
		}
	}
	return s
}

// gateSide is a model of a gate, and gatePair the values of a pair.
type gateSide struct {
	Model   string `json:"model"`
	SHA256  string `json:"sha256"`
	Runtime string `json:"runtime"`
}

// gateModel is one of several models of a gate, whose sides then have no model of their own.
type gateModel struct {
	Name      string    `json:"name"`
	Baseline  *gateSide `json:"baseline"`
	Candidate gateSide  `json:"candidate"`
}

// addFacts names the files of both sides.
func (m gateModel) addFacts(facts map[string]string) {
	facts[strings.TrimSpace("model file, candidate "+m.Name)] = m.Candidate.SHA256
	if m.Baseline != nil {
		facts[strings.TrimSpace("model file, baseline "+m.Name)] = m.Baseline.SHA256
	}
}

type gatePair struct {
	Baseline  map[measure.Metric]float64 `json:"baseline"`
	Candidate map[measure.Metric]float64 `json:"candidate"`
}

func readGate(path string, text []byte) (Run, error) {
	var d struct {
		Schema    int          `json:"schema"`
		Name      string       `json:"name"`
		Verdict   string       `json:"verdict"`
		Load      measure.Load `json:"load"`
		Values    []gatePair   `json:"values"`
		Baseline  *gateSide    `json:"baseline"`
		Candidate gateSide     `json:"candidate"`
		Models    []gateModel  `json:"models"`
		Criteria  []struct {
			Metric measure.Metric `json:"metric"`
		} `json:"criteria"`
		Time        time.Time       `json:"time"`
		Tool        string          `json:"tool"`
		Fingerprint string          `json:"machine_fingerprint"`
		Machine     json.RawMessage `json:"machine"`
		Withheld    *measure.Others `json:"withheld"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return Run{}, &NotARunError{path, err}
	}
	if d.Schema != 1 {
		return Run{}, fmt.Errorf("%s: schema is %d; this version of tuner reads schema 1: run 'tuner gate' again", path, d.Schema)
	}
	run := Run{Kind: Gate, Model: d.Name, Answer: "gate: " + d.Verdict, Created: created(d.Time), Facts: machineFacts(d.Machine)}
	run.Facts["tuner"], run.Facts[factFingerprint] = d.Tool, d.Fingerprint
	run.Facts["ONNX Runtime"] = d.Candidate.Runtime
	if run.several = len(d.Models) > 0; !run.several {
		d.Models = []gateModel{{Baseline: d.Baseline, Candidate: d.Candidate}}
	}
	for _, m := range d.Models {
		m.addFacts(run.Facts)
	}
	for _, c := range d.Criteria {
		if run.several && !slices.Contains(run.shown, c.Metric) {
			run.shown = append(run.shown, c.Metric)
		}
	}
	if d.Withheld != nil {
		run.withheld = newWithheld(d.Withheld.Mean, 0, 0)
	}
	candidate, baseline := Point{Load: d.Load}, Point{Load: d.Load}
	for _, p := range d.Values {
		candidate.samples = append(candidate.samples, Sample{Values: p.Candidate})
		if len(p.Baseline) > 0 {
			baseline.samples = append(baseline.samples, Sample{Values: p.Baseline})
		}
	}
	for _, side := range []struct {
		name  string
		point Point
	}{{"candidate", candidate}, {"baseline", baseline}} {
		if len(side.point.samples) > 0 {
			side.point.Values = figuresOf(side.point.samples)
			run.Configurations = append(run.Configurations, Configuration{Name: side.name, Key: side.name, Description: side.name, Points: []Point{side.point}})
		}
	}
	return run, nil
}

// figuresOf returns the geometric mean of each metric over independent samples, with Student's
// interval of the logarithms.
func figuresOf(samples []Sample) map[measure.Metric]Figure {
	logs := map[measure.Metric][]float64{}
	for _, s := range samples {
		for metric, v := range s.Values {
			if v > 0 {
				logs[metric] = append(logs[metric], math.Log(v))
			}
		}
	}
	figures := map[measure.Metric]Figure{}
	for metric, list := range logs {
		e := stats.Mean(list)
		figures[metric] = Figure{math.Exp(e.Value), math.Exp(e.Lo), math.Exp(e.Hi)}
	}
	return figures
}

// created returns a time as runs have it. Files of earlier versions have none.
func created(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
