package export

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// azureSize is a machine that Azure offers.
type azureSize struct {
	name   string
	gpu    string // "" without GPUs
	gpus   int
	cores  int
	memory int64 // GiB
}

// azureSizes are machines for Azure's managed online endpoints, smaller ones first. They are in
// Azure's list of supported sizes, and not in its list of retired size series. Among the sizes
// without GPUs, these two families are the newest.
var azureSizes = []azureSize{
	{"Standard_D2as_v4", "", 0, 2, 8},
	{"Standard_E2s_v3", "", 0, 2, 16},
	{"Standard_D4as_v4", "", 0, 4, 16},
	{"Standard_E4s_v3", "", 0, 4, 32},
	{"Standard_D8as_v4", "", 0, 8, 32},
	{"Standard_E8s_v3", "", 0, 8, 64},
	{"Standard_D16as_v4", "", 0, 16, 64},
	{"Standard_E16s_v3", "", 0, 16, 128},
	{"Standard_D32as_v4", "", 0, 32, 128},
	{"Standard_E32s_v3", "", 0, 32, 256},
	{"Standard_D48as_v4", "", 0, 48, 192},
	{"Standard_E48s_v3", "", 0, 48, 384},
	{"Standard_D64as_v4", "", 0, 64, 256},
	{"Standard_E64s_v3", "", 0, 64, 432},
	{"Standard_D96as_v4", "", 0, 96, 384},

	{"Standard_NC4as_T4_v3", "T4", 1, 4, 28},
	{"Standard_NC8as_T4_v3", "T4", 1, 8, 56},
	{"Standard_NC16as_T4_v3", "T4", 1, 16, 110},
	{"Standard_NC64as_T4_v3", "T4", 4, 64, 440},
	{"Standard_NV36ads_A10_v5", "A10", 1, 36, 440},
	{"Standard_NV36adms_A10_v5", "A10", 1, 36, 880},
	{"Standard_NV72ads_A10_v5", "A10", 2, 72, 880},
	{"Standard_NC24ads_A100_v4", "A100", 1, 24, 220},
	{"Standard_NC48ads_A100_v4", "A100", 2, 48, 440},
	{"Standard_NC96ads_A100_v4", "A100", 4, 96, 880},
	{"Standard_NC40ads_H100_v5", "H100", 1, 40, 320},
	{"Standard_NC80adis_H100_v5", "H100", 2, 80, 640},
}

// azureReserve is the memory for the machine's system and Azure's containers beside Triton, in MiB.
// It is an estimate.
const azureReserve = 1024

// instanceType returns the user's size, or the smallest one with the server's cores, memory and
// GPUs.
func instanceType(d Deployment, chosen string) (string, error) {
	if chosen != "" {
		return chosen, nil
	}
	gpu, err := azureGPU(d)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(azureSizes, func(s azureSize) bool {
		return s.gpu == gpu && s.gpus == d.GPUs && s.cores >= d.CPUs && s.memory<<10 >= d.Memory+azureReserve
	})
	if i < 0 {
		return "", inputErrorf("no Azure size is known with %d cores, %d MiB%s: name one with --instance-type", d.CPUs, d.Memory, gpusText(d.GPUs, gpu))
	}
	return azureSizes[i].name, nil
}

func gpusText(n int, gpu string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d × %s", n, gpu)
}

// azureGPU returns the kind of GPU on which all models with GPUs were measured. It returns "" for a
// server without GPUs.
func azureGPU(d Deployment) (string, error) {
	if d.GPUs == 0 {
		return "", nil
	}
	names, kinds := map[string]bool{}, map[string]bool{}
	for _, m := range d.Models {
		if m.GPUs() == 0 {
			continue
		}
		for _, gpu := range m.Host.GPUs {
			names[gpu.Name], kinds[kindOfGPU(gpu.Name)] = true, true
		}
	}
	if kind := slices.Collect(maps.Keys(kinds)); len(kind) == 1 && kind[0] != "" {
		return kind[0], nil
	}
	return "", inputErrorf("no Azure size is known with GPUs like those that were measured (%s): name one with --instance-type",
		cmp.Or(strings.Join(slices.Sorted(maps.Keys(names)), ", "), "unknown ones"))
}

// kindOfGPU returns a GPU's kind as azureSizes names it, from the GPU's name; "" for others.
func kindOfGPU(name string) string {
	for _, size := range azureSizes {
		if size.gpu != "" && regexp.MustCompile(`\b`+size.gpu+`\b`).MatchString(name) {
			return size.gpu
		}
	}
	return ""
}

// retirements are the dates on which Azure retires sizes, from its list of retired size series and
// the linked guides. It has the series that endpoints support, and those on which models were
// measured earlier.
var retirements = []struct {
	sizes *regexp.Regexp
	date  string
}{
	{regexp.MustCompile(`(?i)^Standard_NC(6|12|24)r?(_Promo)?$`), "2023-09-06"},             // NC
	{regexp.MustCompile(`(?i)^Standard_NC(6|12|24)r?s_v2$`), "2023-09-06"},                  // NCv2
	{regexp.MustCompile(`(?i)^Standard_ND(6|12|24)r?s$`), "2023-09-06"},                     // ND
	{regexp.MustCompile(`(?i)^Standard_NV(6|12|24)(_Promo)?$`), "2023-09-06"},               // NV
	{regexp.MustCompile(`(?i)^(Standard|Basic)_A[0-9]+$`), "2024-08-31"},                    // Av1
	{regexp.MustCompile(`(?i)^Standard_NC(6|12|24)r?s_v3$`), "2025-09-30"},                  // NCv3
	{regexp.MustCompile(`(?i)^Standard_NV(12|24|32|48)(s|hs|ms)_v3$`), "2026-09-30"},        // NVv3
	{regexp.MustCompile(`(?i)^Standard_NV(4|8|16|32)ah?s_v4$`), "2026-09-30"},               // NVv4
	{regexp.MustCompile(`(?i)^Standard_DS?[0-9]+(-[0-9]+)?(_v2)?(_Promo)?$`), "2028-05-01"}, // D, Ds, Dv2, Dsv2
	{regexp.MustCompile(`(?i)^Standard_L[0-9]+s$`), "2028-05-01"},                           // Ls
	{regexp.MustCompile(`(?i)^Standard_A[0-9]+m?_v2$`), "2028-11-15"},                       // Av2, Amv2
	{regexp.MustCompile(`(?i)^Standard_B[0-9]+[lm]?s$`), "2028-11-15"},                      // B
	{regexp.MustCompile(`(?i)^Standard_F[0-9]+(s|s?_v2)?$`), "2028-11-15"},                  // F, Fs, Fsv2
	{regexp.MustCompile(`(?i)^Standard_GS?[0-9]+(-[0-9]+)?$`), "2028-11-15"},                // G, Gs
	{regexp.MustCompile(`(?i)^Standard_L[0-9]+s_v2$`), "2028-11-15"},                        // Lsv2
}
