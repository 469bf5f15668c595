package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/html"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// WriteHTML writes report.html: the answer, charts and every configuration as one page that needs nothing but itself. With
// withRepository it says how to serve the repository beside it.
func WriteHTML(w io.Writer, r analyze.Result, withRepository bool) error {
	g := newGrid(r)
	page := html.Page{
		Result: r, Verdict: newVerdict(r), Say: say, Loosened: r.Verdict.Loosened(r.Goal), About: about(r), Trust: trust(r),
		Effort: effort(r), View: slices.Concat(requestNotes(r), viewNotes(r), serverNotes(r)), Labels: metricLabels(r),
		Ranking: html.Section{Title: "Ranking", Heads: g.headers(), Cells: g.cells},
		Notes:   pageNotes(r), Failures: pageFailures(r), Rejected: rejections(r), LeftOut: foldLines(r), Origin: origin(r),
		Accuracy: accuracySection(r),
		Steps:    html.Section{Title: "Steps of the run", Heads: stepHeads, Cells: stepRows(r.Steps)},
	}
	if r.ByBestLoad() && r.Recorded == "" {
		page.State = string(r.Verdict.State)
	}
	for _, c := range r.Configs {
		page.Titles = append(page.Titles, stageSetup(c))
	}
	for _, s := range explanation(r) {
		page.Why = append(page.Why, newSection(s))
	}
	if _, ok := r.Winner(); ok {
		var config strings.Builder
		if err := WriteConfig(&config, r); err != nil {
			return err
		}
		page.Config = config.String()
		if withRepository {
			page.Deploy = []string{
				"tuner serve --model-repository " + repositoryDir, `tritonserver --model-repository="$PWD/` + repositoryDir + `"`,
				"curl --fail localhost:8000/v2/health/ready",
			}
		}
	}
	return html.Write(w, page)
}

// about says what was measured, on which machine, and when.
func about(r analyze.Result) []string {
	var list []string
	if text := requestsText(r); text != "" {
		list = append(list, "requests of "+text)
	}
	if r.Recorded != "" {
		return append(list, "measured by another program")
	}
	return append(list, machineText(r.Header.Machine), r.Header.Created.UTC().Format("2006-01-02"))
}

// newVerdict says the headline once more in parts, the figure first.
func newVerdict(r analyze.Result) html.Verdict {
	a := AnswerOf(r)
	v := html.Verdict{Summary: a.Headline}
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
			v.Figure, v.Claim = "None", "satisfies "+missedText(r)
			if isOpen {
				v.Claim = "so far " + v.Claim
			}
		}
		return v
	}
	gained(&v, r.Goal, best.Candidate.IsDefault(), best.Gain, figures(r.Goal, best))
	if r.Rank != spec.RankTop3Mean {
		v.Claim += doubtOf(r.Verdict)
	}
	return v
}

// doubtOf says how likely an answer at the edge keeps the limits; "" of what is recommended.
func doubtOf(v verdict.Verdict) string {
	if v.Recommended != nil || v.Edge == nil {
		return ""
	}
	return ", with a probability of " + v.Edge.HoldsText()
}

