package hostinfo

// GPU is an NVIDIA GPU, or the part of one (MIG) that this process may use. Facts that the driver
// does not report are 0 or "".
type GPU struct {
	// from 0, in the order in which servers and instance groups count visible GPUs
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
	// bytes; 0 for an integrated GPU, which has no memory of its own
	Memory     int64  `json:"memory"`
	Used       int64  `json:"used"`        // bytes in use, by all processes
	Capability string `json:"capability"`  // compute capability, such as 9.0
	Driver     string `json:"driver"`      // version of the driver
	CUDADriver string `json:"cuda_driver"` // newest CUDA version that the driver supports
}

// ReadGPUs lists the NVIDIA GPUs of this machine that CUDA programs see, in their order. If the
// environment variable CUDA_VISIBLE_DEVICES is set, these are the GPUs that it lists. The note says
// why there are none, or which are left out; "": none are.
//
// Indices in the variable are in the order of the PCI bus, as in nvidia-smi. CUDA itself uses that
// order only with CUDA_DEVICE_ORDER=PCI_BUS_ID, and otherwise puts the fastest GPU first. On
// machines with different models of GPUs, UUIDs avoid the ambiguity.
func ReadGPUs() (gpus []GPU, note string) { return readGPUs() }

// GPUUsage holds the current figures of a GPU. Figures that the driver does not report are NaN;
// memory is 0.
type GPUUsage struct {
	UUID                    string
	Utilization             float64 // share of time with work, 0 to 1
	MemoryTotal, MemoryUsed int64   // bytes
	Power, PowerLimit       float64 // watts
	Energy                  float64 // joules since the driver was loaded
	// share of the driver's last period in which a process computed, 0 to 1, of all processes that are
	// on the GPU; nil: unknown
	Processes map[int]float64
}

// GPUReader reads the usage of the GPUs that ReadGPUs lists, any number of times. It keeps the
// driver's library open. It is for one goroutine at a time.
type GPUReader struct {
	read  func() []GPUUsage
	close func()
}

// OpenGPUs opens the driver's library. If there are no GPUs, the note says why, and the reader
// reads none.
func OpenGPUs() (r *GPUReader, note string) { return openGPUs() }

// Read reads all GPUs. It leaves out those that it cannot read.
func (r *GPUReader) Read() []GPUUsage { return r.read() }

// Close closes the library. It may be called twice.
func (r *GPUReader) Close() { r.close() }

// noGPUs returns a reader for a machine without GPUs.
func noGPUs() *GPUReader { return &GPUReader{read: func() []GPUUsage { return nil }, close: func() {}} }

// ReadGPUUsage reads the usage of the GPUs that ReadGPUs lists once.
func ReadGPUUsage() []GPUUsage {
	reader, _ := OpenGPUs() // a machine without GPUs is valid
	defer reader.Close()
	return reader.Read()
}
