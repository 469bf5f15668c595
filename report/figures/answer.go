// Package figures has the texts and figures that all reports share. They are the answer and its
// lines, the ranking and other tables, the explanation, and the notes. Every format takes its words
// and figures from here, so all formats agree.
//
// It comes after package analyze and before the formats, each of which has a package of its own
// beside this one. It contains no markup, writes no files and ranks nothing.
package figures

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/report/result"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// Answer is the head of every report: the recommendation, its certainty, its basis, and the next
// step.
type Answer struct {
	State    verdict.State
	Headline string         // the state in a sentence
	Lines    []verdict.Line // the statements behind it, the most important first
}

// The lines that a report adds to those of the verdict.
const (
	lineMean    = "Means"
	lineAssumed = "Assumed"
	lineBasis   = "Basis"
)

// AnswerOf makes the answer of a result.
func AnswerOf(r analyze.Result) Answer {
	v, isPart := VerdictOf(r)
	if v.Answer() == nil {
		return Answer{State: verdict.Unmeasured, Headline: unmeasured(r), Lines: []verdict.Line{{Name: lineBasis, Text: basisLine(r)}}}
	}
	words := wordsOf(r)
	a := Answer{State: v.State, Headline: withGrowth(r, v, v.Headline(words))}
	if r.Recorded != "" && (v.State == verdict.Proven || v.State == verdict.NoGain) {
		a.State, a.Headline = result.Recorded, recordedHeadline(r, words)
	}
	if missed := MissedText(r); a.State == verdict.Nothing && missed != "" {
		a.Headline = "Nothing satisfies " + missed + "."
	}
	if r.Ending.Interrupted && v.State != verdict.Unfinished {
		a.Headline += " The campaign was interrupted."
	}
	var last []verdict.Line
	for _, l := range v.Lines(words) {
		switch {
		// this line covers all measurements and their errors
		case l.Name == verdict.LineElse && (isPart || r.Recorded != ""):
		case l.Name == verdict.LineNext || l.Name == verdict.LineElse:
			last = append(last, l)
		case l.Name == verdict.LineDefault && !isThere(r, *v.Default):
		default:
			a.Lines = append(a.Lines, l)
		}
	}
	a.Lines = slices.Insert(a.Lines, min(1, len(a.Lines)), append(shareLines(r), stageLines(r)...)...)
	for _, l := range []verdict.Line{{Name: lineMean, Text: meansText(r)}, {Name: lineAssumed, Text: assumedText(r)}} {
		if l.Text != "" {
			a.Lines = append(a.Lines, l)
		}
	}
	a.Lines = append(append(a.Lines, last...), verdict.Line{Name: lineBasis, Text: basisLine(r)})
	return a
}

// wordsOf returns the words that a report uses for a verdict.
func wordsOf(r analyze.Result) verdict.Words {
	return verdict.Words{Goal: r.Goal, Name: func(c search.Candidate) string { return nameOf(r, c) }, IsExact: r.Recorded != ""}
}

func recordedHeadline(r analyze.Result, w verdict.Words) string {
	text := "Recorded by another program, which gives no intervals"
	if best := First(r); best.Gain != nil && !best.Candidate.IsDefault() {
		text += ": " + w.GainText(*best.Gain) + w.Within()
	}
	return text + "."
}

// Summary returns the answer in a few sentences: the headline and the configuration.
func (a Answer) Summary() string {
	if len(a.Lines) == 0 || a.State == verdict.Unmeasured {
		return a.Headline
	}
	return a.Headline + " " + a.Lines[0].String()
}

