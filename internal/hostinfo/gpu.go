package hostinfo

// GPU is an NVIDIA GPU, or the part of one (MIG) that this process may use. What the driver does not tell is 0 or "".
type GPU struct {
	Index      int    `json:"index"` // from 0, as servers and instance groups count those that they see
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	Memory     int64  `json:"memory"`      // bytes; an integrated GPU has none of its own
	Used       int64  `json:"used"`        // bytes, by all processes
	Capability string `json:"capability"`  // compute capability, such as 9.0
	Driver     string `json:"driver"`      // version of the driver
	CUDADriver string `json:"cuda_driver"` // newest CUDA version that the driver supports
}

// ReadGPUs lists the NVIDIA GPUs of this machine that CUDA programs see here, in their order: where the environment variable
// CUDA_VISIBLE_DEVICES is set, those that it lists. The note says why there are none, or what is left out; "": nothing is.
//
// Indices in the variable count by PCI bus, as those of nvidia-smi do. CUDA itself counts so with CUDA_DEVICE_ORDER=PCI_BUS_ID,
// and else puts the fastest GPU first: where their models differ, UUIDs are sure.
func ReadGPUs() (gpus []GPU, note string) { return readGPUs() }

// GPUUsage is what a GPU does now. What the driver does not tell is NaN, of memory 0.
type GPUUsage struct {
	UUID                    string
	Utilization             float64 // share of time with work, 0 to 1
	MemoryTotal, MemoryUsed int64   // bytes
	Power, PowerLimit       float64 // watts
	Energy                  float64 // joules since the driver was loaded
}

// GPUReader reads the usage of the GPUs that ReadGPUs lists, any number of times: it keeps the driver's library open. It is
// for one goroutine at a time.
type GPUReader struct {
	read  func() []GPUUsage
	close func()
}

// OpenGPUs opens the driver's library. Without GPUs the note says why, and there is nothing to read.
func OpenGPUs() (r *GPUReader, note string) { return openGPUs() }

// Read reads all GPUs; those that cannot be read are left out.
func (r *GPUReader) Read() []GPUUsage { return r.read() }

// Close closes the library. Twice is safe.
func (r *GPUReader) Close() { r.close() }

// noGPUs reads a machine without GPUs.
func noGPUs() *GPUReader { return &GPUReader{read: func() []GPUUsage { return nil }, close: func() {}} }

// ReadGPUUsage reads the usage of the GPUs that ReadGPUs lists once.
func ReadGPUUsage() []GPUUsage {
	reader, _ := OpenGPUs() // without GPUs there is nothing to tell
	defer reader.Close()
	return reader.Read()
}
