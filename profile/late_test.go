package profile_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/model/precision"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
)

// slowMaker takes the same time for each variant.
type slowMaker struct {
	*fakeMaker
	takes time.Duration
}

func (m slowMaker) Make(ctx context.Context, name string, places []string) (precision.Variant, error) {
	select {
	case <-time.After(m.takes):
		return m.fakeMaker.Make(ctx, name, places)
	case <-ctx.Done():
		return precision.Variant{}, ctx.Err()
	}
}

// lateOf lists the precisions of records: "int8", "fp16 late".
func lateOf(records []journal.Variant) (list []string) {
	for _, r := range records {
		name := r.Precision
		if r.Late {
			name += " late"
		}
		list = append(list, name)
	}
	return list
}

// Variants take as long as the search may, and at least 30 s. Those that are not ready then are left
// out, and the campaign stays without them when it resumes.
func TestVariantsTakeNoLongerThanTheSearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		budget string
		takes  time.Duration
		want   []string
	}{
		{"20s", 14 * time.Second, []string{"int8", "fp16"}},           // after 14 s and 28 s, of 30 s
		{"20s", 25 * time.Second, []string{"int8", "fp16 late"}},      // after 25 s and 50 s
		{"20s", 40 * time.Second, []string{"int8 late", "fp16 late"}}, // the second does not begin
		{"60s", 25 * time.Second, []string{"int8", "fp16"}},           // of 60 s
		{"{trials: 3}", time.Hour, []string{"int8", "fp16"}},          // no bound
	} {
		synctest.Test(t, func(t *testing.T) {
			p, subject, fake := variantCase(t, "output: out\nspace: {precision: [fp32, int8, fp16]}\nsearch: {budget: "+c.budget+"}")
			maker := slowMaker{fake, c.takes}
			setup := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}}
			began := time.Now()
			v, err := profile.MakeVariants(t.Context(), p, subject, setup.Facts, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lateOf(v.Records)); diff != "" {
				t.Errorf("%s, %s each: %s", c.budget, c.takes, diff)
			}
			if took := time.Since(began); c.budget == "20s" && took > 30*time.Second {
				t.Errorf("%s each took %s", c.takes, took)
			}
			for _, r := range v.Records {
				if r.Late && !strings.Contains(r.Rejected[""], "a larger budget has time for it") {
					t.Errorf("%s is left out because %q", r.Precision, r.Rejected[""])
				}
			}
			log, err := profile.OpenLog(setup.With(v), time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			fake.asked = nil
			again, err := profile.MakeVariants(t.Context(), p, subject, setup.Facts, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v.Records, again.Records); diff != "" {
				t.Errorf("%s, %s each, resumed: %s", c.budget, c.takes, diff)
			}
			for _, r := range v.Records {
				if isAsked := slices.Contains(fake.asked, "make "+r.Precision+" for cpu"); isAsked == r.Late {
					t.Errorf("%s, %s each, resumed: %s is made: %t", c.budget, c.takes, r.Precision, isAsked)
				}
			}
		})
	}
}

// A user who interrupts ends the work, whatever time is left.
func TestInterruptedVariants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, subject, fake := variantCase(t, "output: out\nspace: {precision: [fp32, int8]}\nsearch: {budget: 20s}")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := profile.MakeVariants(ctx, p, subject, search.Facts{}, slowMaker{fake, 10 * time.Second}, allWork, profile.VariantTime(p.Search.Budget.Time)); err == nil || ctx.Err() == nil {
			t.Errorf("err = %v", err)
		}
	})
}
