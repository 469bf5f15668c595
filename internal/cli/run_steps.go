package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/journal"
	"tuner/precision/accuracy"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/markdown"
	"tuner/spec"
	"tuner/steps"
)

// variants makes the second and the third step, and returns what the campaign measures. A variant is converted and compared in
// turn, since the comparison decides which operators stay in fp32: the time of both stands at the second step.
func (j job) variants(ctx context.Context) (profile.Setup, error) {
	var v profile.Variants
	err := j.log.Do(ctx, steps.Precision, "", func() (outcome steps.Outcome, err error) {
		if v, err = j.makeVariants(ctx, j.con, j.campaign); err != nil {
			return steps.Outcome{}, err
		}
		outcome = precisionOutcome(j.setup.Profile, v.Records)
		outcome.Before = !v.Fresh && outcome.State == ""
		return outcome, nil
	})
	if err != nil {
		return profile.Setup{}, err
	}
	err = j.log.Do(ctx, steps.Accuracy, "", func() (steps.Outcome, error) {
		outcome := accuracyOutcome(j.setup.Profile.Accuracy, v.Records)
		outcome.Before = !v.Fresh && outcome.State == ""
		return outcome, nil
	})
	return j.setup.With(v), err
}

// precisionOutcome says which precisions were made of the model.
func precisionOutcome(p spec.Profile, records []journal.Variant) steps.Outcome {
	var made, unmade []string
	for _, r := range records {
		switch {
		case !slices.Contains(p.Model.Convert, r.Precision):
		case r.Rejected[""] != "":
			unmade = append(unmade, fmt.Sprintf("%s cannot be made: %s", r.Precision, briefly(r.Rejected[""])))
		default:
			text := fmt.Sprintf("%s has %s converted", r.Precision, countText(r.Converted, "operator", "operators"))
			if n := len(r.Kept); n > 0 {
				text += fmt.Sprintf(" (%d stay in fp32 for accuracy)", n)
			}
			made = append(made, text)
		}
	}
	text := strings.Join(append(made, unmade...), "; ")
	switch {
	case len(made) > 0:
		return steps.Outcome{Text: text}
	case len(unmade) > 0:
		return steps.Skip("%s", text)
	}
	return steps.Skip("the profile asks for no other precision than the model's own")
}

// accuracyOutcome says how the outputs of variants compare with those of the original.
func accuracyOutcome(a spec.Accuracy, records []journal.Variant) steps.Outcome {
	var parts []string
	data := ""
	for _, r := range records {
		for _, place := range slices.Sorted(maps.Keys(r.Accuracy)) {
			parts = append(parts, verdictText(*a.Limit, r, place))
			data = fmt.Sprintf("%s of %s", countText(r.Accuracy[place].Rows, "row", "rows"), a.Data)
			if r.Accuracy[place].Synthetic {
				data = countText(r.Accuracy[place].Rows, "row", "rows") + " of synthetic (random) inputs"
			}
		}
	}
	if len(parts) == 0 {
		return steps.Skip("nothing computes otherwise than the original on cpu")
	}
	return steps.Outcome{Text: fmt.Sprintf("%s; limit %s, on %s", strings.Join(parts, "; "), a.Limit, data)}
}

// verdictText is what came of comparing a variant in a place: "int8 on cpu is accepted: cosine 0.9931".
func verdictText(limit accuracy.Limit, r journal.Variant, place string) string {
	name := r.Precision + " on " + place
	for _, rejected := range []string{r.Rejected[place], r.Rejected[""]} {
		if rejected != "" {
			return fmt.Sprintf("%s is rejected: %s", name, briefly(rejected))
		}
	}
	value, _ := limit.Check(r.Accuracy[place])
	return fmt.Sprintf("%s is accepted: %s %.4g", name, strings.ReplaceAll(limit.Metric, "_", " "), value)
}

