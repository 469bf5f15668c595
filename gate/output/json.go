package output

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/measure"
)

// Schema is the version of gate.json. It increases when a field changes its meaning or disappears.
const Schema = 1

// document is gate.json, described in docs/reference/gate.md. Times are seconds, sizes bytes.
// Changes and margins are shares.
type document struct {
	Schema  int            `json:"schema"`  // version of this format: 1
	Name    string         `json:"name"`    // name of the gate
	Verdict decide.Verdict `json:"verdict"` // the verdict
	// why the gate failed or is inconclusive, in sentences
	Reasons  []string  `json:"reasons"`
	Criteria []jsonRow `json:"criteria"` // the judged metrics and limits
	// comparison of the outputs; absent without a limit on accuracy, and of several models
	Accuracy *jsonAccuracy `json:"accuracy,omitempty"`
	// several models: the verdict, the sides and the load of each, in the order of the file; absent for one model
	Models []jsonModel `json:"models,omitempty"`
	// several models: verdict on the metrics and limits of their server; absent without any
	Server decide.Verdict `json:"server_verdict,omitempty"`
	Load   measure.Load   `json:"load"`  // the load of both sides
	Pairs  int            `json:"pairs"` // number of measured pairs
	// number of times that the gate judged what was measured so far
	Looks   int      `json:"looks"`
	Elapsed float64  `json:"elapsed_seconds"`          // how long the gate took
	Needed  *float64 `json:"needed_seconds,omitempty"` // how long a decision would probably take in all
	// length of the windows that a decision would probably need, if they must be longer
	Window      *float64 `json:"needed_window_seconds,omitempty"`
	Interrupted bool     `json:"interrupted"` // the user interrupted the gate
	Warnings    []string `json:"warnings"`    // warnings about the figures
	// CPU time that others took of what engine and clients could have used; absent if they took
	// none
	Withheld *measure.Others `json:"withheld,omitempty"`
	Values   []jsonPair      `json:"values"` // the figures of each pair
	// the model of the baseline, or the saved baseline; absent without a baseline
	Baseline  *jsonSide `json:"baseline,omitempty"`
	Candidate jsonSide  `json:"candidate"` // the model that is judged
	Time      time.Time `json:"time"`      // when the gate began
	// commit that is judged: GITHUB_SHA or CI_COMMIT_SHA
	Revision string `json:"revision,omitempty"`
	Tool     string `json:"tool"` // version of tuner
	// fingerprint of the machine; figures of machines with different fingerprints do not compare
	Fingerprint string           `json:"machine_fingerprint"`
	Machine     *json.RawMessage `json:"machine,omitempty"` // facts of the machine
	Spec        string           `json:"spec"`              // text of the gate.yaml
}

type jsonRow struct {
	Metric  measure.Metric `json:"metric"`  // the judged metric
	Verdict decide.Verdict `json:"verdict"` // verdict on this criterion
	// allowed change for the worse, as a share of the baseline
	Margin *float64 `json:"margin,omitempty"`
	Min    *float64 `json:"min,omitempty"` // least allowed value, in the metric's base unit
	// largest allowed value, in the metric's base unit
	Max *float64 `json:"max,omitempty"`
	// median of the baseline over the pairs, as measured
	Baseline *float64 `json:"baseline,omitempty"`
	// median of the candidate over the pairs, as measured
	Candidate *float64 `json:"candidate,omitempty"`
	// corrected change of the candidate against the baseline or the limit, as a share; absent
	// while unknown
	Change *float64 `json:"change,omitempty"`
	Lo     *float64 `json:"lo,omitempty"` // lower end of the interval of the change
	Hi     *float64 `json:"hi,omitempty"` // upper end of the interval of the change
	Pairs  int      `json:"pairs"`        // number of pairs behind the verdict
	// slope of the logarithm of the factor by which the candidate is worse, over the CPU time that
	// others took; absent if nothing was corrected
	Slope *float64 `json:"slope,omitempty"`
}

// jsonModel is one of several models.
type jsonModel struct {
	Name string `json:"name"` // name under which it is served
	// verdict on all of its metrics and limits together; absent if none is judged
	Verdict   decide.Verdict `json:"verdict,omitempty"`
	Load      measure.Load   `json:"load"`               // its load, on both sides
	Baseline  *jsonSide      `json:"baseline,omitempty"` // its model of the baseline; absent without one
	Candidate jsonSide       `json:"candidate"`          // its model that is judged
	Accuracy  *jsonAccuracy  `json:"accuracy,omitempty"` // comparison of its outputs; absent without a limit on accuracy
}

type jsonAccuracy struct {
	Limit string   `json:"limit"`           // the limit on accuracy
	Value *float64 `json:"value,omitempty"` // the limited figure
	Miss  string   `json:"miss,omitempty"`  // why the limit is missed
	Note  string   `json:"note"`            // the data of the comparison
}

// jsonPair is a metric's values in a pair.
type jsonPair struct {
	Baseline  map[measure.Metric]float64 `json:"baseline,omitempty"` // values of the baseline, by metric
	Candidate map[measure.Metric]float64 `json:"candidate"`          // values of the candidate, by metric
}

