//go:build !linux || !cgo

package hostinfo

// NVIDIA's library works on Linux only, and through cgo.
const notBuilt = "this build of tuner cannot look for NVIDIA GPUs"

func readGPUs() ([]GPU, string) { return nil, notBuilt }

func openGPUs() (*GPUReader, string) { return noGPUs(), notBuilt }
