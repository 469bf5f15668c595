package hostinfo

// GPU is an NVIDIA GPU.
type GPU struct {
	Index      int    `json:"index"`
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	Memory     int64  `json:"memory"`      // bytes
	Used       int64  `json:"used"`        // bytes, by all processes
	Capability string `json:"capability"`  // compute capability, such as 9.0
	Driver     string `json:"driver"`      // version of the driver
	CUDADriver string `json:"cuda_driver"` // newest CUDA version that the driver supports
}
