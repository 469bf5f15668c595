package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
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
	if text := shapesText(r.Shapes); text != "" {
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

// shapesText lists the shapes of inputs that the model leaves open: "ids [32], mask [32]"; "" without any.
func shapesText(shapes map[string][]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		parts = append(parts, fmt.Sprintf("%s %v", name, shapes[name]))
	}
	return strings.Join(parts, ", ")
}
