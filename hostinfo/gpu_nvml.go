//go:build linux && cgo

package hostinfo

import (
	"fmt"
	"math"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// readGPUs asks NVIDIA's management library, which is opened at run time. Without GPUs the note says why.
func readGPUs() ([]GPU, string) { return readNVML(nvml.New()) }

func readNVML(library nvml.Interface) ([]GPU, string) {
	count, note := openNVML(library)
	if note != "" {
		return nil, note
	}
	defer library.Shutdown()
	driver := driverVersions(library)
	var gpus []GPU
	for i := range count {
		gpu, result := readDevice(library, i)
		if result != nvml.SUCCESS {
			return gpus, fmt.Sprintf("cannot read GPU %d: %s", i, library.ErrorString(result))
		}
		gpu.Driver, gpu.CUDADriver = driver.Driver, driver.CUDADriver
		gpus = append(gpus, gpu)
	}
	return gpus, ""
}

// openNVML opens the library and counts its GPUs, at least one. Otherwise the note says why, and it is closed.
func openNVML(library nvml.Interface) (count int, note string) {
	if result := library.Init(); result != nvml.SUCCESS {
		if result == nvml.ERROR_LIBRARY_NOT_FOUND || result == nvml.ERROR_DRIVER_NOT_LOADED {
			return 0, "no NVIDIA driver"
		}
		return 0, "NVIDIA driver not usable: " + library.ErrorString(result)
	}
	count, result := library.DeviceGetCount()
	switch {
	case result != nvml.SUCCESS:
		note = "cannot count GPUs: " + library.ErrorString(result)
	case count == 0:
		note = "NVIDIA driver, but no GPU"
	}
	if note != "" {
		library.Shutdown()
	}
	return count, note
}

// driverVersions returns a GPU with the versions set that hold for all; a version that cannot be read is "".
func driverVersions(library nvml.Interface) GPU {
	var gpu GPU
	if version, result := library.SystemGetDriverVersion(); result == nvml.SUCCESS {
		gpu.Driver = version
	}
	if version, result := library.SystemGetCudaDriverVersion(); result == nvml.SUCCESS {
		gpu.CUDADriver = fmt.Sprintf("%d.%d", version/1000, version%1000/10) // 12080 is 12.8
	}
	return gpu
}

func readDevice(library nvml.Interface, index int) (GPU, nvml.Return) {
	device, result := library.DeviceGetHandleByIndex(index)
	if result != nvml.SUCCESS {
		return GPU{}, result
	}
	name, result := device.GetName()
	if result != nvml.SUCCESS {
		return GPU{}, result
	}
	uuid, result := device.GetUUID()
	if result != nvml.SUCCESS {
		return GPU{}, result
	}
	memory, result := device.GetMemoryInfo()
	if result != nvml.SUCCESS {
		return GPU{}, result
	}
	major, minor, result := device.GetCudaComputeCapability()
	if result != nvml.SUCCESS {
		return GPU{}, result
	}
	return GPU{
		Index: index, Name: name, UUID: uuid, Memory: int64(memory.Total), Used: int64(memory.Used),
		Capability: fmt.Sprintf("%d.%d", major, minor),
	}, nvml.SUCCESS
}

func openGPUs() (*GPUReader, string) { return newReader(nvml.New()) }

// newReader opens the library for a reader of those GPUs that can be reached.
func newReader(library nvml.Interface) (*GPUReader, string) {
	count, note := openNVML(library)
	if note != "" {
		return noGPUs(), note
	}
	var devices []nvml.Device
	for i := range count {
		if device, result := library.DeviceGetHandleByIndex(i); result == nvml.SUCCESS {
			devices = append(devices, device)
		}
	}
	return &GPUReader{
		read: func() []GPUUsage {
			var usages []GPUUsage
			for _, device := range devices {
				if usage, result := deviceUsage(device); result == nvml.SUCCESS {
					usages = append(usages, usage)
				}
			}
			return usages
		},
		close: sync.OnceFunc(func() { library.Shutdown() }),
	}, ""
}

// deviceUsage reads a GPU. Its identity and memory are always known; many lack the rest.
func deviceUsage(device nvml.Device) (GPUUsage, nvml.Return) {
	uuid, result := device.GetUUID()
	if result != nvml.SUCCESS {
		return GPUUsage{}, result
	}
	memory, result := device.GetMemoryInfo()
	if result != nvml.SUCCESS {
		return GPUUsage{}, result
	}
	u := GPUUsage{UUID: uuid, MemoryTotal: int64(memory.Total), MemoryUsed: int64(memory.Used), Utilization: math.NaN()}
	if rates, result := device.GetUtilizationRates(); result == nvml.SUCCESS {
		u.Utilization = float64(rates.Gpu) / 100
	}
	power, result := device.GetPowerUsage()
	u.Power = fromMilli(uint64(power), result)
	limit, result := device.GetPowerManagementLimit()
	u.PowerLimit = fromMilli(uint64(limit), result)
	energy, result := device.GetTotalEnergyConsumption()
	u.Energy = fromMilli(energy, result)
	return u, nvml.SUCCESS
}

func fromMilli(n uint64, result nvml.Return) float64 {
	if result != nvml.SUCCESS {
		return math.NaN()
	}
	return float64(n) / 1000
}
