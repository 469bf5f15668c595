//go:build !linux || !cgo

package hostinfo

// readGPUs finds none: NVIDIA's library can be reached on Linux and through cgo only.
func readGPUs() ([]GPU, string) { return nil, "this build of tuner cannot look for NVIDIA GPUs" }

func readGPUUsage() []GPUUsage { return nil }
