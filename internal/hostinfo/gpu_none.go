//go:build !linux || !cgo

package hostinfo

// NVIDIA's library can be reached on Linux and through cgo only.
const notBuilt = "this build of tuner cannot look for NVIDIA GPUs"

func readGPUs() ([]GPU, string) { return nil, notBuilt }

func openGPUs() (*GPUReader, string) { return noGPUs(), notBuilt }
