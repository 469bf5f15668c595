package hostinfo

import (
	"context"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/cpuid/v2"
)

func TestUsable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		cpu  CPU
		want float64
	}{
		{CPU{Logical: 8}, 8},
		{CPU{Logical: 8, Allowed: []int{0, 1}}, 2},
		{CPU{Logical: 8, Quota: 1.5}, 1.5},
		// a quota above the mask has no effect
		{CPU{Logical: 8, Allowed: []int{0, 1}, Quota: 4}, 2},
	}
	for _, tt := range tests {
		if got := tt.cpu.Usable(); got != tt.want {
			t.Errorf("%+v: usable %v, want %v", tt.cpu, got, tt.want)
		}
	}
	if got := (Host{CPU: CPU{Logical: 8, Quota: 1.5}}).UsableCores(); got != 2 {
		t.Errorf("1.5 cores are %d threads, want 2", got)
	}
	if got := (Host{}).UsableCores(); got != 1 {
		t.Errorf("unknown cores are %d threads, want 1", got)
	}
	if got := (Memory{Total: 8, Limit: 3}).Usable(); got != 3 {
		t.Errorf("memory below its limit: %d", got)
	}
	if got := (Memory{Total: 8}).Usable(); got != 8 {
		t.Errorf("memory without limit: %d", got)
	}
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	supports := func(ids ...cpuid.FeatureID) bool { return ids[0] == cpuid.AVX2 || ids[0] == cpuid.AMXINT8 }
	if diff := cmp.Diff([]string{"AVX2", "AMXINT8"}, features(supports)); diff != "" {
		t.Error(diff)
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	host := Host{OS: "linux", CPU: CPU{Model: "X", Logical: 8}, Memory: Memory{Total: 16 << 30}, GPUs: []GPU{{Name: "G", Memory: 1}}}
	same := host
	same.Kernel, same.Memory.Available = "6.2", 5
	same.Memory.Total -= 100 << 20 // less than half a GiB, by which the kernel's own memory varies
	same.GPUs = []GPU{{Name: "G", Memory: 1, Used: 7}}
	if host.Fingerprint() != same.Fingerprint() {
		t.Error("the fingerprint depends on load or kernel")
	}
	changes := map[string]func(*Host){
		"model":    func(h *Host) { h.CPU.Model = "Y" },
		"cores":    func(h *Host) { h.CPU.Logical = 4 },
		"quota":    func(h *Host) { h.CPU.Quota = 2 },
		"affinity": func(h *Host) { h.CPU.Allowed = []int{0} },
		"features": func(h *Host) { h.CPU.Features = []string{"AVX2"} },
		"memory":   func(h *Host) { h.Memory.Limit = 2 << 30 },
		"GPU":      func(h *Host) { h.GPUs = nil },
	}
	for name, change := range changes {
		other := host
		change(&other)
		if other.Fingerprint() == host.Fingerprint() {
			t.Errorf("the fingerprint doesn't depend on %s", name)
		}
	}
}

// The real machine has the facts that every machine has.
func TestRead(t *testing.T) {
	t.Parallel()
	host := Read(context.Background())
	if host.CPU.Logical < 1 || host.CPU.Usable() <= 0 || host.Memory.Total <= 0 || host.Kernel == "" {
		t.Errorf("%+v", host)
	}
	if host.Fingerprint() != Read(context.Background()).Fingerprint() {
		t.Error("two readings have two fingerprints")
	}
	if runtime.GOOS == "linux" && len(host.CPU.Allowed) == 0 {
		t.Errorf("no affinity: %q", host.Problems)
	}
	if len(host.GPUs) == 0 && host.GPUNote == "" {
		t.Error("no GPUs, and no word why")
	}
}

func TestUsableMemory(t *testing.T) {
	t.Parallel()
	m, err := ReadMemory()
	if err != nil {
		t.Fatal(err)
	}
	if m.Available <= 0 || m.Available > m.Total {
		t.Errorf("got %+v", m)
	}
	if got := UsableMemory(); got <= 0 || got > m.Total {
		t.Errorf("%d bytes are usable of %d", got, m.Total)
	}
}

func TestAvailableMemory(t *testing.T) {
	t.Parallel()
	check := func(m Memory, held, want int64) {
		t.Helper()
		if got := m.left(held); got != want {
			t.Errorf("%+v, of which we hold %d: %d, want %d", m, held, got, want)
		}
	}
	// our own memory is not part of the available memory
	check(Memory{Total: 100, Available: 60}, 30, 60)
	check(Memory{Total: 100, Available: 60, Limit: 50}, 30, 20) // the limit of the group is tighter
	check(Memory{Total: 100, Available: 10, Limit: 50}, 30, 10)
	check(Memory{Total: 100, Available: 60, Limit: 20}, 30, 0)
	if got, usable := AvailableMemory(), UsableMemory(); got <= 0 || got > usable {
		t.Errorf("%d bytes are available of %d", got, usable)
	}
}
