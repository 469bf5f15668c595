//go:build linux && cgo

package hostinfo

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
)

// unset is an environment without variables.
func unset(string) (string, bool) { return "", false }

// visible returns an environment in which CUDA_VISIBLE_DEVICES is a list.
func visible(list string) lookup {
	return func(name string) (string, bool) { return list, name == "CUDA_VISIBLE_DEVICES" }
}

// part is the UUID of the only part (MIG) in a fleet.
const part = "MIG-7e1c"

// fleet returns a driver with a GPU for each UUID, and with the part.
func fleet(uuids ...string) *mock.Interface {
	open := func(uuid string) nvml.Device {
		return &mock.Device{
			GetNameFunc:                   func() (string, nvml.Return) { return "NVIDIA T4", nvml.SUCCESS },
			GetUUIDFunc:                   func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
			GetMemoryInfoFunc:             func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 16}, nvml.SUCCESS },
			GetCudaComputeCapabilityFunc:  func() (int, int, nvml.Return) { return 7, 5, nvml.SUCCESS },
			GetUtilizationRatesFunc:       func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.SUCCESS },
			GetPowerUsageFunc:             func() (uint32, nvml.Return) { return 0, nvml.SUCCESS },
			GetPowerManagementLimitFunc:   func() (uint32, nvml.Return) { return 0, nvml.SUCCESS },
			GetTotalEnergyConsumptionFunc: func() (uint64, nvml.Return) { return 0, nvml.SUCCESS },
		}
	}
	m := library()
	m.DeviceGetCountFunc = func() (int, nvml.Return) { return len(uuids), nvml.SUCCESS }
	m.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) { return open(uuids[i]), nvml.SUCCESS }
	m.DeviceGetHandleByUUIDFunc = func(uuid string) (nvml.Device, nvml.Return) {
		if uuid != part {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return open(uuid), nvml.SUCCESS
	}
	return m
}

// A list shows the devices that CUDA's guide describes, both for facts and for usage.
func TestVisibleDevices(t *testing.T) {
	t.Parallel()
	const a, b, c = "GPU-8932f937", "GPU-8932aaaa", "GPU-1f00"
	note := func(list string, shown int, ending string) string {
		text := fmt.Sprintf("CUDA_VISIBLE_DEVICES=%q shows %d of 3 GPUs", list, shown)
		if ending != "" {
			text += fmt.Sprintf(": %q does not name exactly one further GPU, so it ends the list", ending)
		}
		return text
	}
	tests := []struct {
		list string
		want []string
		note string
	}{
		{"0,1,2", []string{a, b, c}, ""},
		{"2,0,1", []string{c, a, b}, ""},
		{"2,1", []string{c, b}, note("2,1", 2, "")},
		{" 1 ", []string{b}, note(" 1 ", 1, "")},
		{"", nil, note("", 0, "")},
		{"-1", nil, note("-1", 0, "")},
		{"0,2,-1,1", []string{a, c}, note("0,2,-1,1", 2, "")},
		{"0,3,1", []string{a}, note("0,3,1", 1, "3")},
		{"0,,1", []string{a}, note("0,,1", 1, "")},
		{"0,0,1", []string{a}, note("0,0,1", 1, "0")},
		{"0,1,2,7", []string{a, b, c}, note("0,1,2,7", 3, "7")},
		{c + "," + a, []string{c, a}, note(c+","+a, 2, "")},
		{"GPU-1,0", []string{c, a}, note("GPU-1,0", 2, "")},
		{"GPU-8932,2", nil, note("GPU-8932,2", 0, "GPU-8932")},
		{"GPU-2", nil, note("GPU-2", 0, "GPU-2")},
		{"NoDevFiles", nil, note("NoDevFiles", 0, "NoDevFiles")},
		{part, []string{part}, note(part, 1, "")},
		{part + ",0", []string{part}, note(part+",0", 1, "")},
		{"MIG-5", nil, note("MIG-5", 0, "MIG-5")},
	}
	for _, tt := range tests {
		t.Run(tt.list, func(t *testing.T) {
			t.Parallel()
			gpus, note := readNVML(fleet(a, b, c), visible(tt.list))
			var uuids []string
			for i, gpu := range gpus {
				uuids = append(uuids, gpu.UUID)
				if gpu.Index != i {
					t.Errorf("%s has the index %d, want %d", gpu.UUID, gpu.Index, i)
				}
			}
			if diff := cmp.Diff(tt.want, uuids); diff != "" || note != tt.note {
				t.Errorf("note %q, want %q\n%s", note, tt.note, diff)
			}
			m := fleet(a, b, c)
			reader, note := newReader(m, visible(tt.list))
			uuids = nil
			for _, usage := range reader.Read() {
				uuids = append(uuids, usage.UUID)
			}
			reader.Close()
			if diff := cmp.Diff(tt.want, uuids); diff != "" || (note != "") != (tt.want == nil) || len(m.ShutdownCalls()) != 1 {
				t.Errorf("the reader's note %q, %d times shut down\n%s", note, len(m.ShutdownCalls()), diff)
			}
		})
	}
}

// An index is the driver's number of the GPU, even if other GPUs cannot be read.
func TestVisibleDevicesBesideALostOne(t *testing.T) {
	t.Parallel()
	m := fleet("GPU-a", "GPU-b", "GPU-c")
	open := m.DeviceGetHandleByIndexFunc
	m.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 0 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return open(i)
	}
	gpus, note := readNVML(m, visible("1"))
	want := `cannot read GPU 0: some reason; CUDA_VISIBLE_DEVICES="1" shows 1 of 2 GPUs`
	if len(gpus) != 1 || gpus[0].UUID != "GPU-b" || note != want {
		t.Errorf("%+v, note %q, want %q", gpus, note, want)
	}
}
