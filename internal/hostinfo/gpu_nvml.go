//go:build linux && cgo

package hostinfo

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// readGPUs uses NVIDIA's management library, which it opens at run time.
func readGPUs() ([]GPU, string) { return readNVML(nvml.New(), os.LookupEnv) }

func readNVML(library nvml.Interface, environment lookup) ([]GPU, string) {
	count, note := openNVML(library)
	if note != "" {
		return nil, note
	}
	defer library.Shutdown()
	devices, notes := openDevices(library, count, environment)
	driver := driverVersions(library)
	var gpus []GPU
	for _, d := range devices {
		gpu, result := d.facts()
		if result != nvml.SUCCESS {
			notes = append(notes, fmt.Sprintf("cannot read GPU %s: %s", d.uuid, library.ErrorString(result)))
			continue
		}
		gpu.Index, gpu.Driver, gpu.CUDADriver = len(gpus), driver.Driver, driver.CUDADriver
		gpus = append(gpus, gpu)
	}
	return gpus, strings.Join(notes, "; ")
}

// openNVML opens the library and counts its GPUs. If there are none, the note says why, and the
// library is closed.
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

// driverVersions returns a GPU with the versions that hold for all GPUs. A version that it cannot
// read is "".
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

// device is an opened GPU, or a part of one.
type device struct {
	nvml.Device
	number int // NVML's index, in the order of PCI buses; -1 for a part
	uuid   string
	// the driver has GetMemoryInfo_v2; calling a missing function would end the process
	hasMemoryV2 bool
	// the driver has GetProcessUtilization, and its processes have the numbers that they have here
	seesProcesses bool
	seen          uint64 // time of the newest sample of a process, in µs since 1970
	computed      map[int]computed
}

// computed is the newest sample of a process.
type computed struct {
	share float64 // of the driver's period, 0 to 1
	at    time.Time
}

// openDevices opens the GPUs that CUDA programs see, in their order. The notes say which are left
// out. The library must be open.
func openDevices(library nvml.Interface, count int, environment lookup) (devices []device, notes []string) {
	for i := range count {
		d, result := identify(library.DeviceGetHandleByIndex(i))
		if result != nvml.SUCCESS {
			notes = append(notes, fmt.Sprintf("cannot read GPU %d: %s", i, library.ErrorString(result)))
			continue
		}
		d.number = i
		devices = append(devices, d)
	}
	if list, isSet := environment(visibleVariable); isSet {
		visible, note := visibleDevices(library, devices, list)
		if note != "" {
			notes = append(notes, note)
		}
		devices = visible
	}
	has := func(symbol string) bool { return library.Extensions().LookupSymbol(symbol) == nil }
	hasMemoryV2, seesProcesses := has("nvmlDeviceGetMemoryInfo_v2"), has("nvmlDeviceGetProcessUtilization") && inFirstNamespace()
	for i := range devices {
		devices[i].hasMemoryV2, devices[i].seesProcesses = hasMemoryV2, seesProcesses
		devices[i].computed = map[int]computed{}
	}
	return devices, notes
}

// inFirstNamespace reports whether this process sees processes by the numbers that the driver has for
// them. In a container's namespace it does not.
func inFirstNamespace() bool {
	const first = "pid:[4026531836]" // PROC_PID_INIT_INO of Linux
	namespace, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && namespace == first
}

// identify reads the identity of a GPU handle from NVML. A GPU without a UUID cannot be told from
// others, so it is not used.
func identify(handle nvml.Device, result nvml.Return) (device, nvml.Return) {
	if result != nvml.SUCCESS {
		return device{}, result
	}
	uuid, result := handle.GetUUID()
	return device{Device: handle, number: -1, uuid: uuid}, result
}

// facts reads the constant facts, and the memory in use. The result is a failure if the GPU is
// gone.
func (d device) facts() (GPU, nvml.Return) {
	memory, result := d.memory()
	if result != nvml.SUCCESS {
		return GPU{}, result
	}
	gpu := GPU{UUID: d.uuid, Memory: int64(memory.Total), Used: int64(memory.Used)}
	if name, result := d.GetName(); result == nvml.SUCCESS {
		gpu.Name = name
	}
	if major, minor, result := d.GetCudaComputeCapability(); result == nvml.SUCCESS {
		gpu.Capability = fmt.Sprintf("%d.%d", major, minor)
	}
	return gpu, nvml.SUCCESS
}

