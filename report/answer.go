package report

import (
	"fmt"
	"io"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
)

// WriteAnswer writes what was found in one paragraph for a terminal: the gain with its interval, the limits, the best configuration,
// what it stands on, why to trust it less, and how its outputs compare with the original model's where they may differ.
func WriteAnswer(w io.Writer, r analyze.Result) error {
	sentences := []string{headline(r)}
	if best, ok := r.Winner(); ok {
		if best.Gain != nil && !best.Candidate.IsDefault() { // else the headline names it
			sentences = append(sentences, fmt.Sprintf("Best: %s.", nameAndSetup(best)))
		}
		sentences = append(sentences, confirmation(r, best))
		var doubts []string
		for _, f := range best.Best.Flags {
			doubts = append(doubts, f.Text())
		}
		if len(doubts) > 0 {
			sentences = append(sentences, fmt.Sprintf("Less certain: %s.", strings.Join(doubts, ", ")))
		}
		if text := accuracyReason(r, best); text != "" {
			sentences = append(sentences, text)
		}
	}
	if text := requestsText(r); text != "" {
		sentences = append(sentences, fmt.Sprintf("Measured with requests of %s.", text))
	}
	if r.Ending.Interrupted {
		sentences = append(sentences, fmt.Sprintf("More was to come: %s.", r.Ending.Reason))
	}
	if _, err := fmt.Fprintln(w, terminal.Fill(terminal.Plain(strings.Join(sentences, " ")), terminal.Width)); err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	return nil
}

// requestsText lists the shapes of inputs in the measured requests, and where they come from:
// "ids [32], mask [32] (examples: give yours, since the figures depend on them), sr [1] (as the
// model has it)"; "" where nothing is known.
func requestsText(r analyze.Result) string {
	var groups []string
	for _, g := range []struct {
		source    analyze.ShapeSource
		one, many string
	}{
		{analyze.ShapeExample, "an example: give yours, since the figures depend on it", "examples: give yours, since the figures depend on them"},
		{analyze.ShapeGiven, "as given", "as given"},
		{analyze.ShapeOfModel, "as the model has it", "as the model has them"},
	} {
		var parts []string
		for _, s := range r.Requests {
			if s.Source == g.source {
				parts = append(parts, fmt.Sprintf("%s %v", s.Input, s.Dims))
			}
		}
		switch len(parts) {
		case 0:
		case 1:
			groups = append(groups, fmt.Sprintf("%s (%s)", parts[0], g.one))
		default:
			groups = append(groups, fmt.Sprintf("%s (%s)", strings.Join(parts, ", "), g.many))
		}
	}
	return strings.Join(groups, ", ")
}

// requestNotes say what requests the figures are of.
func requestNotes(r analyze.Result) []string {
	if text := requestsText(r); text != "" {
		return []string{fmt.Sprintf("Requests: %s.", text)}
	}
	return nil
}
