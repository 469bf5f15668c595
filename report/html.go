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
	"tuner/search/verdict"
)

// WriteHTML writes report.html: the answer, charts and every configuration as one page that needs nothing but itself. With
// withRepository it says how to serve the repository beside it.
func WriteHTML(w io.Writer, r analyze.Result, withRepository bool) error {
	g := newGrid(r)
	page := html.Page{
		Result: r, Verdict: newVerdict(r), Effort: effort(r), View: slices.Concat(requestNotes(r), viewNotes(r), serverNotes(r)), Labels: metricLabels(r), Ranking: html.Section{Title: "Ranking", Heads: g.headers(), Cells: g.cells},
		Notes: pageNotes(r), Failures: pageFailures(r), Rejected: rejections(r), LeftOut: foldLines(r), Origin: origin(r),
		Accuracy: accuracySection(r), Steps: html.Section{Title: "Steps of the run", Heads: stepHeads, Cells: stepRows(r.Steps)},
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
			page.Deploy = []string{"tuner serve --model-repository " + repositoryDir, `tritonserver --model-repository="$PWD/` + repositoryDir + `"`}
		}
	}
	return html.Write(w, page)
}

// newVerdict says the answer in parts, the figure first.
func newVerdict(r analyze.Result) html.Verdict {
	a := AnswerOf(r)
	v := html.Verdict{Summary: a.Headline, Best: strings.Join(lineTexts(a), "\n")}
	best, ok := r.Winner()
	if !ok {
		v.Figure, v.Claim = "Nothing", "was measured"
		if _, ok := r.Nearest(); ok {
			v.Figure, v.Claim = "None", "satisfies "+missedText(r)
		}
		return v
	}
	words := verdict.Words{Goal: r.Goal}
	switch {
	case best.Candidate.IsDefault():
		v.Figure, v.Claim = "1 ×", "the default is the best that was found"+within(r.Goal)
	case best.Gain == nil:
		v.Figure, v.Claim = figures(r.Goal, best), "at its best load"+within(r.Goal)
	default:
		text, interval, _ := strings.Cut(words.GainText(*best.Gain), " [")
		v.Figure, v.Claim, _ = strings.Cut(text, " × ")
		v.Figure, v.Claim = v.Figure+" ×", v.Claim+within(r.Goal)
		if interval != "" {
			v.Certainty = "95 % interval " + strings.Replace(strings.TrimSuffix(interval, "]"), ", ", " to ", 1)
		}
	}
	return v
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
