package ort

import (
	"os"
	"testing"

	"tuner/internal/telemetry"
)

// Opening the library stops its reports. A user's own setting stays.
func TestOpenStopsReports(t *testing.T) {
	for set, want := range map[string]string{"0": "0", "1": "1", "": ""} {
		t.Setenv(telemetry.Variable, set)
		telemetry.Disable()
		if got := os.Getenv(telemetry.Variable); got != want {
			t.Errorf("set to %q, it becomes %q", set, got)
		}
	}
	_ = os.Unsetenv(telemetry.Variable)
	if _, err := Open("/nowhere/libonnxruntime.so"); err == nil {
		t.Fatal("a library that is not there was opened")
	}
	if got := os.Getenv(telemetry.Variable); got != "1" {
		t.Errorf("not set, it is %q once a library was to be opened", got)
	}
}
