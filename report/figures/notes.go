package figures

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

// Notes returns the lines below the ranking: legend, ties, flags, failures, hidden rows.
func Notes(r analyze.Result, g Ranking) []string {
	lines := legendNotes(r, g)
	if hidden := len(r.Configs) - len(g.Cells); hidden > 0 {
		lines = append(lines, fmt.Sprintf("%s not shown; all are in result.json.", words.Count(hidden, "more configuration")))
	}
	lines = append(lines, ServerNotes(r)...)
	if note := ServeNote(r); note != "" {
		lines = append(lines, note)
	}
	lines = append(lines, otherKnobNotes(r)...)
	lines = append(lines, AssignedNotes(r)...)
	lines = append(lines, FlagNotes(r)...)
	lines = append(lines, WithheldNotes(r)...)
	lines = append(lines, FailureNotes(r)...)
	lines = append(lines, r.Ending.Notes...)
	lines = append(lines, ReusedNotes(r)...)
	if r.Ending.Interrupted {
		lines = append(lines, Interruption(r))
	}
	return lines
}

// Interruption says how to resume a campaign that was interrupted.
func Interruption(r analyze.Result) string {
	return fmt.Sprintf("The campaign did not end by itself: %s. The same command resumes it.", r.Ending.Reason)
}

// legendNotes explain the columns and marks that occur in the table.
func legendNotes(r analyze.Result, g Ranking) []string {
	load := "load: requests in flight"
	if IsRate(r) {
		load = "rate: requests/s"
	}
	text := "* what you had · inst × thr: instances × threads of each · " + load + " · ±: half of the 95 % interval · gain: " + gainLegend(r)
	if len(r.Models) > 0 {
		text = "* what you had · models: instances × threads of each, largest batch · scale: multiple of the profile's traffic · gain: " + gainLegend(r)
		if isDivided(r) {
			text += " · cores: of each model"
		}
	}
	if r.IsPipeline() {
		text = "* what you had · stages: instances × threads of each, largest batch · " + load + " · ±: half of the 95 % interval · gain: " + gainLegend(r)
	}
	if len(r.Goal.Constraints) > 0 {
		text += " · OK: probability that the limits are kept"
	}
	if r.Recorded != "" { // recordings have neither threads nor intervals
		text = "* what you had · inst × thr: instances · " + load + " · gain: " + gainLegend(r) + " · – unknown"
	}
	if g.Common != "" {
		text += " · all: " + g.Common
	}
	lines := append([]string{text}, ViewNotes(r)...)
	shown := rows(r)
	if slices.ContainsFunc(shown, func(c analyze.Config) bool { return c.Satisfies() && c.Best.Confirmed }) {
		how := "on engines launched for it"
		if r.Header.ReloadsFinals() {
			how = "with the model reloaded"
		}
		lines = append(lines, confirmedMark+" measured again "+how+", after the search")
	}
	if slices.ContainsFunc(g.Cells, func(cells []string) bool {
		return slices.ContainsFunc(cells, func(cell string) bool { return strings.Contains(cell, "%"+unknownMark) })
	}) {
		lines = append(lines, unknownMark+" by extrapolation: too few requests were measured for the percentile that is limited")
	}
	if slices.ContainsFunc(g.Cells, func(cells []string) bool {
		return slices.ContainsFunc(cells, func(cell string) bool { return strings.HasSuffix(cell, BeyondLimit) })
	}) {
		lines = append(lines, BeyondLimit+" beyond a limit")
	}
	if slices.ContainsFunc(shown, func(c analyze.Config) bool { return len(c.TiedWith) > 0 }) {
		lines = append(lines, "= tied: expected to differ from the best by 1 % at most; the simpler configuration and the lower load are recommended")
	}
	return lines
}

// gainLegend names the figure that the gain multiplies.
func gainLegend(r analyze.Result) string {
	if len(r.Goal.Objective.Terms) == 1 {
		return "a multiple of the default's " + GainOf(r)
	}
	return "how many times better than the default"
}

