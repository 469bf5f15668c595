//go:build linux && cgo

package hostinfo

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// library returns a driver with one GPU.
func library() *mock.Interface {
	device := &mock.Device{
		GetNameFunc:                  func() (string, nvml.Return) { return "NVIDIA T4", nvml.SUCCESS },
		GetUUIDFunc:                  func() (string, nvml.Return) { return "GPU-1", nvml.SUCCESS },
		GetMemoryInfoFunc:            func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 16 << 30, Used: 1 << 30}, nvml.SUCCESS },
		GetCudaComputeCapabilityFunc: func() (int, int, nvml.Return) { return 7, 5, nvml.SUCCESS },
	}
	return &mock.Interface{
		InitFunc:                       func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:                   func() nvml.Return { return nvml.SUCCESS },
		ErrorStringFunc:                func(nvml.Return) string { return "some reason" },
		DeviceGetCountFunc:             func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		DeviceGetHandleByIndexFunc:     func(int) (nvml.Device, nvml.Return) { return device, nvml.SUCCESS },
		SystemGetDriverVersionFunc:     func() (string, nvml.Return) { return "580.10", nvml.SUCCESS },
		SystemGetCudaDriverVersionFunc: func() (int, nvml.Return) { return 13010, nvml.SUCCESS },
		ExtensionsFunc:                 func() nvml.ExtendedInterface { return old },
	}
}

// old returns a driver before release 510, which has none of the newer calls.
var old = &mock.ExtendedInterface{LookupSymbolFunc: func(name string) error { return errors.New("no symbol " + name) }}

// Memory that the driver reserves for itself is not in use. The figures are those of an idle H100
// (driver 580.159.04), on which nvidia-smi showed 0 MiB used and 480 MiB reserved.
func TestReservedMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	m := library()
	m.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) {
		return &mock.Device{
			GetNameFunc:                  func() (string, nvml.Return) { return "NVIDIA H100 80GB HBM3", nvml.SUCCESS },
			GetUUIDFunc:                  func() (string, nvml.Return) { return "GPU-e4d9966d", nvml.SUCCESS },
			GetCudaComputeCapabilityFunc: func() (int, int, nvml.Return) { return 9, 0, nvml.SUCCESS },
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
				return nvml.Memory{Total: 81559 * mib, Free: 81079 * mib, Used: 480 * mib}, nvml.SUCCESS
			},
			GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
				return nvml.Memory_v2{Total: 81559 * mib, Reserved: 480 * mib, Free: 81079 * mib}, nvml.SUCCESS
			},
		}, nvml.SUCCESS
	}
	for used, extensions := range map[int64]nvml.ExtendedInterface{
		480 * mib: old,
		0:         &mock.ExtendedInterface{LookupSymbolFunc: func(string) error { return nil }},
	} {
		m.ExtensionsFunc = func() nvml.ExtendedInterface { return extensions }
		gpus, note := readNVML(m, unset)
		if len(gpus) != 1 || note != "" || gpus[0].Memory != 81559*mib || gpus[0].Used != used {
			t.Errorf("%+v, note %q, want %d bytes in use", gpus, note, used)
		}
	}
}

func TestReadNVML(t *testing.T) {
	t.Parallel()
	want := []GPU{{Name: "NVIDIA T4", UUID: "GPU-1", Memory: 16 << 30, Used: 1 << 30, Capability: "7.5", Driver: "580.10", CUDADriver: "13.1"}}
	tests := []struct {
		name   string
		change func(*mock.Interface)
		want   []GPU
		note   string
	}{
		{"a GPU", func(*mock.Interface) {}, want, ""},
		{"no library", func(m *mock.Interface) {
			m.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
		}, nil, "no NVIDIA driver"},
		{"no driver", func(m *mock.Interface) {
			m.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
		}, nil, "no NVIDIA driver"},
		{"no permission", func(m *mock.Interface) {
			m.InitFunc = func() nvml.Return { return nvml.ERROR_NO_PERMISSION }
		}, nil, "NVIDIA driver not usable: some reason"},
		{"no GPU", func(m *mock.Interface) {
			m.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
		}, nil, "NVIDIA driver, but no GPU"},
		{"lost GPU", func(m *mock.Interface) {
			m.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_GPU_IS_LOST }
		}, nil, "cannot read GPU 0: some reason"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := library()
			tt.change(m)
			gpus, note := readNVML(m, unset)
			if diff := cmp.Diff(tt.want, gpus); diff != "" || note != tt.note {
				t.Errorf("note %q, want %q\n%s", note, tt.note, diff)
			}
			if len(m.ShutdownCalls()) != len(m.DeviceGetCountCalls()) {
				t.Error("the library was opened but not shut down")
			}
		})
	}
}

