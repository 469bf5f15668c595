package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/pipeline/steps"
	"tuner/profile"
	"tuner/profile/journal"
)

// search makes the fourth step. After an interruption the later steps still use the finished
// measurements.
func (j job) search(ctx context.Context, v []profile.Variants) (outcome profile.Outcome, err error) {
	err = j.log.Do(ctx, steps.Search, "", func() (steps.Outcome, error) {
		if outcome, err = j.campaign.Run(ctx, v); err != nil {
			return steps.Outcome{}, err
		}
		status := outcome.Status
		if status.Failed == status.Trials && status.Trials > 0 && !outcome.End.Interrupted {
			text, err := j.failureText()
			return steps.Outcome{State: steps.Failed, Elapsed: outcome.End.Elapsed, Text: text}, err
		}
		made := steps.Outcome{Elapsed: outcome.End.Elapsed, Before: status.Trials == outcome.Before && !outcome.End.Interrupted,
			Text: fmt.Sprintf("%s (%d failed); %s", words.Count(status.Trials, "trial"), status.Failed, outcome.End.Reason)}
		if outcome.End.Interrupted {
			made.State = steps.Interrupted
		}
		return made, nil
	})
	if s, _ := j.log.List().Get(steps.Search); err == nil && s.State == steps.Failed {
		fmt.Fprint(j.Messages, terminal.Fold("  "+s.Text+"\n", terminal.Width))
	}
	return outcome, err
}

// failureText explains why nothing was measured: each reason once, with the number of trials.
func (j job) failureText() (string, error) {
	r, err := analyze.RankFile(j.analysis)
	if err != nil {
		return "", err
	}
	var reasons []string
	for _, g := range r.FailureGroups() {
		reasons = append(reasons, fmt.Sprintf("%d × %s: %s", g.Count, g.First.Stage, words.Brief(g.First.Reason)))
	}
	return fmt.Sprintf("every trial failed (%s): %s", words.Count(r.Failed, "trial"), strings.Join(reasons, "; ")), nil
}

// unmeasuredText says that there is no result, and what helps. A trial that has failed is not made
// again, so another try needs another journal. dir is the output folder.
func unmeasuredText(r analyze.Result, dir string) string {
	text := "nothing was measured, so there is no result"
	groups := r.FailureGroups()
	if len(groups) == 0 {
		return text + "; the same command goes on, with a larger --budget"
	}
	remedy := "remove the causes above"
	if groups[0].First.Stage == measure.StageMemory && slices.Contains(r.Goal.Metrics(), measure.Memory) {
		remedy = "raise the limit of the memory"
	}
	return fmt.Sprintf("%s: every trial failed; %s, remove %s, and run the same command again", text, remedy, filepath.Join(dir, journal.FileName))
}

// unfoundText explains why there is no best configuration for a step.
func unfoundText(r analyze.Result) string {
	if !r.IsMeasured() {
		return "nothing was measured"
	}
	return "nothing satisfies the constraints"
}
