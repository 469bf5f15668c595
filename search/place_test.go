package search_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/search"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	without := search.RuntimeFacts{Name: "cpu@1", Unavailable: map[string]string{"openvino": "not in this build"}}
	several := []search.RuntimeFacts{without, {Name: "openvino@2"}}
	providers := knob("execution_provider", "openvino", "cpu")
	for name, test := range map[string]struct {
		facts     search.Facts
		knobs     []search.Knob
		want      []string
		reference string
	}{
		"one build":                {search.Facts{}, []search.Knob{providers}, []string{"cpu", "openvino"}, "cpu"},
		"what does not work":       {search.Facts{Unavailable: without.Unavailable}, []search.Knob{providers}, []string{"cpu"}, "cpu"},
		"no provider in the space": {search.Facts{}, []search.Knob{knob("precision", "fp32")}, []string{"cpu"}, "cpu"},
		"the default's provider":   {search.Facts{Base: map[string]search.Value{"execution_provider": "openvino"}}, nil, []string{"openvino"}, "cpu"},
		"several builds": {search.Facts{Runtimes: several}, []search.Knob{providers},
			[]string{"cpu in cpu@1", "cpu in openvino@2", "openvino in openvino@2"}, "cpu in cpu@1"},
		"one build of the knob runtime": {search.Facts{Runtimes: several[1:]}, []search.Knob{providers}, []string{"cpu", "openvino"}, "cpu"},
		"a stock Triton has the first":  {search.Facts{Runtimes: several, TritonOnly: true}, []search.Knob{providers}, []string{"cpu"}, "cpu"},
	} {
		space := search.Space{Knobs: test.knobs, Facts: test.facts}
		var got []string
		for _, place := range space.Places() {
			got = append(got, place.String())
			if parsed := search.ParsePlace(place.String()); parsed != place {
				t.Errorf("%s: %q reads as %+v, want %+v", name, place, parsed, place)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := space.Reference().String(); got != test.reference {
			t.Errorf("%s: the reference is %q, want %q", name, got, test.reference)
		}
	}
}
