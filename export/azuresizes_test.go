package export

import (
	"slices"
	"strings"
	"testing"

	"tuner/export/tuned"
)

// on makes the result one of another GPU than an A100.
func on(gpuName string) []string {
	replace := slices.Clone(gpu())
	replace[len(replace)-1] = strings.ReplaceAll(replace[len(replace)-1], "NVIDIA A100 80GB PCIe", gpuName)
	return replace
}

func TestInstanceType(t *testing.T) {
	t.Parallel()
	check := func(options func(*Options), want string, models ...tuned.Model) {
		t.Helper()
		o := defaults()
		if options != nil {
			options(&o)
		}
		d, err := newDeployment(azuremlTarget(), models, o)
		if err != nil {
			d.InstanceType = err.Error()
		}
		if !strings.Contains(d.InstanceType, want) {
			t.Errorf("instance type %q, want %q", d.InstanceType, want)
		}
	}
	peak := func(bytes string) tuned.Model { return parsed(t, `"value": 290000000`, `"value": `+bytes) }
	another := func(m tuned.Model) tuned.Model { m.Name = "another"; return m }

	// A server needs 2 cores, the peak × 1.3, 256 MiB for Triton, and 1 GiB that Azure keeps. In
	// GiB: 6.1 for 4 GB, 7.3 for 5 GB, 8.5 for 6 GB, 17 for 13 GB.
	check(nil, "Standard_D2as_v4", parsed(t))
	check(nil, "Standard_D2as_v4", peak("5000000000"))
	check(nil, "Standard_E2s_v3", peak("6000000000"))
	check(nil, "Standard_E4s_v3", peak("13000000000"))
	check(nil, "Standard_D4as_v4", parsed(t), another(parsed(t))) // 4 cores
	check(nil, "no Azure size is known with 2 cores, 1240", peak("1000000000000"))
	check(func(o *Options) { o.InstanceType = "Standard_DS3_v2" }, "Standard_DS3_v2", parsed(t))

	check(nil, "Standard_NC24ads_A100_v4", parsed(t, gpu()...))
	check(nil, "Standard_NC4as_T4_v3", parsed(t, on("Tesla T4")...))
	check(nil, "Standard_NC24ads_A100_v4", parsed(t), another(parsed(t, gpu()...))) // the first model runs on CPUs only
	check(nil, "GPUs like those that were measured (NVIDIA A100 80GB PCIe, Tesla T4)", parsed(t, gpu()...), another(parsed(t, on("Tesla T4")...)))
	// the T400 is not a T4
	check(nil, "GPUs like those that were measured (NVIDIA T400)", parsed(t, on("NVIDIA T400")...))
	check(nil, "GPUs like those that were measured (unknown ones)", parsed(t, append(gpu(), measuredOn("server", "remote")...)...))
	check(func(o *Options) { o.GPUs = 4 }, "Standard_NC96ads_A100_v4", parsed(t, gpu()...))
	check(func(o *Options) { o.GPUs = 3 }, "3 cores, 640 MiB and 3 × A100: name one with --instance-type", parsed(t, gpu()...))
	check(func(o *Options) { o.GPUs = 0 }, "--gpus 0: the tuned configuration needs 1", parsed(t, gpu()...))
}
