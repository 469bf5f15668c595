package html

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/report"
	"tuner/report/figures"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// Name is the name of the page in analyze.yaml.
const Name = "html"

// FileName is the file's name in the output folder.
const FileName = "report.html"

// Format writes report.html.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return Name }

// Files implements report.Format.
func (Format) Files(r analyze.Result, o report.Output) []report.File {
	return []report.File{{Path: FileName, Write: func(w io.Writer) error { return Write(w, r, o.Has(spec.FormatRepository)) }}}
}

// Write writes report.html. With withRepository the page shows how to serve the repository beside
// it.
func Write(w io.Writer, r analyze.Result, withRepository bool) error {
	g := figures.NewRanking(r)
	page := Page{
		Result: r, Verdict: newVerdict(r), Say: say, Loosened: r.Verdict.Loosened(r.Goal), About: about(r), Trust: trust(r),
		Effort: figures.Effort(r), View: slices.Concat(figures.RequestNotes(r), figures.ViewNotes(r), figures.ServerNotes(r)), Labels: metricLabels(r),
		Ranking: Section{Title: "Ranking", Heads: figures.Titles(g.Heads), Cells: g.Cells},
		Notes:   pageNotes(r), Failures: pageFailures(r), Rejected: figures.Rejections(r), LeftOut: figures.FoldLines(r), Origin: origin(r),
		Accuracy: accuracySection(r),
		Steps:    Section{Title: "Steps of the run", Heads: figures.StepHeads, Cells: figures.StepRows(r.Steps)},
	}
	if r.ByBestLoad() && r.Recorded == "" {
		page.State = string(r.Verdict.State)
	}
	for _, c := range r.Configs {
		page.Titles = append(page.Titles, figures.ConfigText(c))
	}
	for _, s := range figures.Explanation(r) {
		page.Why = append(page.Why, newSection(s))
	}
	if best, ok := r.Winner(); ok {
		config, err := report.ConfigText(r)
		if err != nil {
			return err
		}
		page.Config = config
		if withRepository {
			serve := "tuner serve --model-repository " + report.RepositoryDir
			for _, o := range r.Header.Libraries().Options() {
				serve += " " + o.Flag + " " + words.ShellWord(o.Path)
			}
			triton := `tritonserver --model-repository="$PWD/` + report.RepositoryDir + `"`
			for _, option := range best.ServerFlags() {
				serve, triton = serve+" "+option, triton+" "+option
			}
			page.Deploy = []string{
				serve, triton,
				"curl --fail localhost:8000/v2/health/ready",
			}
		}
	}
	return writePage(w, page)
}

// about describes the model, the machine and the date of the measurement.
func about(r analyze.Result) []string {
	var list []string
	if text := figures.RequestsText(r); text != "" {
		list = append(list, "requests of "+text)
	}
	if r.Recorded != "" {
		return append(list, "measured by another program")
	}
	return append(list, figures.MachineText(r.Header.Machine), r.Header.Created.UTC().Format("2006-01-02"))
}

// newVerdict splits the headline into parts, the figure first.
func newVerdict(r analyze.Result) Verdict {
	a := figures.AnswerOf(r)
	v := Verdict{Summary: a.Headline}
	if n := len(r.Models); n > 0 && len(a.Lines) > n {
		for _, l := range a.Lines[1 : 1+n] {
			v.Shares = append(v.Shares, l.String())
		}
	}
	if len(a.Lines) > 0 {
		v.Best = a.Lines[0].String()
	}
	isOpen := r.ByBestLoad() && r.Recorded == "" && r.Verdict.State == verdict.Unfinished
	if isOpen {
		if text := r.Verdict.Sentences(r.Goal)[0]; text != v.Summary {
			v.Open = text
		}
	}
	best, ok := r.Winner()
	if !ok {
		v.Figure, v.Claim = "Nothing", "was measured"
		if _, ok := r.Nearest(); ok {
			v.Figure, v.Claim = "None", "satisfies "+cmp.Or(figures.MissedText(r), "the limits")
			if isOpen {
				v.Claim = "so far " + v.Claim
			}
		}
		return v
	}
	gained(&v, r.Goal, best.Candidate.IsDefault(), best.Gain, figures.ObjectiveValues(r.Goal, best))
	if figure, text, ok := figures.Growth(r); ok {
		v.Figure, v.Claim = figure, text+figures.Within(r.Goal)
	}
	if r.Rank != spec.RankTop3Mean {
		v.Claim += doubtOf(r.Verdict)
	}
	return v
}

