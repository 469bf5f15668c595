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
	Schema   int            `json:"schema"`
	Name     string         `json:"name"`
	Verdict  decide.Verdict `json:"verdict"`
	Reasons  []string       `json:"reasons"`
	Criteria []jsonRow      `json:"criteria"`
	Accuracy *jsonAccuracy  `json:"accuracy,omitempty"`
	Load     measure.Load   `json:"load"`
	Pairs    int            `json:"pairs"`
	Looks    int            `json:"looks"`
	Elapsed  float64        `json:"elapsed_seconds"`
	Needed   *float64       `json:"needed_seconds,omitempty"` // total time that a decision probably needs
	// and the length of its windows, if they must be longer
	Window      *float64         `json:"needed_window_seconds,omitempty"`
	Interrupted bool             `json:"interrupted"`
	Warnings    []string         `json:"warnings"`
	Withheld    *measure.Others  `json:"withheld,omitempty"` // CPU time that others took; absent if they took none
	Values      []jsonPair       `json:"values"`
	Baseline    *jsonSide        `json:"baseline,omitempty"`
	Candidate   jsonSide         `json:"candidate"`
	Time        time.Time        `json:"time"`
	Revision    string           `json:"revision,omitempty"`
	Tool        string           `json:"tool"`
	Fingerprint string           `json:"machine_fingerprint"`
	Machine     *json.RawMessage `json:"machine,omitempty"`
	Spec        string           `json:"spec"` // text of the gate.yaml
}

type jsonRow struct {
	Metric    measure.Metric `json:"metric"`
	Verdict   decide.Verdict `json:"verdict"`
	Margin    *float64       `json:"margin,omitempty"`
	Min       *float64       `json:"min,omitempty"`
	Max       *float64       `json:"max,omitempty"`
	Baseline  *float64       `json:"baseline,omitempty"`
	Candidate *float64       `json:"candidate,omitempty"`
	Change    *float64       `json:"change,omitempty"` // relative to the baseline or the limit
	Lo        *float64       `json:"lo,omitempty"`     // bounds of the change
	Hi        *float64       `json:"hi,omitempty"`
	Pairs     int            `json:"pairs"` // number of pairs behind the verdict
	// slope of the logarithm of the factor by which the candidate is worse, over the withheld time
	Slope *float64 `json:"slope,omitempty"`
}

type jsonAccuracy struct {
	Limit string   `json:"limit"`
	Value *float64 `json:"value,omitempty"`
	Miss  string   `json:"miss,omitempty"`
	Note  string   `json:"note"`
}

// jsonPair is a metric's values in a pair.
type jsonPair struct {
	Baseline  map[measure.Metric]float64 `json:"baseline,omitempty"`
	Candidate map[measure.Metric]float64 `json:"candidate"`
}

type jsonSide struct {
	Model   string `json:"model,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	Engine  string `json:"engine,omitempty"`
	Saved   string `json:"saved,omitempty"`
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
	if a := r.Accuracy; a != nil {
		d.Accuracy = &jsonAccuracy{a.Limit, gate.Number(a.Value), a.Miss, a.Note}
	}
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

func newJSONSide(s gate.Subject) jsonSide {
	return jsonSide{Model: s.Files[0].Source.Path, SHA256: s.Files[0].Source.Digest, Runtime: s.Runtime, Engine: s.Engine}
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
