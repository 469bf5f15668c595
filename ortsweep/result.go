package ortsweep

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"tuner/internal/words"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/ort/sessionoption"
	"tuner/ortsweep/race"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// Result is the result of a sweep, with everything that its files contain.
type Result struct {
	Setup   Setup
	Outcome Outcome
	Race    race.Result
	Outs    []race.Out        // candidates that were left out before the measurement
	Models  map[string]string // model files by precision, without the user's own: Engines.ModelFiles
}

// NewResult sums up a sweep at its end, or at an interruption.
func NewResult(s Setup, r *race.Race, outs []race.Out, o Outcome, models map[string]string) Result {
	result := r.Result()
	return Result{Setup: s, Outcome: o, Race: result, Outs: append(slices.Clone(outs), result.Outs...), Models: models}
}

// Unit returns the unit of the sweep's figures.
func (s Setup) Unit() measure.Unit {
	if s.Sweep.Measure == spec.SweepThroughput {
		return measure.InferPerSecond
	}
	return measure.Seconds
}

// winner returns the answer's standing, and false if the default could not be measured.
func (r Result) winner() (race.Standing, bool) {
	for _, s := range r.Race.Standings {
		if s.Candidate.Key() == r.Race.Winner.Key() && s.Verdict != race.Failed {
			return s, true
		}
	}
	return race.Standing{}, false
}

// reasons returns the candidates that were left out, by reason, in order of first occurrence.
func (r Result) reasons() []reason {
	var list []reason
	for _, o := range r.Outs {
		i := slices.IndexFunc(list, func(known reason) bool { return known.Reason == o.Reason })
		if i < 0 {
			list = append(list, reason{Reason: o.Reason, Example: o.Candidate.Key()})
			i = len(list) - 1
		}
		list[i].Count++
	}
	return list
}

// reason is a reason why candidates were left out.
type reason struct {
	Reason  string `json:"reason"`  // why candidates were left out
	Example string `json:"example"` // one of these candidates
	Count   int    `json:"count"`   // number of these candidates
}

// warnings lists doubts about the figures.
func (r Result) warnings() []string {
	var list []string
	if r.Outcome.Interrupted {
		list = append(list, "The sweep was interrupted: nothing is confirmed on fresh launches.")
	}
	if taken := r.Outcome.Others.Corrected("the average"); taken != "" {
		list = append(list, taken)
	}
	for _, flag := range slices.Sorted(maps.Keys(r.Outcome.Flagged)) {
		if text := flagText(flag); text != "" {
			list = append(list, fmt.Sprintf("%d of %s: %s.", r.Outcome.Flagged[flag], words.Count(r.Outcome.Windows, "window"), text))
		}
	}
	for _, v := range r.Setup.Variants {
		if isSynthetic(v) {
			list = append(list, "Accuracy was checked on synthetic inputs; name your own with --data FILE, or accuracy: {data: FILE} in a file.")
			break
		}
	}
	return list
}

// isSynthetic reports whether a variant was compared on random inputs.
func isSynthetic(v journal.Variant) bool {
	for _, report := range v.Accuracy {
		if report.Synthetic {
			return true
		}
	}
	return false
}

// flagText returns the meaning of a window's flag for a sweep's figures; "" if it has none.
func flagText(f measure.Flag) string {
	switch f {
	case measure.FlagForeign, measure.FlagForeignGPU, measure.FlagSteal, measure.FlagThrottled, measure.FlagErrors:
		return f.Text()
	case measure.FlagClientCPU:
		return "the clients were short of CPU time"
	}
	return ""
}