// doubtOf returns the probability with which an answer at the edge keeps the limits; "" for a
// recommended one.
func doubtOf(v verdict.Verdict) string {
	if v.Recommended != nil || v.Edge == nil {
		return ""
	}
	return ", with a probability of " + v.Edge.HoldsText()
}

// say describes a decision under other limits. The page shows the choices with their figures beside
// the text.
func say(goal search.Goal, v verdict.Verdict) Verdict {
	answer := v.Answer()
	switch {
	case answer == nil:
		return Verdict{Figure: "Nothing", Claim: "was measured"}
	case v.Nearest != nil:
		return Verdict{Figure: "None", Claim: "satisfies " + limitsText(goal)}
	}
	var words Verdict
	var values []string
	for _, t := range goal.Objective.Terms {
		values = append(values, t.Metric.Format(answer.Values[t.Metric].Value))
	}
	gained(&words, goal, answer.Candidate.IsDefault(), answer.Gain, strings.Join(values, ", "))
	words.Claim += doubtOf(v)
	return words
}

// limitsText lists a goal's constraints.
func limitsText(goal search.Goal) string {
	var list []string
	for _, c := range goal.Constraints {
		list = append(list, verdict.ConstraintText(c))
	}
	return strings.Join(list, ", ")
}

// gained writes an answer's gain over the default. value is the objective at the answer, for an
// unknown gain.
func gained(v *Verdict, goal search.Goal, isDefault bool, gain *measure.Estimate, value string) {
	switch {
	case isDefault:
		v.Figure, v.Claim = "1 ×", "the default is the best that was found"+figures.Within(goal)
	case gain == nil:
		v.Figure, v.Claim = value, "at its best load"+figures.Within(goal)
	default:
		v.Figure, v.Claim, _ = strings.Cut(verdict.Words{Goal: goal}.GainText(measure.Estimate{Value: gain.Value, Lo: gain.Value, Hi: gain.Value}), " × ")
		v.Figure, v.Claim = v.Figure+" ×", v.Claim+figures.Within(goal)
	}
}

// trust lists the reasons to trust or to doubt the answer. It is empty if there are none.
func trust(r analyze.Result) []Chip {
	answer := r.Verdict.Answer()
	best, ok := r.Winner()
	if answer == nil || !ok || r.Recorded != "" || !r.ByBestLoad() {
		return nil
	}
	var list []Chip
	add := func(isDoubt bool, link, text, hint string) {
		list = append(list, Chip{Text: text, Hint: hint, Link: link, IsDoubt: isDoubt})
	}
	if len(answer.Limits) > 0 {
		hint := "The probability that the answer keeps all limits. If it is too low, loosen a limit, or measure longer with a larger budget."
		add(r.Verdict.Recommended == nil, "#curve", "limits kept: "+answer.HoldsText(), hint)
	}
	if best.Best != nil && best.Best.Confirmed {
		hint := "The answer was measured again on fresh engine processes, in turn with the default."
		if r.Header.ReloadsFinals() {
			hint = "The remote server loaded the answer again, and it was measured again. The server itself was not restarted."
		}
		add(false, "#candidates", figures.Again(r, best.Best.Launches), hint)
	} else {
		add(true, "#candidates", "not measured again", "The figures are those of the search. A larger budget leaves time to measure the answer again.")
	}
	if text, isMuch := figures.WithheldText(r); isMuch {
		add(true, "#origin", text, "Figures describe the machine with this load on average. Measure again on a machine without other load.")
	} else if text != "" {
		add(false, "#origin", text, "On average, others took less than 1 % of the CPU time while windows were measured.")
	}
	if text := figures.RequestsText(r); text != "" {
		add(false, "#origin", "requests of "+text, "All figures hold for requests of this shape. If yours differ, set load.inputs in the profile.")
	}
	return append(list, accuracyChips(r, best)...)
}