type jsonSide struct {
	Model   string `json:"model,omitempty"`   // path of the model file
	SHA256  string `json:"sha256,omitempty"`  // digest of the model file, in hexadecimal
	Runtime string `json:"runtime,omitempty"` // build of ONNX Runtime
	Engine  string `json:"engine,omitempty"`  // program file of another tuner
	Saved   string `json:"saved,omitempty"`   // file of a saved baseline
}

// WriteJSON writes gate.json.
func WriteJSON(w io.Writer, r Report) error {
	d := document{
		Schema: Schema, Name: r.Setup.Spec.Name, Verdict: r.Outcome.Verdict, Reasons: append([]string{}, r.Outcome.Reasons...), Criteria: []jsonRow{},
		Load: r.Setup.Load, Pairs: len(r.Outcome.Pairs), Looks: r.Outcome.Looks, Elapsed: r.Outcome.Elapsed.Seconds(), Interrupted: r.Outcome.Interrupted,
		Warnings: append([]string{}, r.Warnings...), Values: r.values(), Candidate: newJSONSide(r.Setup.Candidate), Time: r.Time.UTC(), Revision: r.Revision,
		Tool: r.Setup.Tool, Fingerprint: r.Setup.Fingerprint, Spec: string(r.Setup.Spec.Text),
	}
	for _, row := range r.Rows {
		d.Criteria = append(d.Criteria, newJSONRow(row))
	}
	d.Accuracy, d.Models, d.Server = r.accuracyOf(""), r.models(), r.verdictOn("")
	if n := r.Outcome.Needed; n.Time > 0 {
		d.Needed = gate.Number(n.Time.Seconds())
		if n.Window > 0 {
			d.Window = gate.Number(n.Window.Seconds())
		}
	}
	switch {
	case r.Setup.Baseline != nil:
		side := newJSONSide(*r.Setup.Baseline)
		d.Baseline = &side
	case r.Setup.Spec.Baseline.Saved != "":
		d.Baseline = &jsonSide{Saved: r.Setup.Spec.Baseline.Saved}
	}
	if r.Withheld.Mean > 0 {
		d.Withheld = &r.Withheld
	}
	if len(r.Setup.Machine) > 0 {
		d.Machine = &r.Setup.Machine
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	return nil
}

// newJSONSide describes a side. The server of several models has no model of its own.
func newJSONSide(s gate.Subject) jsonSide {
	j := jsonSide{Runtime: s.Runtime, Engine: s.Engine}
	if len(s.Files) > 0 {
		j.Model, j.SHA256 = s.Files[0].Source.Path, s.Files[0].Source.Digest
	}
	return j
}

// models lists several models; none for one.
func (r Report) models() []jsonModel {
	var list []jsonModel
	for _, m := range r.Setup.Models {
		j := jsonModel{Name: m.Spec.Name, Verdict: r.verdictOn(m.Spec.Name), Load: m.Load, Candidate: newJSONSide(m.Candidate), Accuracy: r.accuracyOf(m.Spec.Name)}
		if m.Baseline != nil {
			side := newJSONSide(*m.Baseline)
			j.Baseline = &side
		}
		list = append(list, j)
	}
	return list
}

// verdictOn returns the verdict on one of several models, or with "" on their server; "" if nothing of it is judged.
func (r Report) verdictOn(model string) decide.Verdict {
	for _, part := range r.Parts() {
		if part.Model == model {
			return part.Verdict
		}
	}
	return ""
}

// accuracyOf returns the comparison of one of several models, or with "" that of the only one; nil without one.
func (r Report) accuracyOf(model string) *jsonAccuracy {
	for _, a := range r.Accuracy {
		if a.Model == model {
			return &jsonAccuracy{a.Limit, gate.Number(a.Value), a.Miss, a.Note}
		}
	}
	return nil
}

func newJSONRow(row gate.Row) jsonRow {
	j := jsonRow{Metric: row.Metric, Verdict: row.Verdict, Pairs: row.Standing.Pairs}
	switch {
	case !row.IsLimit():
		j.Margin = gate.Number(row.Margin)
	case row.Min:
		j.Min = gate.Number(row.Bound)
	default:
		j.Max = gate.Number(row.Bound)
	}
	if row.HasCandidate {
		j.Candidate = gate.Number(row.Candidate)
	}
	if row.HasBaseline && !row.IsLimit() {
		j.Baseline = gate.Number(row.Baseline)
	}
	if row.Standing.Slope != 0 {
		j.Slope = gate.Number(row.Standing.Slope)
	}
	if row.IsKnown() {
		j.Change, j.Lo, j.Hi = gate.Number(row.Change.Value), gate.Number(row.Change.Lo), gate.Number(row.Change.Hi)
	}
	return j
}

// values returns the values of the gated metrics in every pair.
func (r Report) values() []jsonPair {
	list := []jsonPair{}
	for _, p := range r.Outcome.Pairs {
		list = append(list, jsonPair{Baseline: r.figures(p.Baseline), Candidate: r.figures(p.Candidate)})
	}
	return list
}

func (r Report) figures(side measure.Measurement) map[measure.Metric]float64 {
	figures := map[measure.Metric]float64{}
	for _, metric := range r.Setup.Spec.AllMetrics() {
		if v, ok := gate.Figure(metric, side); ok {
			figures[metric] = *gate.Number(v)
		}
	}
	return figures
}