// search makes the fourth step. An interruption does not keep the later ones from using what was measured.
func (j job) search(ctx context.Context, setup profile.Setup) (outcome profile.Outcome, err error) {
	err = j.log.Do(ctx, steps.Search, "", func() (steps.Outcome, error) {
		c := j.prepared
		c.setup = setup
		if outcome, err = c.run(ctx, j.con, j.campaign); err != nil {
			return steps.Outcome{}, err
		}
		status := outcome.Status
		if status.Failed == status.Trials && status.Trials > 0 && !outcome.End.Interrupted {
			text, err := j.failureText()
			return steps.Outcome{State: steps.Failed, Elapsed: outcome.End.Elapsed, Text: text}, err
		}
		made := steps.Outcome{Elapsed: outcome.End.Elapsed, Before: status.Trials == outcome.Before && !outcome.End.Interrupted,
			Text: fmt.Sprintf("%s (%d failed); %s", countText(status.Trials, "trial", "trials"), status.Failed, outcome.End.Reason)}
		if outcome.End.Interrupted {
			made.State = steps.Interrupted
		}
		return made, nil
	})
	if s, _ := j.log.List().Get(steps.Search); err == nil && s.State == steps.Failed {
		fmt.Fprint(j.con.err, terminal.Fold("  "+s.Text+"\n", terminal.Width))
	}
	return outcome, err
}

// failureText says why nothing was measured: each reason once, with the number of trials.
func (j job) failureText() (string, error) {
	r, err := rankCampaign(j.analysis)
	if err != nil {
		return "", err
	}
	var reasons []string
	for _, g := range r.FailureGroups() {
		reasons = append(reasons, fmt.Sprintf("%d × %s: %s", g.Count, g.First.Stage, briefly(g.First.Reason)))
	}
	return fmt.Sprintf("every trial failed (%s): %s", countText(r.Failed, "trial", "trials"), strings.Join(reasons, "; ")), nil
}

// unfoundText says why there is no best configuration for a step to work on.
func unfoundText(r analyze.Result) string {
	if !r.IsMeasured() {
		return "nothing was measured"
	}
	return "nothing satisfies the constraints"
}

// repository makes the sixth step: the optimal configuration and the repository, as far as analyze.yaml asks for them.
func (j job) repository(ctx context.Context, r analyze.Result) error {
	best, found := r.Winner()
	var config strings.Builder
	if found {
		if err := report.WriteConfig(&config, r); err != nil {
			return err
		}
	}
	key, err := digestOf(config.String(), fileOf(r, best.Setup.Precision).SHA256, j.analysis.Formats, j.analysis.Output)
	if err != nil {
		return err
	}
	return j.log.Do(ctx, steps.Repository, key, func() (steps.Outcome, error) {
		written, err := formats.All().WriteOptimum(j.analysis.Output, r, j.analysis.Formats)
		switch {
		case err != nil:
			return steps.Outcome{}, inputError(err)
		case !found: // an earlier one was removed
			return steps.Skip("%s", unfoundText(r)), nil
		case len(written) == 0:
			return steps.Skip("analyze.yaml leaves it out (formats)"), nil
		}
		return steps.Outcome{Text: fmt.Sprintf("%s: %s", written[len(written)-1], best.Candidate.Describe()), Files: written}, nil
	})
}

// fileOf is the model file of a precision; zero where there is none.
func fileOf(r analyze.Result, precision string) journal.ModelFile {
	i := slices.IndexFunc(r.Header.Models, func(f journal.ModelFile) bool { return f.Precision == precision })
	if i < 0 {
		return journal.ModelFile{}
	}
	return r.Header.Models[i]
}

// writeReports writes the charts, tables and reports of what was measured; r has the steps as they are.
func writeReports(a spec.Analyze, r analyze.Result, log *steps.Log) error {
	key, err := reportKey(r, a)
	if err != nil {
		return err
	}
	return log.Report(key, func() ([]string, error) {
		written, err := formats.All().WriteReports(a.Output, r, a.Formats)
		return written, inputError(err)
	})
}

// reportFailure writes the reports on a run that failed, as far as there is something to report: where nothing was measured the steps alone.
func reportFailure(a spec.Analyze, model string, log *steps.Log) error {
	if !campaign.Exists(a.Input) {
		return inputError(markdown.WriteSteps(a.Output, model, log.List()))
	}
	r, err := rankCampaign(a)
	if err != nil { // that is the failure itself, or follows from it
		return nil
	}
	r.Steps = log.List()
	return writeReports(a, r, log)
}

// reportKey is the digest of all that reports depend on: what was measured, how it is looked at, and the steps.
func reportKey(r analyze.Result, a spec.Analyze) (string, error) {
	trials, err := campaign.Digest(a.Input)
	if err != nil {
		return "", withExit(exitUsage, err)
	}
	parts := []any{trials, r.Goal, a, r.Ending, toolVersion()}
	for _, s := range r.Steps {
		parts = append(parts, []string{string(s.Name), string(s.State), s.Text})
	}
	return digestOf(parts...)
}
