package plural

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 windows": Count(0, "window"), "1 window": Count(1, "window"), "2 windows": Count(2, "window"),
		"1 batch": Count(1, "batch"), "3 batches": Count(3, "batch"), "2 fresh processes": Count(2, "fresh process"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
