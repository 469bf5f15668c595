// Package hostinfo reads facts about the machine and about its processes. There are three kinds:
//
//   - resources that a configuration can use: cores, quota, memory, CPU features, GPUs
//   - signs of a disturbed measurement: steal and busy time, clock
//   - the CPU time and memory of an engine process
//
// doctor shows the facts, the journal stores them, and package meter and the engine read them. The
// only thing that it changes is the recorded memory peak of a process (ResetPeak). It judges
// nothing.
package hostinfo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"

	"github.com/klauspost/cpuid/v2"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// Host describes the machine as this process may use it. Facts that could not be read are zero, and
// Problems says why.
type Host struct {
	OS       string     `json:"os"` // GOOS
	Arch     string     `json:"arch"`
	Platform string     `json:"platform"` // such as "debian 12.5"
	Kernel   string     `json:"kernel"`
	CPU      CPU        `json:"cpu"`
	Memory   Memory     `json:"memory"`
	NUMA     []NUMANode `json:"numa"`
	GPUs     []GPU      `json:"gpus"`
	// reason why there are no GPUs (no driver is normal), or not all
	GPUNote  string   `json:"gpu_note,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// CPU describes the processors.
type CPU struct {
	Model    string `json:"model"`
	Logical  int    `json:"logical"`  // hardware threads of the machine
	Physical int    `json:"physical"` // cores of the machine; 0: unknown
	// hardware threads that the affinity mask allows this process; empty: unknown
	Allowed  []int    `json:"allowed"`
	Quota    float64  `json:"quota"`    // cores' worth of time that the cgroup grants; 0: unlimited
	Features []string `json:"features"` // interestingFeatures that the processor has
}

// Usable returns the cores' worth of CPU time that this process can have at once: the smaller of
// affinity mask and quota.
func (c CPU) Usable() float64 {
	cores := float64(c.Logical)
	if len(c.Allowed) > 0 {
		cores = float64(len(c.Allowed))
	}
	if c.Quota > 0 {
		cores = math.Min(cores, c.Quota)
	}
	return cores
}

// Memory describes the main memory, in bytes.
type Memory struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"` // for new processes without swapping
	Limit     int64 `json:"limit"`     // of the cgroup; 0: unlimited
}

// Usable returns the largest memory that this process can have.
func (m Memory) Usable() int64 {
	if m.Limit > 0 {
		return min(m.Total, m.Limit)
	}
	return m.Total
}

// NUMANode is a group of processors with the memory near them.
type NUMANode struct {
	ID     int   `json:"id"`
	CPUs   []int `json:"cpus"`
	Memory int64 `json:"memory"` // bytes
}

// Read reads the facts. It never fails as a whole.
func Read(ctx context.Context) Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	h.readSystem(ctx)
	if runtime.GOOS == "linux" {
		h.readLinux(os.DirFS("/"))
	}
	h.GPUs, h.GPUNote = readGPUs()
	return h
}

// readSystem reads the facts that every system has.
func (h *Host) readSystem(ctx context.Context) {
	h.CPU.Model = cpuid.CPU.BrandName
	h.CPU.Features = features(cpuid.CPU.Supports)
	var err error
	h.CPU.Logical, err = cpu.CountsWithContext(ctx, true)
	h.note("logical processors", err)
	h.CPU.Physical, err = cpu.CountsWithContext(ctx, false)
	h.note("physical cores", err)
	if infos, err := cpu.InfoWithContext(ctx); h.CPU.Model == "" && err == nil && len(infos) > 0 {
		h.CPU.Model = infos[0].ModelName
	}
	if info, err := host.InfoWithContext(ctx); err == nil {
		h.Kernel, h.Platform = info.KernelVersion, info.Platform+" "+info.PlatformVersion
	} else {
		h.note("operating system", err)
	}
	memory, err := ReadMemory()
	h.Memory.Total, h.Memory.Available = memory.Total, memory.Available
	if err != nil {
		h.Problems = append(h.Problems, err.Error())
	}
}

// ReadMemory reads the machine's memory, without the limit of the cgroup.
func ReadMemory() (Memory, error) {
	memory, err := mem.VirtualMemory()
	if err != nil {
		return Memory{}, fmt.Errorf("cannot read the memory: %w", err)
	}
	return Memory{Total: int64(memory.Total), Available: int64(memory.Available)}, nil
}