// document is result.json, schema 1. docs/reference/ortsweep-results-fields.md is made of it.
type document struct {
	Schema   int          `json:"schema"`                                // version of this format: 1
	Tool     string       `json:"tool"`                                  // name and version of the program that measured
	Model    jsonModel    `json:"model"`                                 // the model
	Measure  string       `json:"measure"`                               // metric that was measured, as in ortsweep.yaml
	Unit     measure.Unit `json:"unit" jsonschema:"enum=infer/s,enum=s"` // unit of the figures
	Batch    int          `json:"batch"`                                 // inferences per run of a session
	Sessions int          `json:"sessions"`                              // number of sessions that work at the same time
	Seed     uint64       `json:"seed"`                                  // seed of all random choices
	Budget   float64      `json:"budget_seconds"`                        // time that the sweep may take, in seconds
	Elapsed  float64      `json:"elapsed_seconds"`                       // time that the sweep took, in seconds
	// the user interrupted the sweep; its figures are not confirmed
	Interrupted bool       `json:"interrupted"`
	Winner      jsonWinner `json:"winner"` // the answer
	// candidates that were measured, or that failed, the best first
	Candidates []jsonStanding `json:"candidates"`
	Out        []reason       `json:"out"` // candidates that were left out, by reason
	// precisions of the model, with their accuracy
	Variants []journal.Variant `json:"variants"`
	// description of the nodes that an execution provider took, by provider; with several builds of
	// ONNX Runtime, by build and provider
	Assigned map[string]string `json:"assigned,omitempty"`
	// builds of ONNX Runtime as flavour@version, the default's first
	Runtimes []string `json:"runtimes"`
	// CPU time that others took from the sessions; it is taken out of values and gains, and not out
	// of windows; absent if others took none
	Withheld *jsonWithheld `json:"withheld,omitempty"`
	Warnings []string      `json:"warnings"` // doubts about the figures, in sentences
	// fingerprint of the machine: figures of different fingerprints do not compare
	Fingerprint string `json:"machine_fingerprint"`
	// facts of the machine, as `host` of `tuner doctor --format json`
	Machine json.RawMessage `json:"machine,omitempty"`
	Spec    string          `json:"spec"` // text of the ortsweep.yaml
}

// jsonWithheld is CPU time that others took, and its effect on figures.
type jsonWithheld struct {
	measure.Others
	// slope of a figure's logarithm over the share of CPU time that others took, with larger figures
	// better
	Slope float64 `json:"slope"`
}

// jsonModel is the model that was swept.
type jsonModel struct {
	Name  string     `json:"name"`  // name of the model
	Files []jsonFile `json:"files"` // its files, one for each precision
}

// jsonFile is the model file of one precision.
type jsonFile struct {
	Precision string `json:"precision"` // precision of the file, such as int8
	Path      string `json:"path"`      // path of the file
	SHA256    string `json:"sha256"`    // SHA-256 of the file with its external data
	Bytes     int64  `json:"bytes"`     // size of the file with its external data, in bytes
}

// jsonWinner is the answer of a sweep.
type jsonWinner struct {
	Settings search.Candidate `json:"settings"` // settings of the winner, empty for the default
	Gain     interval         `json:"gain"`     // factor over the default: 1.25 is 25 % better
	// the gain was measured again on fresh launches
	Confirmed bool `json:"confirmed"`
	// the budget or an interruption ended the race before its question was answered; empty settings
	// are then no answer
	Unproven bool   `json:"unproven"`
	Why      string `json:"why"` // why these settings are the answer, in sentences
}

// jsonStanding is a candidate with its figures.
type jsonStanding struct {
	Settings search.Candidate `json:"settings"` // settings of the candidate, empty for the default
	Verdict  race.Verdict     `json:"verdict"`  // place of the candidate in the race
	// why the candidate was dropped or failed; absent for others
	Reason string   `json:"reason,omitempty"`
	Value  interval `json:"value"` // its figure, in the document's unit
	Gain   interval `json:"gain"`  // factor over the default: 1.25 is 25 % better
	Final  bool     `json:"final"` // it was measured in the last heat
	// highest memory of the engine's process, in bytes; 0 where that never served this candidate
	// alone
	Memory int64 `json:"memory_bytes"`
	// every figure in the document's unit, by heat and round
	Windows [][]float64 `json:"windows"`
}

// interval is a value with its 95 % interval.
type interval struct {
	Value float64 `json:"value"` // the value, with six significant digits
	Lo    float64 `json:"lo"`    // lower end of its 95 % interval
	Hi    float64 `json:"hi"`    // upper end of its 95 % interval
}

// newInterval rounds to six significant digits. Further digits are rounding errors of logarithms,
// which differ between processors.
func newInterval(e stats.Estimate) interval {
	return interval{rounded(e.Value), rounded(e.Lo), rounded(e.Hi)}
}

