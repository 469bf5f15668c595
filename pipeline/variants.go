package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/internal/words"
	"tuner/model/precision/accuracy"
	"tuner/pipeline/steps"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/spec"
)

// variants makes the second and the third step. It returns the variants that the campaign measures
// in addition to the original. Conversion and comparison alternate, since the comparison decides
// which operators stay in fp32. The second step has the time of both.
func (j job) variants(ctx context.Context) (list []profile.Variants, err error) {
	var v profile.Variants
	err = j.log.Do(ctx, steps.Precision, "", func() (outcome steps.Outcome, err error) {
		if list, err = j.campaign.MakeVariants(ctx); err != nil {
			return steps.Outcome{}, err
		}
		v = list[0] // the steps are those of one model
		outcome = precisionOutcome(j.profile(), v.Records)
		outcome.Before = !v.Fresh && outcome.State == ""
		return outcome, nil
	})
	if err != nil {
		return nil, err
	}
	err = j.log.Do(ctx, steps.Accuracy, "", func() (steps.Outcome, error) {
		outcome := accuracyOutcome(j.profile(), v.Records)
		outcome.Before = !v.Fresh && outcome.State == ""
		return outcome, nil
	})
	return list, err
}

// precisionOutcome lists the precisions that were made of the model.
func precisionOutcome(p spec.Profile, records []journal.Variant) steps.Outcome {
	var made, unmade []string
	for _, r := range records {
		switch {
		case !slices.Contains(p.Model.Convert, r.Precision):
		case r.Rejected[""] != "":
			unmade = append(unmade, fmt.Sprintf("%s cannot be made: %s", r.Precision, words.Brief(r.Rejected[""])))
		default:
			text := fmt.Sprintf("%s has %s converted", r.Precision, words.Count(r.Converted, "operator"))
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

// accuracyOutcome describes how the variants' outputs compare with the original's.
func accuracyOutcome(p spec.Profile, records []journal.Variant) steps.Outcome {
	var parts []string
	data := ""
	for _, r := range records {
		for _, place := range slices.Sorted(maps.Keys(r.Accuracy)) {
			parts = append(parts, verdictText(*p.Accuracy.Limit, r, place))
			data = fmt.Sprintf("%s of %s", words.Count(r.Accuracy[place].Rows, "row"), p.ComparedOn())
			if r.Accuracy[place].Synthetic {
				data = words.Count(r.Accuracy[place].Rows, "row") + " of synthetic (random) inputs"
			}
		}
	}
	if len(parts) == 0 {
		return steps.Skip("every candidate computes as the original does on cpu")
	}
	return steps.Outcome{Text: fmt.Sprintf("%s; limit %s, on %s", strings.Join(parts, "; "), p.Accuracy.Limit, data)}
}

// verdictText describes a variant's comparison in a place: "int8 on cpu is accepted: cosine
// 0.9931".
func verdictText(limit accuracy.Limit, r journal.Variant, place string) string {
	name := r.NameIn(place)
	for _, rejected := range []string{r.Rejected[place], r.Rejected[""]} {
		if rejected != "" {
			return fmt.Sprintf("%s is rejected: %s", name, words.Brief(rejected))
		}
	}
	value, _ := limit.Check(r.Accuracy[place])
	return fmt.Sprintf("%s is accepted: %s %.4g", name, strings.ReplaceAll(limit.Metric, "_", " "), value)
}