// memory reads the memory. It is zero if the driver does not report it, as for GPUs without their
// own memory. The result is a failure if the GPU is gone.
func (d device) memory() (nvml.Memory, nvml.Return) {
	memory, result := d.memoryInfo()
	if result != nvml.SUCCESS && result != nvml.ERROR_GPU_IS_LOST {
		return nvml.Memory{}, nvml.SUCCESS
	}
	return memory, result
}

// memoryInfo reads the memory without the driver's own reserve (480 MiB on an H100), as nvidia-smi
// and Triton do. A driver before release 510 has only the older call, which counts the reserve as
// used.
func (d device) memoryInfo() (nvml.Memory, nvml.Return) {
	if !d.hasMemoryV2 {
		return d.GetMemoryInfo()
	}
	memory, result := d.GetMemoryInfo_v2()
	return nvml.Memory{Total: memory.Total, Free: memory.Free, Used: memory.Used}, result
}

func openGPUs() (*GPUReader, string) { return newReader(nvml.New(), os.LookupEnv) }

// newReader opens the library for a reader of those GPUs that it can open.
func newReader(library nvml.Interface, environment lookup) (*GPUReader, string) {
	count, note := openNVML(library)
	if note != "" {
		return noGPUs(), note
	}
	devices, notes := openDevices(library, count, environment)
	if len(devices) == 0 {
		library.Shutdown()
		return noGPUs(), strings.Join(notes, "; ")
	}
	return &GPUReader{
		read: func() []GPUUsage {
			var usages []GPUUsage
			for i := range devices {
				if usage, result := devices[i].usage(); result == nvml.SUCCESS {
					usages = append(usages, usage)
				}
			}
			return usages
		},
		close: sync.OnceFunc(func() { library.Shutdown() }),
	}, ""
}

// usage reads the current figures of the GPU. The result is a failure if the GPU is gone.
func (d *device) usage() (GPUUsage, nvml.Return) {
	memory, result := d.memory()
	if result != nvml.SUCCESS {
		return GPUUsage{}, result
	}
	u := GPUUsage{UUID: d.uuid, MemoryTotal: int64(memory.Total), MemoryUsed: int64(memory.Used), Utilization: math.NaN()}
	if rates, result := d.GetUtilizationRates(); result == nvml.SUCCESS {
		u.Utilization = float64(rates.Gpu) / 100
	}
	power, result := d.GetPowerUsage()
	u.Power = fromMilli(uint64(power), result)
	limit, result := d.GetPowerManagementLimit()
	u.PowerLimit = fromMilli(uint64(limit), result)
	energy, result := d.GetTotalEnergyConsumption()
	u.Energy = fromMilli(energy, result)
	u.Processes = d.processes(time.Now())
	return u, nvml.SUCCESS
}

// longestPeriod is the driver's longest period of samples (NVML's nvmlUtilization_t). A sample says
// nothing of later times.
const longestPeriod = time.Second

// processes reads what GPUUsage.Processes has. At each end of its period, the driver takes a sample of
// one or more processes that computed. Between these, and for processes of which it took none, the last
// samples hold.
func (d *device) processes(now time.Time) map[int]float64 {
	if !d.seesProcesses {
		return nil
	}
	present, result := d.GetComputeRunningProcesses()
	if result != nvml.SUCCESS {
		return nil
	}
	samples, result := d.GetProcessUtilization(d.seen)
	// not found: nothing computed since; of an insufficient size: the same, of drivers before release 470
	if result != nvml.SUCCESS && result != nvml.ERROR_NOT_FOUND && (result != nvml.ERROR_INSUFFICIENT_SIZE || len(samples) > 0) {
		return nil
	}
	seen := d.seen
	for _, s := range samples {
		// drivers also return old samples, and shares without a meaning (DCGM's issue 83)
		if s.TimeStamp > d.seen && s.SmUtil <= 100 {
			d.computed[int(s.Pid)], seen = computed{float64(s.SmUtil) / 100, now}, max(seen, s.TimeStamp)
		}
	}
	d.seen = seen
	shares := map[int]float64{}
	for _, p := range present {
		shares[int(p.Pid)] = 0
	}
	for pid, c := range d.computed {
		if _, isPresent := shares[pid]; !isPresent || now.Sub(c.at) > longestPeriod {
			delete(d.computed, pid)
			continue
		}
		shares[pid] = c.share
	}
	return shares
}

func fromMilli(n uint64, result nvml.Return) float64 {
	if result != nvml.SUCCESS {
		return math.NaN()
	}
	return float64(n) / 1000
}
