package ortsweep

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/ortsweep/race"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// mostRows is the number of candidates in the table. The answer must stay on the screen.
const mostRows = 30

// WriteTable writes the result for a terminal: the answer in a sentence, the candidates, what was
// left out, and doubts about the figures.
func WriteTable(w io.Writer, r Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.headline())
	fmt.Fprintf(&b, "%s: %s; %s in %s; ONNX Runtime %s.\n\n", r.Setup.Subject.Name, r.measured(), words.Count(r.Outcome.Windows, "window"),
		r.Outcome.Elapsed.Round(time.Second), strings.Join(r.runtimes(), ", "))
	columns := []terminal.Column{{Title: "value", Right: true}, {Title: "gain (95 % interval)", Right: true}, {Title: "windows", Right: true},
		{Title: "verdict"}, {Title: "settings"}}
	var rows [][]string
	for _, s := range r.Race.Standings[:min(mostRows, len(r.Race.Standings))] {
		rows = append(rows, r.row(s))
	}
	if err := terminal.WriteTable(&b, columns, rows); err != nil {
		return err
	}
	for _, line := range r.notes() {
		fmt.Fprintln(&b, line)
	}
	if _, err := io.WriteString(w, terminal.Fold(b.String(), terminal.Width)); err != nil {
		return fmt.Errorf("cannot write table: %w", err)
	}
	return nil
}

// headline returns the answer.
func (r Result) headline() string {
	win, ok := r.winner()
	switch {
	case !ok:
		return "No answer: " + r.Race.Why + r.remedy() + "."
	case win.Verdict == race.Base:
		return "Not proven: " + r.Race.Why + r.remedy() + "."
	case win.Candidate.IsDefault() && len(r.Race.Standings) == 1:
		return "Default stays: there is nothing else to try."
	case win.Candidate.IsDefault():
		return "Default stays: " + r.Race.Why + "."
	case !r.Race.Confirmed:
		return fmt.Sprintf("Best so far, not confirmed: %s; gain over the default %s.", SettingText(win.Candidate), gainText(win.Gain))
	}
	return fmt.Sprintf("Winner: %s; gain over the default on fresh launches %s.", SettingText(win.Candidate), gainText(win.Gain))
}

// SoFar describes the answer of a race that runs. isBetter means that it is shown to be better than
// the default.
func SoFar(r race.Result) (text string, isBetter bool) {
	for _, s := range r.Standings {
		switch {
		case s.Candidate.IsDefault() || s.Gain.Value <= 0:
		case s.Verdict == race.Winner:
			return fmt.Sprintf("Best so far: %s; gain over the default %s.", SettingText(s.Candidate), gainText(s.Gain)), true
		case s.Verdict == race.Ahead:
			return fmt.Sprintf("Ahead, not proven: %s; gain over the default %s.", SettingText(s.Candidate), gainText(s.Gain)), false
		}
	}
	return "Nothing is better than the default so far.", false
}

// remedy returns the remedy for a race that was too short.
func (r Result) remedy() string {
	if !r.Race.Unproven || r.Outcome.Interrupted {
		return ""
	}
	return "; try a longer --budget"
}

// measured describes the figures.
func (r Result) measured() string {
	s := r.Setup.Sweep
	if s.Measure == spec.SweepThroughput {
		return fmt.Sprintf("rows per second of %s at batch %d", words.Count(s.Sessions, "session"), s.Batch)
	}
	return fmt.Sprintf("mean compute time of one execution at batch %d", s.Batch)
}

// gainText prints a ratio with its interval as percentages: "+130 % (+121 % to +139 %)". It omits a
// missing interval.
func gainText(e stats.Estimate) string {
	if rounded(e.Lo) == rounded(e.Hi) || e.Hi > 100*e.Value { // from one window, or from two that differ much
		return percent(e.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", percent(e.Value), percent(e.Lo), percent(e.Hi))
}

func percent(ratio float64) string {
	p := 100 * (ratio - 1)
	if math.Abs(p) >= 99.95 { // digits after the point would be noise
		return fmt.Sprintf("%+.0f %%", p)
	}
	return fmt.Sprintf("%+.1f %%", p)
}

// ValueText prints a figure of the sweep.
func (s Setup) ValueText(v float64) string {
	if s.Unit() == measure.InferPerSecond {
		return measure.Throughput.Format(v)
	}
	return measure.ComputeInfer.Format(v)
}

// row returns a candidate's row of the table.
func (r Result) row(s race.Standing) []string {
	verdict := string(s.Verdict)
	switch s.Verdict {
	case race.Passed:
		verdict = "passed over"
	case race.Ahead:
		verdict = "ahead, unproven"
	}
	row := []string{"", "", strconv.Itoa(s.Windows), verdict, SettingText(s.Candidate)}
	if s.Value.Value > 0 {
		row[0] = r.Setup.ValueText(s.Value.Value)
	}
	if s.Gain.Value > 0 && !s.Candidate.IsDefault() {
		row[1] = gainText(s.Gain)
	}
	return row
}

// notes returns the lines below the table.
func (r Result) notes() []string {
	var lines []string
	if len(r.Race.Standings) > 1 {
		lines = append(lines, "gain: how much faster than the default in the same rounds; without an interval where windows are too few")
	}
	if more := len(r.Race.Standings) - mostRows; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more in result.json.", more))
	}
	for _, s := range r.Race.Standings {
		if s.Verdict == race.Failed {
			first, _, _ := strings.Cut(s.Reason, "\n")
			lines = append(lines, fmt.Sprintf("failed: %s: %s", SettingText(s.Candidate), first))
		}
	}
	absent := r.absent()
	if len(absent) > 0 {
		lines = append(lines, "not available here: "+strings.Join(absent, ", ")+" (why: result.json; `tuner doctor` says how to get them)")
	}
	for _, o := range r.reasons() {
		if !slices.ContainsFunc(absent, func(provider string) bool { return strings.Contains(o.Example, "execution_provider="+provider) }) {
			lines = append(lines, fmt.Sprintf("out: %s (%s)", o.Reason, exampleText(o)))
		}
	}
	for _, v := range r.Setup.Variants {
		for _, provider := range slices.Sorted(maps.Keys(v.Rejected)) {
			where := ""
			if provider != "" {
				where = " on " + provider
			}
			lines = append(lines, fmt.Sprintf("rejected: %s%s: %s", v.Precision, where, v.Rejected[provider]))
		}
	}
	assigned := r.assigned()
	for _, provider := range slices.Sorted(maps.Keys(assigned)) {
		lines = append(lines, fmt.Sprintf("%s took %s", provider, assigned[provider]))
	}
	return append(lines, r.warnings()...)
}

// absent returns the execution providers that `auto` found not to work here. The user did not name
// them.
func (r Result) absent() []string {
	auto := slices.ContainsFunc(r.Setup.Sweep.Knobs, func(k search.Knob) bool {
		return k.Name == search.KnobExecutionProvider && slices.Contains(k.Values, knobs.Auto)
	})
	var list []string
	for _, o := range r.Outs {
		settings := o.Candidate.Settings()
		if auto && len(settings) == 1 && settings[0].Knob == search.KnobExecutionProvider {
			list = append(list, string(settings[0].Value))
		}
	}
	return list
}

func exampleText(o reason) string {
	if o.Count == 1 {
		return o.Example
	}
	return fmt.Sprintf("%d combinations, such as %s", o.Count, o.Example)
}