// VerdictOf returns the verdict of a report. If configurations are ranked by their best load and
// all are reported, it is the result's own. Otherwise it is made from the first configuration.
// isPart then means that it claims nothing about the others.
func VerdictOf(r analyze.Result) (v verdict.Verdict, isPart bool) {
	if len(r.Configs) == 0 || r.Configs[0].Best == nil {
		return verdict.Verdict{}, true
	}
	first := r.Configs[0]
	c, known := ChoiceOf(r, first)
	if !known {
		return verdict.Verdict{}, true
	}
	if answer := r.Verdict.Answer(); r.Rank != spec.RankTop3Mean && answer != nil && answer.Load == c.Load && first.Candidate.Key() == answer.Candidate.Key() {
		return r.Verdict, false
	}
	v = verdict.Verdict{Confidence: r.Verdict.Confidence, Unseen: r.Verdict.Unseen}
	if base, known := ChoiceOf(r, r.Default()); known {
		v.Default = &base
	}
	isShown := c.Gain == nil || c.Better >= v.Confidence || r.Rank == spec.RankTop3Mean && c.Gain.Lo > 1
	switch {
	case !first.Satisfies() || !c.MayLead():
		v.State, v.Nearest = verdict.Nothing, &c
	case !c.Keeps(v.Confidence):
		v.State, v.Edge = verdict.Close, &c
	case c.Candidate.IsDefault() || !isShown:
		v.State, v.Recommended = verdict.NoGain, &c
	default:
		v.State, v.Recommended = verdict.Proven, &c
	}
	return v, true
}

// ChoiceOf returns the verdict's choice for a configuration at the load that ranks it, and false
// without one.
func ChoiceOf(r analyze.Result, c analyze.Config) (verdict.Choice, bool) {
	if c.Best == nil {
		return verdict.Choice{}, false
	}
	if c.Choice != nil {
		return *c.Choice, true
	}
	for _, x := range r.Verdict.Choices {
		if x.Load == c.Best.Load && x.Candidate.Key() == c.Candidate.Key() {
			x.Gain = c.Gain
			return x, true
		}
	}
	return verdict.Choice{}, false
}

// isThere reports whether the configuration of a choice is in the report.
func isThere(r analyze.Result, x verdict.Choice) bool {
	return slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Candidate.Key() == x.Candidate.Key() })
}

// nameOf returns the name of a candidate with its settings.
func nameOf(r analyze.Result, c search.Candidate) string {
	for _, known := range r.Configs {
		if known.Candidate.Key() == c.Key() {
			return NameAndSetup(r, known)
		}
	}
	return c.Describe()
}

// meansText compares the means of the best and the default if means rank configurations. Otherwise
// it returns "".
func meansText(r analyze.Result) string {
	best, base := First(r), r.Default()
	if r.Rank != spec.RankTop3Mean || math.IsInf(best.Score.Value, 0) {
		return ""
	}
	mean := func(c analyze.Config) string { return measure.Throughput.Format(math.Exp(c.Score.Value)) }
	if math.IsInf(base.Score.Value, 0) || base.Best == nil {
		return fmt.Sprintf("%s %s.", mean(best), inBestLoads(best.MeanOf))
	}
	return fmt.Sprintf("%s against the default's %s, each %s.", mean(best), mean(base), inBestLoads(best.MeanOf))
}

// unsealedText warns that the journal has no checksums, so changes to it cannot be detected. It
// returns "" if the journal has them.
func unsealedText(r analyze.Result) string {
	if r.Recorded != "" || r.Header.HasChecksums() {
		return ""
	}
	return "nobody has changed the journal, which has no checksums since an earlier version wrote it"
}

// assumedText lists the assumptions of the figures: the requests, the accuracy of another
// precision, the machine, the journal.
func assumedText(r analyze.Result) string {
	var parts []string
	requests := RequestsText(r)
	if requests != "" {
		requests = "requests of " + requests
	}
	withheld, _ := WithheldText(r)
	for _, text := range []string{requests, paddingText(r), shortAccuracy(r, First(r)), withheld, unsealedText(r)} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + "."
}

// leastWithheld is the smallest share of CPU time taken by others that reports mention. An idle
// machine uses about as much itself.
const leastWithheld = 0.01

// WithheldText says how much CPU time others used during the campaign, and whether other programs used
// the GPU; "" where that is not known.
// isMuch means that it is a reason to doubt the figures: throughput falls in proportion, and two
// configurations that differ by less count as equal.
func WithheldText(r analyze.Result) (text string, isMuch bool) {
	w, machine, gpu := r.Withheld, "a quiet machine", ""
	if w.GPU >= leastWithheld {
		machine, gpu = "quiet CPUs", fmt.Sprintf("; other programs computed on the GPU for up to %.0f %% of a window", 100*w.GPU)
	}
	switch {
	case r.Recorded != "" || r.Header.Server != nil && r.Header.Server.Mode == spec.RunnerRemote:
		return "", false
	case w.Most < leastWithheld:
		return machine + gpu, false
	case w.Mean < leastWithheld:
		return fmt.Sprintf("%s, except for a window in which others used %.0f %% of the CPU time%s", machine, 100*w.Most, gpu), false
	default:
		return fmt.Sprintf("others use %.0f %% of the CPU time, the average while measuring (%.0f %% in the worst window)%s", 100*w.Mean, 100*w.Most, gpu), true
	}
}

