package preparation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"tuner/internal/words"
	"tuner/model/dataset"
	"tuner/model/precision"
	"tuner/model/precision/places"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/search"
	"tuner/spec"
)

// Variants makes the precisions of a profile before the campaign begins, and compares all serving
// variants with the original model. It prints its progress to the messages.
func (o Options) Variants(ctx context.Context, p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build) (profile.Variants, error) {
	return o.variantsWithin(ctx, p, s, facts, builds, profile.VariantTime(p.Search.Budget.Time))
}

// variantsWithin is Variants within a time, 0: no bound.
func (o Options) variantsWithin(ctx context.Context, p spec.Profile, s profile.Subject, facts search.Facts, builds []ortlib.Build, within time.Duration) (profile.Variants, error) {
	if p.Accuracy.Limit == nil {
		return profile.Variants{}, nil
	}
	data, calibration, err := Data(p, s)
	if err != nil {
		return profile.Variants{}, err
	}
	for _, note := range data.Notes {
		o.say("accuracy.data: " + note)
	}
	if p.Accuracy.Calibration != "" { // otherwise the rows of the comparison are used again
		for _, note := range calibration.Notes {
			o.say("accuracy.calibration: " + note)
		}
	}
	serving := places.OfCampaign(builds, facts)
	opener, err := serving.Opener(s.Libraries, o.Messages)
	if err != nil {
		return profile.Variants{}, err
	}
	settings := precision.Options{
		Data: data, Calibration: calibration, CalibrationMethod: p.Accuracy.CalibrationMethod, Limit: p.Accuracy.Limit,
		MaxKept: p.Accuracy.MaxKept, KeepIO: true, Progress: o.say, Libraries: s.Libraries,
	}
	var names []string
	for _, place := range p.Space(facts).Places() {
		names = append(names, place.String())
	}
	maker, err := serving.Maker(ctx, o.Version, s.Model, opener, names, settings)
	if err != nil {
		return profile.Variants{}, err
	}
	start := time.Now()
	variants, err := profile.MakeVariants(ctx, p, s, facts, maker, serving.Trier(s.Libraries), within)
	if err != nil {
		return profile.Variants{}, err
	}
	if len(variants.Records) > 0 {
		variants.Data = data.Digest()
	}
	o.announceVariants(variants, time.Since(start))
	return variants, nil
}

// shareOf returns the time for the variants of the next model: it and each that follows have equal shares of
// the remaining time. Those after a model get the rest of its share. 0: no bound.
func shareOf(all, spent time.Duration, models int) time.Duration {
	if all == 0 {
		return 0
	}
	return max((all-spent)/time.Duration(models), 1)
}

// Data reads the inputs for comparison and calibration, and refuses a model that cannot have
// variants. Without a limit of accuracy it does nothing.
func Data(p spec.Profile, s profile.Subject) (data, calibration dataset.Dataset, err error) {
	if p.Accuracy.Limit == nil {
		return data, calibration, nil
	}
	if err := precision.CheckSource(s.Model, s.Libraries); err != nil {
		return data, calibration, err
	}
	return profile.Data(p, s)
}

// announceVariants prints the result of each variant.
func (o Options) announceVariants(v profile.Variants, took time.Duration) {
	for _, record := range v.Records {
		for _, note := range record.Notes {
			o.say(record.Precision + ": " + note)
		}
		for _, place := range slices.Sorted(maps.Keys(record.Rejected)) {
			o.say(fmt.Sprintf("%s is rejected: %s", record.NameIn(place), words.Brief(record.Rejected[place])))
		}
		switch n := len(record.Kept); n {
		case 0:
		case 1:
			o.say(record.Precision + ": 1 operator stays in fp32 to keep the limit of accuracy")
		default:
			o.say(fmt.Sprintf("%s: %d operators stay in fp32 to keep the limit of accuracy", record.Precision, n))
		}
	}
	o.say("variants are ready after " + words.Clock(took))
}

func (o Options) say(text string) {
	if !o.Quiet {
		fmt.Fprintln(o.Messages, o.model+text)
	}
}
