package isolation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
)

// Parse reads what Options writes.
func TestParse(t *testing.T) {
	t.Parallel()
	policies := []Policy{{Name: "cores_0-3_8-8", Cores: []int{0, 1, 2, 3, 8}, Node: AnyNode}, {Name: "cores_4-4", Cores: []int{4}, Node: 1}}
	var options []string
	for _, p := range policies {
		options = append(options, p.Options()...)
	}
	got, err := Parse(options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policies, got); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if got, err := Parse([]string{"a,cpu-cores=1,3"}); err != nil || !slices.Equal(got[0].Cores, []int{1, 3}) {
		t.Errorf("%v, %v", got, err)
	}
	for option, want := range map[string]string{
		"a": "NAME,SETTING=VALUE", "a,cpu-cores": "NAME,SETTING=VALUE", "a,speed=1": `the setting "speed" is not known`,
		",cpu-cores=1": "a name has letters", "-a,cpu-cores=1": "a name has letters", "$(reboot),cpu-cores=1": "a name has letters", "a b,cpu-cores=1": "a name has letters",
		"a,cpu-cores=x": `"x" is not a number`, "a,cpu-cores=3-1": "not ascending", "a,cpu-cores=1,1": "not ascending", "a,cpu-cores=0-8192": "is not a number",
		"a,numa-node=-1": `"-1" is not a number`, "a,cpu-cores=01": `"01" is not a number`,
	} {
		if _, err := Parse([]string{option}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", option, err, want)
		}
	}
}

// Any text gives an error, or a policy whose options read back as the same one.
func FuzzParse(f *testing.F) {
	for _, option := range []string{"a,cpu-cores=0-3,8", "cores_1-1,cpu-cores=1-1", "a,numa-node=1", "a"} {
		f.Add(option)
	}
	f.Fuzz(func(t *testing.T, option string) {
		// a range of few letters stands for up to 8,192 processors
		defer alloctest.Bound(t, len(option)+8*mostProcessors)()
		got, err := Parse([]string{option})
		if err != nil || len(got[0].Cores) == 0 {
			return
		}
		again, err := Parse(got[0].Options())
		if err != nil || !again[0].Equal(got[0]) {
			t.Errorf("%q became %v, and %v (%v)", option, got, again, err)
		}
	})
}
