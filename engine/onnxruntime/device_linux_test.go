package onnxruntime

import (
	"runtime"
	"testing"

	"tuner/engine"
	"tuner/engine/hostpolicy"
	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
)

// A process that is kept to one core, as by taskset, gets the threads of one core. ONNX Runtime would bind a default
// number of threads to the cores of the machine.
func TestDeviceOfAKeptProcess(t *testing.T) {
	t.Parallel()
	if hostpolicy.Cores() < 2 || !hostinfo.IsWhole(hostpolicy.Cores()) {
		t.Skip("needs a machine of two cores of its own")
	}
	anywhere := hostpolicy.Any()
	if got, want := deviceOf(engine.Instance{Policy: anywhere}), (modelconfig.Device{Cores: hostpolicy.Cores()}); got != want {
		t.Errorf("on the whole machine: %+v, want %+v", got, want)
	}
	kept := make(chan modelconfig.Device)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := (hostpolicy.Policy{Cores: []int{0}, Node: hostpolicy.NoNode}).Bind(); err != nil {
			t.Error(err)
		}
		kept <- deviceOf(engine.Instance{Policy: anywhere})
	}()
	if got, want := <-kept, (modelconfig.Device{Cores: 1, Bound: true}); got != want {
		t.Errorf("on one core: %+v, want %+v", got, want)
	}
}
