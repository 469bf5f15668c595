package export

import (
	"slices"
	"strings"
	"testing"
)

// on makes the result one of another GPU than an A100.
func on(gpuName string) []string {
	replace := slices.Clone(gpu())
	replace[len(replace)-1] = strings.ReplaceAll(replace[len(replace)-1], "NVIDIA A100 80GB PCIe", gpuName)
	return replace
}

func TestInstanceType(t *testing.T) {
	t.Parallel()
	check := func(options func(*Options), want string, models ...Model) {
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
	peak := func(bytes string) Model { return parsed(t, `"value": 290000000`, `"value": `+bytes) }
	another := func(m Model) Model { m.Name = "another"; return m }

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

// Azure retires none of the chosen sizes. The smallest size that fits comes first.
func TestAzureSizes(t *testing.T) {
	t.Parallel()
	for i, size := range azureSizes {
		if notes := azureNotes(Deployment{InstanceType: size.name}, defaults()); len(notes) > 0 {
			t.Errorf("%s: %v", size.name, notes)
		}
		if before := azureSizes[max(0, i-1)]; before.gpu == size.gpu && (before.cores > size.cores || before.cores == size.cores && before.memory > size.memory) {
			t.Errorf("%s stands after the larger %s", size.name, before.name)
		}
	}
}

func TestRetirements(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]string{
		"Standard_NC6": "2023-09-06", "Standard_NC24r_Promo": "2023-09-06", "Standard_NC6s_v2": "2023-09-06", "Standard_ND24rs": "2023-09-06",
		"Standard_NV12": "2023-09-06", "Basic_A1": "2024-08-31", "Standard_NC6s_v3": "2025-09-30", "standard_nc24rs_v3": "2025-09-30",
		"Standard_NV12s_v3": "2026-09-30", "Standard_NV4as_v4": "2026-09-30", "Standard_DS3_v2": "2028-05-01", "Standard_D13": "2028-05-01",
		"Standard_L8s": "2028-05-01", "Standard_A2m_v2": "2028-11-15", "Standard_B2ms": "2028-11-15", "Standard_F4s_v2": "2028-11-15",
		"Standard_F2": "2028-11-15", "Standard_GS5-16": "2028-11-15", "Standard_L8s_v2": "2028-11-15",
		"Standard_D4s_v5": "", "Standard_D2_v3": "", "Standard_B2s_v2": "", "Standard_L8s_v3": "", "Standard_FX4mds": "", "Standard_ND96asr_v4": "",
	} {
		text := strings.Join(azureNotes(Deployment{InstanceType: size}, defaults()), " ")
		if (want == "") != (text == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want the date %q", size, text, want)
		}
	}
}
