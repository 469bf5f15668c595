package cli

import (
	"errors"
	"testing"

	"tuner/hostinfo"
)

// A default configuration is on GPUs only where the build that serves it computes on them: with any other the engine has none.
func TestGPUsOf(t *testing.T) {
	t.Parallel()
	answers := func(err error, list ...string) func() ([]string, error) {
		return func() ([]string, error) { return list, err }
	}
	for name, tt := range map[string]struct {
		gpus      int
		providers func() ([]string, error)
		want      int
	}{
		"the build for cuda":      {2, answers(nil, "tensorrt", "cuda", "cpu"), 2},
		"a build without it":      {2, answers(nil, "openvino", "cpu"), 0},
		"a build that is missing": {2, answers(errors.New("not installed")), 2},
		"a machine without GPUs":  {0, nil, 0}, // nobody is asked
	} {
		if got := gpusOf(hostinfo.Host{GPUs: make([]hostinfo.GPU, tt.gpus)}, tt.providers); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