// basisLine says how much was measured, and whether the answer was measured again.
func basisLine(r analyze.Result) string {
	text := Effort(r)
	if best := First(r); best.Best != nil && r.Recorded == "" {
		text += "; " + againText(r, best)
	}
	return text + "."
}

// againText says whether the finals measured a configuration again after the search.
func againText(r analyze.Result, c analyze.Config) string {
	switch p := *c.Best; {
	case p.Confirmed && r.Header.ReloadsFinals():
		return Again(r, p.Launches) + "; the remote server itself was not restarted"
	case p.Confirmed:
		return Again(r, p.Launches)
	case c.FailedFinals:
		return "not measured again, since its fresh processes failed: it may fail in service"
	}
	return "not measured again on a fresh process"
}

// Again says on what the finals measured a configuration again, after so many launches.
func Again(r analyze.Result, launches int) string {
	if r.Header.ReloadsFinals() {
		return "measured again with the model reloaded " + words.Count(launches, "time")
	}
	return "measured again on " + words.Count(launches, "fresh process")
}

// Texts returns the lines as text: "Recommended: config_3 …".
func (a Answer) Texts() []string {
	list := make([]string, len(a.Lines))
	for i, l := range a.Lines {
		list[i] = l.String()
	}
	return list
}

// RequestsText lists the shapes of inputs in the measured requests with their sources. It returns
// "" if they are unknown. Of a mix it lists the kinds with their shares.
//
//	ids [128], mask [128]: a text of 128 tokens (examples: give yours, since the figures depend on them), sr [1] (fixed by the model)
func RequestsText(r analyze.Result) string { return ofEach(r, requestsText) }

func requestsText(r analyze.Result) string {
	var groups []string
	ofData := ""
	if rows := r.Header.Requests; rows != nil {
		ofData = fmt.Sprintf("%s of %s", words.Count(rows.Rows, "row"), rows.Name)
	}
	if m := r.Header.Mix; m != nil {
		if ofData == "" {
			ofData = "as given"
		}
		return fmt.Sprintf("%s (%s)", m.Kinds, ofData)
	}
	for _, g := range []struct {
		source    analyze.ShapeSource
		one, many string
	}{
		{analyze.ShapeExample, "an example: give yours, since the figures depend on it", "examples: give yours, since the figures depend on them"},
		{analyze.ShapeGiven, "as given", "as given"},
		{analyze.ShapeOfData, ofData, ofData},
		{analyze.ShapeOfModel, "fixed by the model", "fixed by the model"},
	} {
		switch shapes, n := shapesText(r.Requests, g.source); n {
		case 0:
		case 1:
			groups = append(groups, fmt.Sprintf("%s (%s)", shapes, g.one))
		default:
			groups = append(groups, fmt.Sprintf("%s (%s)", shapes, g.many))
		}
	}
	return strings.Join(groups, ", ")
}

// shapesText lists the n shapes of a source. A reason stands after the last of the shapes that have
// it in turn: "ids [128], mask [128]: a text of 128 tokens".
func shapesText(requests []analyze.RequestShape, source analyze.ShapeSource) (text string, n int) {
	var parts []string
	reason := ""
	for _, s := range requests {
		if s.Source != source {
			continue
		}
		if last := len(parts) - 1; last >= 0 && reason != "" && reason != s.Reason {
			parts[last] += ": " + reason
		}
		parts, reason = append(parts, fmt.Sprintf("%s %v", s.Input, s.Dims)), s.Reason
	}
	if reason != "" {
		parts[len(parts)-1] += ": " + reason
	}
	return strings.Join(parts, ", "), len(parts)
}

// RequestNotes describe the measured requests.
func RequestNotes(r analyze.Result) []string {
	var notes []string
	if text := RequestsText(r); text != "" {
		notes = append(notes, fmt.Sprintf("Requests: %s.", text))
	}
	if r.Arrivals != "" {
		notes = append(notes, fmt.Sprintf("Arrivals: %s.", r.Arrivals))
	}
	return notes
}
