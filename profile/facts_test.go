package profile_test

import (
	"testing"

	"tuner/hostinfo"
	"tuner/modelconfig"
	"tuner/onnx/build"
	"tuner/profile"
)

// A configuration with max_batch_size 0 has the batch dimension among its dims: to search batch sizes would make only
// configurations that do not load.
func TestConfigurationDecidesOnBatching(t *testing.T) {
	t.Parallel()
	for size, want := range map[int32]bool{0: false, 4: true} {
		s := profile.Subject{Model: build.MLP(), Config: &modelconfig.Config{MaxBatchSize: size}}
		if got := profile.FactsOf(s, hostinfo.CPU{}).Batching; got != want {
			t.Errorf("max_batch_size %d: batching is %t, want %t", size, got, want)
		}
	}
}
