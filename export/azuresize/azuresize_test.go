package azuresize

import "testing"

// Azure retires none of the chosen sizes. The smallest size that fits comes first.
func TestAzureSizes(t *testing.T) {
	t.Parallel()
	for i, size := range sizes {
		if date := Retirement(size.name); date != "" {
			t.Errorf("%s: %s", size.name, date)
		}
		if before := sizes[max(0, i-1)]; before.gpu == size.gpu && (before.cores > size.cores || before.cores == size.cores && before.memory > size.memory) {
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
		if got := Retirement(size); got != want {
			t.Errorf("%s: %q, want the date %q", size, got, want)
		}
	}
}
