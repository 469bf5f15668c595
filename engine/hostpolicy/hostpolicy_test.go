package hostpolicy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse([]string{"cpu,cpu-cores=2-3,0-0,3-4", "gpu_0,numa-node=1", "cpu,numa-node=0"})
	want := []Policy{{"cpu", []int{0, 2, 3, 4}, 0}, {"gpu_0", nil, 1}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if p := Find(got, "gpu_0"); p.Node != 1 || p.IsAny() {
		t.Errorf("gpu_0 is %+v", p)
	}
	if p := Find(got, "gpu_1"); !p.IsAny() {
		t.Errorf("a policy that nobody defined is %+v", p)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	const format = "--host-policy option format is '<policy name>,<setting>=<value>'"
	for option, want := range map[string]string{
		"":                        format,
		"cpu":                     format,
		"cpu,numa-node":           format,
		",numa-node=0":            format,
		"cpu,numa-node=":          format,
		"cpu,numa-node=x":         `"x" is not a number from 0 to 63`,
		"cpu,numa-node=-1":        `"-1" is not a number`,
		"cpu,numa-node=64":        `"64" is not a number`,
		"cpu,cpu-cores=1":         "format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 1",
		"cpu,cpu-cores=0-1,":      "format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got ",
		"cpu,cpu-cores=3-1":       "ends before it begins",
		"cpu,cpu-cores=0-5000000": `"5000000" is not a number from 0 to 1023`,
		"cpu,colour=red":          `unknown setting "colour"`,
	} {
		if _, err := Parse([]string{option}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", option, err, want)
		}
	}
}