// accuracyChips name the data on which an answer in another precision was compared with the
// original.
func accuracyChips(r analyze.Result, best analyze.Config) []Chip {
	if figures.AccuracyReason(r, best) == "" {
		return nil
	}
	if len(r.Served()) > 0 {
		return []Chip{{Text: "accuracy of other precisions compared", Hint: figures.AccuracyReason(r, best), Link: "#accuracy"}}
	}
	isSynthetic := false // all comparisons use the same data
	for _, v := range r.Header.Variants {
		for _, compared := range v.Accuracy {
			isSynthetic = compared.Synthetic
		}
	}
	chip := Chip{Text: fmt.Sprintf("accuracy of %s compared on %s", best.Setup.Precision, r.Accuracy.Data), Hint: figures.AccuracyReason(r, best), Link: "#accuracy"}
	if isSynthetic {
		chip.Text, chip.IsDoubt = fmt.Sprintf("accuracy of %s on random data", best.Setup.Precision), true
	}
	return []Chip{chip}
}

func metricLabels(r analyze.Result) map[measure.Metric]string {
	labels := map[measure.Metric]string{}
	for _, m := range append(append(measure.Metrics(), measure.Scale), r.Goal.Metrics()...) {
		labels[m] = verdict.Label(m)
	}
	return labels
}

// pageNotes returns the notes on the figures. The page shows ties, hidden rows and failures in
// other places.
func pageNotes(r analyze.Result) []string {
	lines := append(figures.AssignedNotes(r), figures.FlagNotes(r)...)
	lines = append(lines, figures.WithheldNotes(r)...)
	lines = append(lines, r.Ending.Notes...)
	lines = append(lines, figures.ReusedNotes(r)...)
	if r.Ending.Interrupted {
		lines = append(lines, figures.Interruption(r))
	}
	return lines
}

// pageFailures returns the failures, which have their own title.
func pageFailures(r analyze.Result) []string {
	lines := figures.FailureNotes(r)
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, figures.FailedNote)
	}
	return lines
}

func newSection(s figures.Section) Section {
	return Section{Title: s.Title, Lines: s.Lines, Heads: figures.Titles(s.Heads), Cells: s.Cells, Notes: s.Notes}
}

// accuracySection makes the table of the variants.
func accuracySection(r analyze.Result) Section {
	s := Section{Title: "Accuracy of the variants", Heads: figures.VariantHeads, Cells: figures.VariantRows(r)}
	if data := figures.AccuracyData(r); data != "" {
		s.Lines = []string{fmt.Sprintf("Compared with fp32 on cpu, on %s. Limit: %s.", data, figures.AccuracyLimit(r))}
	}
	for _, one := range r.OfEach() {
		for _, v := range one.Header.Variants {
			for _, note := range v.Notes {
				s.Notes = append(s.Notes, fmt.Sprintf("%s: %s.", v.Precision, strings.TrimSuffix(note, ".")))
			}
		}
	}
	return s
}

// origin lists everything that is needed to reproduce the result.
func origin(r analyze.Result) []Fact {
	if r.Recorded != "" {
		return []Fact{{Name: "Measured by another program", Value: r.Recorded}}
	}
	h := r.Header
	facts := []Fact{
		{Name: "Machine", Value: fmt.Sprintf("%s (fingerprint %s)", figures.MachineText(h.Machine), h.Fingerprint)},
		{Name: "Campaign begun", Value: h.Created.UTC().Format("2006-01-02 15:04 MST")},
		{Name: "Ended", Value: r.Ending.Reason},
		{Name: "Time", Value: fmt.Sprintf("%s: %s", r.Account.Elapsed.Round(time.Second), figures.AccountText(r.Account))},
	}
	for _, p := range r.Placements {
		facts = append(facts, Fact{Name: "Placement", Value: p.String()})
	}
	for _, runtime := range figures.Runtimes(h) {
		facts = append(facts, Fact{Name: "ONNX Runtime", Value: fmt.Sprintf("%s (%s)", runtime.Version, runtime.Flavour)})
	}
	for _, one := range r.OfEach() {
		for _, m := range one.Header.Models {
			name := "Model, " + m.Precision
			if len(r.Served()) > 0 {
				name = fmt.Sprintf("Model %s, %s", one.Header.Model, m.Precision)
			}
			facts = append(facts, Fact{Name: name, Value: fmt.Sprintf("%s, SHA-256 %s", m.Path, m.SHA256)})
		}
	}
	return append(facts,
		Fact{Name: "Profile", Value: fmt.Sprintf("%s, SHA-256 %s, seed %d", h.Spec.Path, h.Spec.SHA256, h.Seed)},
		Fact{Name: "tuner", Value: h.Tool})
}
