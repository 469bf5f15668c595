package doctor

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/golden"
	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/ort/provider/probe"
)

// machine is a server with two GPUs, a quota, two NUMA nodes, and several problems.
func machine() Diagnosis {
	const gib = 1 << 30
	return Diagnosis{
		Fingerprint: "0123456789abcdef",
		Host: hostinfo.Host{
			OS: "linux", Arch: "amd64", Platform: "debian 12.5", Kernel: "6.1.0",
			CPU: hostinfo.CPU{Model: "Example CPU", Logical: 16, Physical: 8, Allowed: []int{0, 1, 2, 3, 4, 5, 6, 7},
				Quota: 2.5, Features: []string{"AVX2", "FMA3"}},
			Memory: hostinfo.Memory{Total: 64 * gib, Available: 48 * gib, Limit: 8 * gib},
			NUMA:   []hostinfo.NUMANode{{ID: 0, CPUs: []int{0, 1}, Memory: 32 * gib}, {ID: 1, CPUs: []int{2, 3}, Memory: 32 * gib}},
			GPUs: []hostinfo.GPU{{Name: "Example GPU", Memory: 16 * gib, Used: gib, Capability: "7.5", Driver: "580.10", CUDADriver: "13.1"},
				{Index: 1, CUDADriver: "13.1"}},
			GPUNote:  "cannot read GPU 2: GPU is lost",
			Problems: []string{"cannot read something: permission denied"},
		},
		MemoryPolicy: "operation not permitted: in a container, set_mempolicy needs the capability SYS_NICE",
		Noise:        &Noise{Busy: 0.25, Steal: 0.013},
		Pip:          "python3 has no working pip; install it:\n  No module named pip",
		Selected:     "cpu@1.31.1",
		Runtimes: []Runtime{
			{Name: "cpu@1.31.1", Library: "/cache/cpu/libonnxruntime.so.1.31.1", Version: "1.31.1",
				Providers: []Provider{{Name: "cpu", Works: true, Milliseconds: 12.4}}},
			{Name: "cuda@1.31.1", Library: "/cache/cuda/libonnxruntime.so.1.31.1", Version: "1.31.1",
				Providers: []Provider{{Name: "cuda", Error: "failed: signal: aborted (core dumped)"}, {Name: "cpu", Works: true, Milliseconds: 9}}},
			{Name: "external", Library: "/lib/x.so", Error: "cannot open ONNX Runtime \"/lib/x.so\": invalid ELF header"},
		},
		Installable: []string{"openvino@1.24.1"},
	}
}

// quietMachine is a small machine without problems and without installed builds.
func quietMachine() Diagnosis {
	return Diagnosis{
		Fingerprint: "fedcba9876543210",
		Host: hostinfo.Host{OS: "darwin", Arch: "arm64", Platform: "darwin 15", Kernel: "25.0",
			CPU: hostinfo.CPU{Model: "Example Arm", Logical: 8}, Memory: hostinfo.Memory{Total: 16 << 30, Available: 8 << 30},
			GPUNote: "this build of tuner cannot look for NVIDIA GPUs"},
		Installable: []string{"cpu@1.31.1"},
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]Diagnosis{"server": machine(), "quiet": quietMachine()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := Write(&got, d); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Bytes())
		})
	}
}

// If a model fails where a tiny one runs, the model is the cause. If the provider runs neither, it
// is not.
func TestModelAtFault(t *testing.T) {
	t.Parallel()
	tries := Prober(func(_ context.Context, _ ortlib.Build, provider, model string) probe.Answer {
		switch {
		case provider == "":
			return probe.Answer{Version: "1.2", Providers: []string{"cpu", "openvino"}}
		case provider == "openvino":
			return probe.Answer{Error: "it is not there"}
		case model != "":
			return probe.Answer{Error: "it is damaged"}
		}
		return probe.Answer{Milliseconds: 1}
	})
	fact := tries.try(t.Context(), ortlib.Build{Flavour: "cpu", Version: "1.2"}, "bad.onnx")
	want := []Provider{{Name: "cpu", Error: "it is damaged", Refused: "bad.onnx"}, {Name: "openvino", Error: "it is not there"}}
	if diff := cmp.Diff(want, fact.Providers); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	var text bytes.Buffer
	if err := Write(&text, Diagnosis{Runtimes: []Runtime{fact}}); err != nil {
		t.Fatal(err)
	}
	for remedy, wanted := range map[string]bool{`"bad.onnx" is at fault`: true, probe.Remedy("cpu"): false, probe.Remedy("openvino"): true} {
		if strings.Contains(text.String(), remedy) != wanted {
			t.Errorf("the remedy %q: want it %t in\n%s", remedy, wanted, text.String())
		}
	}
}
