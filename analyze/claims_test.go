package analyze_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/search"
	"tuner/spec"
)

// Nothing answers within 1 ms, and everything within 1 s. A result's claims follow its own goal,
// not the campaign's.
func TestClaimsAreOfTheGoal(t *testing.T) {
	t.Parallel()
	c := campaignOn(t, strings.Replace(guidedProfile, "max: 1s", "max: 1ms", 1), server{overhead: 0.0003})
	claims := func(o analyze.Options) []string {
		t.Helper()
		r, err := analyze.Analyze(c, o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Ending.Statement
	}
	if own := strings.Join(c.End.Statement, " "); !strings.Contains(own, "Nearest: ") {
		t.Fatalf("the campaign claims %q: else the test shows nothing", own)
	}
	copied := c.Profile.Goal
	limit := *copied.Constraints[0].Max
	copied.Constraints = []search.Constraint{{Metric: copied.Constraints[0].Metric, Max: &limit}}
	own := slices.Clone(c.End.Statement)
	c.End.Statement = append(c.End.Statement, "So it said.") // the sentences of the journal are not repeated
	if diff := cmp.Diff(own, claims(analyze.Options{Goal: &copied})); diff != "" {
		t.Errorf("with the campaign's own goal (-want +got):\n%s", diff)
	}
	loose, second := c.Profile.Goal, 1.0
	loose.Constraints = []search.Constraint{{Metric: copied.Constraints[0].Metric, Max: &second}}
	if text := strings.Join(claims(analyze.Options{Goal: &loose}), " "); !strings.Contains(text, "Recommended: ") || strings.Contains(text, "Nearest") {
		t.Errorf("within 1 s it claims %q", text)
	}
	for name, o := range map[string]analyze.Options{"at one load": {At: spec.At{Lowest: true}}, "by the mean": {Rank: spec.RankTop3Mean}} {
		if list := claims(o); list != nil { // the strategy predicts best loads only
			t.Errorf("%s it claims %q", name, list)
		}
	}
	c.End = nil
	if list := claims(analyze.Options{Goal: &copied}); len(list) == 0 || list[0] != own[0] {
		t.Errorf("before its end it claims %q", list)
	}
}