func TestGPUReader(t *testing.T) {
	t.Parallel()
	device := &mock.Device{
		GetUUIDFunc:                   func() (string, nvml.Return) { return "GPU-1", nvml.SUCCESS },
		GetMemoryInfoFunc:             func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 16, Used: 1}, nvml.SUCCESS },
		GetUtilizationRatesFunc:       func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 25}, nvml.SUCCESS },
		GetPowerUsageFunc:             func() (uint32, nvml.Return) { return 60500, nvml.SUCCESS },
		GetPowerManagementLimitFunc:   func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetTotalEnergyConsumptionFunc: func() (uint64, nvml.Return) { return 1500, nvml.SUCCESS },
	}
	m := library()
	m.DeviceGetCountFunc = func() (int, nvml.Return) { return 2, nvml.SUCCESS }
	m.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 0 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return device, nvml.SUCCESS
	}
	reader, note := newReader(m, unset)
	want := []GPUUsage{{UUID: "GPU-1", Utilization: 0.25, MemoryTotal: 16, MemoryUsed: 1, Power: 60.5, PowerLimit: math.NaN(), Energy: 1.5}}
	if diff := cmp.Diff(want, reader.Read(), cmpopts.EquateNaNs()); diff != "" || note != "" {
		t.Errorf("note %q\n%s", note, diff)
	}
	// A figure that a driver lacks is unknown. A GPU that falls off the bus is left out.
	device.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	device.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	device.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED }
	want[0].Utilization, want[0].Power, want[0].Energy = math.NaN(), math.NaN(), math.NaN()
	if diff := cmp.Diff(want, reader.Read(), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	device.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_GPU_IS_LOST }
	if got := reader.Read(); got != nil {
		t.Errorf("a lost GPU: got %v", got)
	}
	reader.Close()
	reader.Close()
	if len(m.InitCalls()) != 1 || len(m.ShutdownCalls()) != 1 {
		t.Errorf("the library was opened %d times and shut down %d times", len(m.InitCalls()), len(m.ShutdownCalls()))
	}
	m.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	reader, note = newReader(m, unset)
	reader.Close()
	if got := reader.Read(); got != nil || note != "no NVIDIA driver" || len(m.ShutdownCalls()) != 1 {
		t.Errorf("no library: got %v, note %q, shut down %d times", got, note, len(m.ShutdownCalls()))
	}
}

// A process that is on the GPU has the share of its last sample, as long as the driver's period. Samples
// that were seen before, shares without a meaning, and processes that are gone do not count.
func TestProcesses(t *testing.T) {
	t.Parallel()
	var samples []nvml.ProcessUtilizationSample
	present, begin := []uint32{1, 2, 3}, time.Now()
	result, asked := nvml.SUCCESS, uint64(0)
	d := device{seesProcesses: true, computed: map[int]computed{}, Device: &mock.Device{
		GetProcessUtilizationFunc: func(since uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
			asked = since
			return samples, result
		},
		GetComputeRunningProcessesFunc: func() (list []nvml.ProcessInfo, _ nvml.Return) {
			for _, pid := range present {
				list = append(list, nvml.ProcessInfo{Pid: pid})
			}
			return list, nvml.SUCCESS
		},
	}}
	check := func(name string, seconds float64, since uint64, want map[int]float64) {
		t.Helper()
		got := d.processes(begin.Add(time.Duration(seconds * float64(time.Second))))
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" || asked != since {
			t.Errorf("%s: asked for samples since %d, want %d\n%s", name, asked, since, diff)
		}
	}
	samples = []nvml.ProcessUtilizationSample{{Pid: 1, TimeStamp: 5_000_000, SmUtil: 40}, {Pid: 2, TimeStamp: 5_200_000, SmUtil: 100}}
	check("two of three compute", 5.3, 0, map[int]float64{1: 0.4, 2: 1, 3: 0})
	samples = []nvml.ProcessUtilizationSample{{Pid: 1, TimeStamp: 5_100_000, SmUtil: 9}, {Pid: 2, TimeStamp: 5_700_000, SmUtil: 7}, {Pid: 3, TimeStamp: 5_700_000, SmUtil: 2147483632}}
	check("an old sample, a new one and a senseless one", 5.8, 5_200_000, map[int]float64{1: 0.4, 2: 0.07, 3: 0})
	samples, result = nil, nvml.ERROR_NOT_FOUND
	check("the first is too old", 6.4, 5_700_000, map[int]float64{1: 0, 2: 0.07, 3: 0})
	present = present[:1]
	check("the second has ended", 6.5, 5_700_000, map[int]float64{1: 0})
	result = nvml.ERROR_NOT_SUPPORTED
	check("a part of a GPU", 6.6, 5_700_000, nil)
	d.seesProcesses = false
	check("in a container", 6.7, 5_700_000, nil)
}

// A fact that a GPU does not report is unknown. A lost GPU is mentioned in the note, and later ones
// are still read.
func TestGPUsThatTellLittle(t *testing.T) {
	t.Parallel()
	m := fleet("GPU-a", "GPU-b", "GPU-c")
	open := m.DeviceGetHandleByIndexFunc
	m.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		handle, result := open(i)
		device := handle.(*mock.Device)
		switch i {
		case 0:
			device.GetNameFunc = func() (string, nvml.Return) { return "", nvml.ERROR_UNKNOWN }
			device.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 7}, nvml.ERROR_NOT_SUPPORTED }
			device.GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
		case 1:
			device.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_GPU_IS_LOST }
		}
		return device, result
	}
	gpus, note := readNVML(m, unset)
	want := []GPU{
		{UUID: "GPU-a", Driver: "580.10", CUDADriver: "13.1"},
		{Index: 1, Name: "NVIDIA T4", UUID: "GPU-c", Memory: 16, Capability: "7.5", Driver: "580.10", CUDADriver: "13.1"},
	}
	if diff := cmp.Diff(want, gpus); diff != "" || note != "cannot read GPU GPU-b: some reason" {
		t.Errorf("note %q\n%s", note, diff)
	}
	reader, _ := newReader(m, unset)
	defer reader.Close()
	usages := []GPUUsage{{UUID: "GPU-a"}, {UUID: "GPU-c", MemoryTotal: 16}}
	if diff := cmp.Diff(usages, reader.Read()); diff != "" {
		t.Error(diff)
	}
}