// say puts a decision under other limits into words. The page shows the choices with their figures beside them.
func say(goal search.Goal, v verdict.Verdict) html.Verdict {
	answer := v.Answer()
	switch {
	case answer == nil:
		return html.Verdict{Figure: "Nothing", Claim: "was measured"}
	case v.Nearest != nil:
		return html.Verdict{Figure: "None", Claim: "satisfies " + limitsText(goal)}
	}
	var words html.Verdict
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

// gained says what an answer gains over the default; value is the objective at the answer, for where that is not known.
func gained(v *html.Verdict, goal search.Goal, isDefault bool, gain *measure.Estimate, value string) {
	switch {
	case isDefault:
		v.Figure, v.Claim = "1 ×", "the default is the best that was found"+within(goal)
	case gain == nil:
		v.Figure, v.Claim = value, "at its best load"+within(goal)
	default:
		v.Figure, v.Claim, _ = strings.Cut(verdict.Words{Goal: goal}.GainText(measure.Estimate{Value: gain.Value, Lo: gain.Value, Hi: gain.Value}), " × ")
		v.Figure, v.Claim = v.Figure+" ×", v.Claim+within(goal)
	}
}

// quiet is the share of the CPU time that others may take before the page doubts the figures. Throughput falls in
// proportion, and two configurations that differ by less count as equal.
const quiet = 0.01

// trust lists the reasons to trust the answer, or to doubt it. It is empty where there is none.
func trust(r analyze.Result) []html.Chip {
	answer := r.Verdict.Answer()
	best, ok := r.Winner()
	if answer == nil || !ok || r.Recorded != "" || !r.ByBestLoad() {
		return nil
	}
	var list []html.Chip
	add := func(isDoubt bool, link, text, hint string) {
		list = append(list, html.Chip{Text: text, Hint: hint, Link: link, IsDoubt: isDoubt})
	}
	if len(answer.Limits) > 0 {
		hint := "The probability that the answer keeps all limits. Where it is too low, choose a looser limit, or measure longer: a larger budget."
		add(r.Verdict.Recommended == nil, "#curve", "limits kept: "+answer.HoldsText(), hint)
	}
	if best.Best != nil && best.Best.Confirmed {
		add(false, "#candidates", "measured again on "+processes(best.Best.Launches), "The answer was measured again, in turn with the default, on engine processes of its own.")
	} else {
		add(true, "#candidates", "not measured again", "The figures are those of the search. A larger budget leaves time to measure the answer again.")
	}
	if w := r.Withheld; w.Mean > quiet {
		hint := fmt.Sprintf("Other programs took this share of the CPU time while windows were measured, %.0f %% in the worst trial. "+
			"Figures are of the machine as it was on average. Measure again on a machine without other load.", 100*w.Most)
		add(true, "#origin", fmt.Sprintf("%.0f %% of the CPU time taken by others", 100*w.Mean), hint)
	} else {
		add(false, "#origin", "machine quiet", "Other programs took no more than 1 % of the CPU time while windows were measured.")
	}
	if text := requestsText(r); text != "" {
		add(false, "#origin", "requests of "+text, "All figures are of requests of this shape. If yours differ, set load.inputs in the profile.")
	}
	return append(list, accuracyChips(r, best)...)
}

// accuracyChips say on what an answer of another precision was compared with the original.
func accuracyChips(r analyze.Result, best analyze.Config) []html.Chip {
	if accuracyReason(r, best) == "" {
		return nil
	}
	isSynthetic := false // all were compared on the same
	for _, v := range r.Header.Variants {
		for _, report := range v.Accuracy {
			isSynthetic = report.Synthetic
		}
	}
	chip := html.Chip{Text: fmt.Sprintf("accuracy of %s compared on %s", best.Setup.Precision, r.Accuracy.Data), Hint: accuracyReason(r, best), Link: "#accuracy"}
	if isSynthetic {
		chip.Text, chip.IsDoubt = fmt.Sprintf("accuracy of %s on random data", best.Setup.Precision), true
	}
	return []html.Chip{chip}
}

func processes(n int) string {
	if n == 1 {
		return "1 fresh process"
	}
	return fmt.Sprintf("%d fresh processes", n)
}

func metricLabels(r analyze.Result) map[measure.Metric]string {
	labels := map[measure.Metric]string{}
	for _, m := range append(measure.Metrics(), r.Goal.Metrics()...) {
		labels[m] = verdict.Label(m)
	}
	return labels
}

// pageNotes are what one should know of the figures; of ties, hidden rows and failures the page has more than a line.
func pageNotes(r analyze.Result) []string {
	lines := append(assignedNotes(r), flagNotes(r)...)
	lines = append(lines, withheldNotes(r)...)
	lines = append(lines, r.Ending.Notes...)
	lines = append(lines, reusedNotes(r)...)
	if r.Ending.Interrupted {
		lines = append(lines, interruption(r))
	}
	return lines
}

// pageFailures are the failures below a title of their own.
func pageFailures(r analyze.Result) []string {
	lines := failureNotes(r)
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, failedNote)
	}
	return lines
}

func newSection(s section) html.Section {
	h := html.Section{Title: s.title, Lines: s.lines, Cells: s.cells, Notes: s.notes}
	for _, head := range s.heads {
		h.Heads = append(h.Heads, head.Title)
	}
	return h
}

// accuracySection is the table of the variants.
func accuracySection(r analyze.Result) html.Section {
	s := html.Section{Title: "Accuracy of the variants", Heads: variantHeads, Cells: variantRows(r)}
	if data := dataOf(r); data != "" {
		s.Lines = []string{fmt.Sprintf("Compared with fp32 on cpu, on %s. Limit: %s.", data, limitOf(r))}
	}
	for _, v := range r.Header.Variants {
		for _, note := range v.Notes {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: %s.", v.Precision, strings.TrimSuffix(note, ".")))
		}
	}
	return s
}

// origin names what is needed to reproduce the result.
func origin(r analyze.Result) []html.Fact {
	if r.Recorded != "" {
		return []html.Fact{{Name: "Measured by another program", Value: r.Recorded}}
	}
	h := r.Header
	facts := []html.Fact{
		{Name: "Machine", Value: fmt.Sprintf("%s (fingerprint %s)", machineText(h.Machine), h.Fingerprint)},
		{Name: "Campaign begun", Value: h.Created.UTC().Format("2006-01-02 15:04 MST")},
		{Name: "Ended", Value: r.Ending.Reason},
		{Name: "Time", Value: fmt.Sprintf("%s: %s", r.Account.Elapsed.Round(time.Second), accountText(r.Account))},
	}
	for _, runtime := range runtimes(h) {
		facts = append(facts, html.Fact{Name: "ONNX Runtime", Value: fmt.Sprintf("%s (%s)", runtime.Version, runtime.Flavour)})
	}
	for _, m := range h.Models {
		facts = append(facts, html.Fact{Name: "Model, " + m.Precision, Value: fmt.Sprintf("%s, SHA-256 %s", m.Path, m.SHA256)})
	}
	return append(facts,
		html.Fact{Name: "Profile", Value: fmt.Sprintf("%s, SHA-256 %s, seed %d", h.Spec.Path, h.Spec.SHA256, h.Seed)},
		html.Fact{Name: "tuner", Value: h.Tool})
}
