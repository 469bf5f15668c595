package document

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	check := func(text string, want float64) {
		got, ok := parseSize(text)
		if !ok || !cmp.Equal(got, want, cmpopts.EquateApprox(1e-12, 0)) {
			t.Errorf("parseSize(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	check("2GiB", 2*1024*1024*1024)
	check("512MB", 512e6)
	check("1.5 kB", 1500)
	check("100B", 100)
	for _, text := range []string{"", "2", "GiB", "2G", "2gb", "NaNMB", "infGB"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("parseSize(%q) = %v, want an error", text, got)
		}
	}
}