// UsableMemory returns the largest memory that this process can have in bytes. 0: unknown.
func UsableMemory() int64 {
	m, err := readLimitedMemory()
	if err != nil {
		return 0
	}
	return m.Usable()
}

// AvailableMemory returns the memory in bytes that further processes can have now without swapping.
// 0: unknown. It subtracts from a cgroup's limit what this process and its children hold. It does
// not see the memory of other processes in the group.
func AvailableMemory() int64 {
	m, err := readLimitedMemory()
	if err != nil {
		return 0
	}
	own, err := Usage(Tree(os.Getpid()))
	if err != nil {
		return m.Available
	}
	return m.left(own.RSS)
}

// left returns the available memory if our processes hold held bytes.
func (m Memory) left(held int64) int64 {
	if m.Limit > 0 {
		return max(0, min(m.Available, m.Limit-held))
	}
	return m.Available
}

// readLimitedMemory is ReadMemory with the limit of the cgroup.
func readLimitedMemory() (Memory, error) {
	m, err := ReadMemory()
	if err == nil && runtime.GOOS == "linux" {
		if limits, err := readLimits(os.DirFS("/")); err == nil {
			m.Limit = limits.memory
		}
	}
	return m, err
}

// readLinux reads the facts in /proc and /sys. root is the root of the file system.
func (h *Host) readLinux(root fs.FS) {
	var err error
	h.CPU.Allowed, err = readAffinity(root)
	h.note("CPU affinity", err)
	limits, err := readLimits(root)
	h.note("cgroup limits", err)
	h.CPU.Quota, h.Memory.Limit = limits.cores, limits.memory
	if h.Memory.Limit >= h.Memory.Total {
		h.Memory.Limit = 0
	}
	h.NUMA, err = readNUMA(root)
	h.note("NUMA nodes", err)
}

func (h *Host) note(what string, err error) {
	if err != nil {
		h.Problems = append(h.Problems, fmt.Sprintf("cannot read %s: %v", what, err))
	}
}

// interestingFeatures are the instruction sets that decide which kernels ONNX Runtime can choose:
// vectors, int8 dot products, bfloat16 and matrix tiles.
func interestingFeatures() []cpuid.FeatureID {
	return []cpuid.FeatureID{
		cpuid.AVX2, cpuid.FMA3, cpuid.AVXVNNI, cpuid.AVX512F, cpuid.AVX512VNNI, cpuid.AVX512BF16, cpuid.AVX512FP16,
		cpuid.AMXTILE, cpuid.AMXINT8, cpuid.AMXBF16, // x86
		cpuid.ASIMD, cpuid.ASIMDDP, cpuid.FPHP, cpuid.SVE, // Arm
	}
}

func features(supports func(...cpuid.FeatureID) bool) []string {
	names := []string{}
	for _, feature := range interestingFeatures() {
		if supports(feature) {
			names = append(names, feature.String())
		}
	}
	return names
}

// UsableCores returns CPU.Usable in threads, at least 1. A part of a core counts as
// one.
func (h Host) UsableCores() int { return max(1, int(math.Ceil(h.CPU.Usable()))) }

// Fingerprint identifies the machine, for comparisons of measurements. It depends on the facts that
// decide speed, not on the load or the kernel. It has 16 hexadecimal digits.
func (h Host) Fingerprint() string {
	const gibibyte = 1 << 30
	hash := sha256.New()
	fmt.Fprintln(hash, h.OS, h.Arch, h.CPU.Model, h.CPU.Logical, h.CPU.Physical, len(h.CPU.Allowed), h.CPU.Quota, h.CPU.Features)
	// the kernel's share varies by some MiB
	fmt.Fprintln(hash, (h.Memory.Usable()+gibibyte/2)/gibibyte, len(h.NUMA))
	for _, gpu := range h.GPUs {
		fmt.Fprintln(hash, gpu.Name, gpu.Memory)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// Has reports whether the processor has a feature, by its name in Features.
func (c CPU) Has(feature string) bool { return slices.Contains(c.Features, feature) }