// ViewNotes say how configurations were ranked, if not by the best load of each.
func ViewNotes(r analyze.Result) []string {
	var lines []string
	if r.At != nil {
		text := fmt.Sprintf("All are compared at %s", spec.At{Load: *r.At})
		absent := 0
		for _, c := range r.Configs {
			if c.Best == nil && len(c.Points) > 0 {
				absent++
			}
		}
		if absent > 0 {
			text += fmt.Sprintf("; %s not measured there, so not ranked", words.Count(absent, "configuration")+" "+wereText(absent))
		}
		lines = append(lines, text+".")
	}
	if r.Rank == spec.RankTop3Mean {
		text := "Ranked by the mean of the three highest throughputs over the loads within the limits"
		if n := mostLoads(r); n < 3 {
			text += fmt.Sprintf("; no configuration has three such loads, so the mean is over %d", n)
		}
		if slices.ContainsFunc(r.Configs, func(c analyze.Config) bool { return c.Satisfies() && math.IsInf(c.Score.Value, 0) }) {
			text += "; configurations with fewer such loads follow without a mean"
		}
		lines = append(lines, text+".")
	}
	return lines
}

func wereText(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// otherKnobNotes list the settings that have no column.
func otherKnobNotes(r analyze.Result) []string {
	var lines []string
	for _, c := range rows(r) {
		var parts []string
		for _, s := range c.Candidate.Settings() {
			if !hasColumn(r, s.Knob) {
				parts = append(parts, s.Knob+" "+string(s.Value))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, ShortName(r, c)+": "+strings.Join(parts, ", "))
		}
	}
	return lines
}

func hasColumn(r analyze.Result, name string) bool {
	_, knob := search.SplitKnob(name)
	isShared := knob == search.KnobExecutionProvider || knob == search.KnobMaxQueueDelay
	if len(r.Served()) > 0 && isShared { // the columns of several models have neither
		return false
	}
	switch knob {
	case search.KnobIsolation, search.KnobInstanceCount, search.KnobIntraOpThreads, search.KnobMaxBatchSize, search.KnobMaxQueueDelay,
		search.KnobExecutionProvider, search.KnobPrecision:
		return true
	}
	return false
}

// FlagNotes name the figures that are less certain, with a line for each reason.
func FlagNotes(r analyze.Result) []string {
	names := map[measure.Flag][]string{}
	var order []measure.Flag
	for _, c := range rows(r) {
		if c.Best == nil {
			continue
		}
		for _, f := range c.Best.Flags {
			if names[f] == nil {
				order = append(order, f)
			}
			names[f] = append(names[f], ShortName(r, c))
		}
	}
	var lines []string
	for _, f := range order {
		lines = append(lines, fmt.Sprintf("Less certain, %s: %s.", f.Text(), strings.Join(names[f], ", ")))
	}
	return lines
}

// WithheldNotes report the CPU time that others took.
func WithheldNotes(r analyze.Result) []string {
	if text := r.Withheld.Text(); text != "" {
		return []string{text}
	}
	return nil
}

// ReusedNotes count the trials of earlier campaigns. No figure includes them.
func ReusedNotes(r analyze.Result) []string {
	var lines []string
	for _, e := range r.Reused {
		how := "on this machine, to choose what to measure"
		if !e.Same {
			how = "on another machine, ONNX Runtime or protocol, for forecasts only"
		}
		lines = append(lines, fmt.Sprintf("Reused from %s: %s %s; no figure here includes them.", e.From, words.Count(e.Trials, "trial"), how))
	}
	return lines
}

// mostFailures limits the length of the list of failures.
const mostFailures = 10

// FailedNote begins the note of a failure.
const FailedNote = "Failed: "

// FailureNotes list the failed trials. Those with the same reason share a line.
func FailureNotes(r analyze.Result) []string {
	var lines []string
	for _, g := range r.FailureGroups() {
		f, others := g.First, ""
		if n := g.Count - 1; n > 0 {
			others = fmt.Sprintf(", and %s", words.Count(n, "more trial"))
		}
		lines = append(lines, fmt.Sprintf(FailedNote+"%s (%s) at %s%s, %s: %s", f.Name, f.Candidate.Describe(), f.Load, others, f.Stage,
			firstLine(f.Reason)))
	}
	if rest := len(lines) - mostFailures; rest > 0 {
		lines = append(lines[:mostFailures], fmt.Sprintf("%s; all are in result.json.", words.Count(rest, "more failure")))
	}
	return lines
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