func rounded(x float64) float64 {
	// the interval of two windows that differ much may be infinite, which JSON cannot represent
	if x = min(x, math.MaxFloat32); x == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// WriteJSON writes the result for programs.
func WriteJSON(w io.Writer, r Result) error {
	s := r.Setup
	d := document{
		Schema: 1, Tool: s.Tool, Model: jsonModel{Name: s.Subject.Name}, Measure: s.Sweep.Measure, Unit: r.Setup.Unit(), Batch: s.Sweep.Batch,
		Sessions: s.Sweep.Sessions, Seed: s.Sweep.Search.Seed, Budget: s.Sweep.Search.Budget.Time.Seconds(), Elapsed: r.Outcome.Elapsed.Seconds(),
		Interrupted: r.Outcome.Interrupted, Candidates: []jsonStanding{}, Out: append([]reason{}, r.reasons()...),
		Variants: append([]journal.Variant{}, s.Variants...), Assigned: r.assigned(), Runtimes: r.runtimes(),
		Warnings: append([]string{}, r.warnings()...), Fingerprint: s.Fingerprint, Machine: s.Machine, Spec: string(s.Sweep.Text),
	}
	if r.Outcome.Others.Mean > 0 {
		d.Withheld = &jsonWithheld{r.Outcome.Others, rounded(r.Race.Slope)}
	}
	for _, f := range s.Subject.Files {
		d.Model.Files = append(d.Model.Files, jsonFile{f.Precision, f.Source.Path, f.Source.Digest, f.Bytes})
	}
	d.Winner = jsonWinner{Settings: r.Race.Winner, Confirmed: r.Race.Confirmed, Unproven: r.Race.Unproven, Why: r.Race.Why}
	for _, st := range r.Race.Standings {
		if st.Candidate.Key() == r.Race.Winner.Key() {
			d.Winner.Gain = newInterval(st.Gain)
		}
		d.Candidates = append(d.Candidates, jsonStanding{Settings: st.Candidate, Verdict: st.Verdict, Reason: st.Reason,
			Value: newInterval(st.Value), Gain: newInterval(st.Gain), Final: st.Final, Memory: r.Outcome.Memory[st.Candidate.Key()], Windows: st.Values})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("cannot write the result as JSON: %w", err)
	}
	return nil
}

// assigned returns the nodes that each execution provider took, if known.
func (r Result) assigned() map[string]string {
	f := r.Setup.Facts
	if len(f.Runtimes) == 0 {
		return f.Assigned
	}
	all := map[string]string{}
	for _, runtime := range f.Runtimes {
		for provider, text := range runtime.Assigned {
			all[runtime.Name+" "+provider] = text
		}
	}
	return all
}

// runtimes returns the names of the ONNX Runtime builds, the default's first.
func (r Result) runtimes() []string {
	var names []string
	for _, b := range r.Setup.Runtimes {
		names = append(names, b.Name())
	}
	if len(names) == 0 {
		names = append(names, r.Setup.Runtime.Name())
	}
	return names
}

// runtimeOf returns the build that serves a candidate.
func (r Result) runtimeOf(c search.Candidate) journal.RuntimeInfo {
	name, _ := c.Get(search.KnobRuntime)
	for _, b := range r.Setup.Runtimes {
		if b.Name() == string(name) {
			return b
		}
	}
	return r.Setup.Runtime
}

// SettingText describes a candidate for people in few words: "2 threads, int8, no spinning".
func SettingText(c search.Candidate) string {
	if c.IsDefault() {
		return "default"
	}
	var parts []string
	for _, s := range c.Settings() {
		parts = append(parts, shortSetting(s))
	}
	return strings.Join(parts, ", ")
}

func shortSetting(s search.Setting) string {
	text := string(s.Value)
	if option, known := sessionoption.Find(s.Knob); known {
		return option.Text(text)
	}
	switch s.Knob {
	case search.KnobRuntime, search.KnobExecutionProvider, search.KnobPrecision:
		return text
	}
	name := strings.TrimPrefix(s.Knob, sessionoption.Prefix)
	switch text {
	case "true":
		return name
	case "false":
		return "no " + name
	}
	return name + " " + text
}
