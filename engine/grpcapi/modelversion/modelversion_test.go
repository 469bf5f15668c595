package modelversion

import "testing"

// As in C's strtol: leading white space and a sign, and any text behind.
func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"": 0, "1": 1, " 2": 2, "+3": 3, "4x": 4, "1.5": 1, "007": 7, "9223372036854775807": 1<<63 - 1} {
		if got, err := Parse("m", text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"one":                  "failed to get model version from specified version string 'one' (details: stol), version should be an integral value > 0",
		"-":                    "failed to get model version from specified version string '-' (details: stol), version should be an integral value > 0",
		"99999999999999999999": "failed to get model version from specified version string '99999999999999999999' (details: stol), version should be an integral value > 0",
		"-1":                   "invalid model version specified '-1' , version should be an integral value > 0",
		"0":                    "Request for unknown model: 'm' version 0 is not found",
	} {
		if _, err := Parse("m", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
