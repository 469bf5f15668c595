package profile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"tuner/internal/words"
	"tuner/profile/journal"
	"tuner/spec"
)

// leastVariantTime is the least time for making and comparing variants, s. A small model needs some
// seconds for it. So a short budget on a busy machine loses no variant of such a model.
const leastVariantTime = 30 * time.Second

// VariantTime returns the time for making and comparing the variants of all models: as much as the search
// has. A user who gives a search a minute does not want to wait several for what precedes it. 0: no bound.
func VariantTime(budget time.Duration) time.Duration {
	if budget == 0 {
		return 0
	}
	return max(budget, leastVariantTime)
}

// clock is the time for a model's variants.
type clock struct {
	budget time.Duration // of the search
	within time.Duration // for these variants; 0: no bound
	// late: variants that the campaign left out when it began
	late []journal.Variant
}

// newClock returns the clock of a profile, and the context in which its variants are made. A campaign
// that has begun keeps its variants, so that its time has no bound.
func newClock(ctx context.Context, p spec.Profile, within time.Duration) (clock, context.Context, context.CancelFunc, error) {
	c := clock{budget: p.Search.Budget.Time, within: within}
	header, _, err := journal.Read(p.Output)
	if err == nil {
		c.late = slices.DeleteFunc(variantsOf(header, p.Name), func(v journal.Variant) bool { return !v.Late })
		return c, ctx, func() {}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return c, ctx, func() {}, err
	}
	if within > 0 {
		ctx, cancel := context.WithTimeout(ctx, within)
		return c, ctx, cancel, nil
	}
	return c, ctx, func() {}, nil
}

// variantsOf returns the variants that a header has of a model, which may be one of several.
func variantsOf(h journal.Header, model string) []journal.Variant {
	i := slices.IndexFunc(h.Parts, func(p journal.ModelPart) bool { return p.Model == model })
	if i < 0 {
		return h.Variants
	}
	return h.Parts[i].Variants
}

// recorded returns the record of a variant that the campaign left out when it began.
func (c clock) recorded(precision string) (journal.Variant, bool) {
	i := slices.IndexFunc(c.late, func(v journal.Variant) bool { return v.Precision == precision })
	if i < 0 {
		return journal.Variant{}, false
	}
	return c.late[i], true
}

// leaveOut returns the record of a variant for which there was no time.
func (c clock) leaveOut(precision string, isOwn bool, places []string) journal.Variant {
	what := "the time for it"
	if c.within < VariantTime(c.budget) {
		what = "this model's share of the time for it"
	}
	reason := fmt.Sprintf("left out: making and comparing precisions took %s, %s with a budget of %s; a larger budget has time for it, in a new output folder",
		words.Clock(c.within), what, words.Clock(c.budget))
	rejected := map[string]string{}
	for _, p := range places {
		rejected[p] = reason
	}
	return journal.Variant{Precision: precision, Own: isOwn, Late: true, Rejected: rejected}
}
