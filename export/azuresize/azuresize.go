// Package azuresize has the machine sizes of Azure's managed online endpoints: which one fits, and when Azure
// retires it. Package export chooses by it.
package azuresize

import (
	"regexp"
	"slices"
)

// size is a machine that Azure offers.
type size struct {
	name   string
	gpu    string // "" without GPUs
	gpus   int
	cores  int
	memory int64 // GiB
}

// sizes are machines for Azure's managed online endpoints, smaller ones first. They are in
// Azure's list of supported sizes, and not in its list of retired size series. Among the sizes
// without GPUs, these two families are the newest.
var sizes = []size{
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

// Smallest returns the smallest size with GPUs of a kind, cores, and memory in MiB. It returns false if
// none is known.
func Smallest(gpu string, gpus, cores int, memory int64) (string, bool) {
	i := slices.IndexFunc(sizes, func(s size) bool {
		return s.gpu == gpu && s.gpus == gpus && s.cores >= cores && s.memory<<10 >= memory
	})
	if i < 0 {
		return "", false
	}
	return sizes[i].name, true
}

// KindOfGPU returns a GPU's kind as Smallest takes it, from the GPU's name; "" for others.
func KindOfGPU(name string) string {
	for _, s := range sizes {
		if s.gpu != "" && regexp.MustCompile(`\b`+s.gpu+`\b`).MatchString(name) {
			return s.gpu
		}
	}
	return ""
}

// Retirement returns the date on which Azure retires a size; "" for others.
func Retirement(name string) string {
	for _, r := range retirements {
		if r.sizes.MatchString(name) {
			return r.date
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
