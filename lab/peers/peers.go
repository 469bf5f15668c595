// Package peers runs the programs with which tuner is compared: a real Triton with its onnxruntime
// backend, the real perf_analyzer and the real Model Analyzer. It runs tuner's own engine in the
// same way.
//
// It finds the programs that lab/scripts/peers.sh has installed, starts and stops them. It does not
// depend on their use. No verb of tuner needs a peer.
package peers

import (
	"fmt"
	"os"
	"path/filepath"

	"tuner/lab/program"
)

// Folder is the folder below the repository's root in which lab/scripts/peers.sh installs the
// peers. The environment variable TUNER_PEERS names another one.
const Folder = ".peers"

// Peers are the paths of the installed programs.
type Peers struct {
	Python        string // with tritonclient, onnx, onnxruntime and numpy
	Triton        string // tritonserver with the onnxruntime backend
	Caches        string // folder of its response caches
	PerfAnalyzer  string
	ModelAnalyzer string
	ORTLibrary    string // the ONNX Runtime that Triton's backend loads
}

// Dir returns the folder of the installed peers, even if it does not exist.
func Dir() (string, error) {
	if dir := os.Getenv("TUNER_PEERS"); dir != "" {
		return dir, nil
	}
	root, err := program.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, Folder), nil
}

// Find returns the peers. The error names a missing program, and how to get it.
func Find() (*Peers, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	p := &Peers{
		Python:        filepath.Join(dir, "triton", "bin", "python"),
		Triton:        filepath.Join(dir, "tritonserver"),
		PerfAnalyzer:  filepath.Join(dir, "perf_analyzer"),
		ModelAnalyzer: filepath.Join(dir, "ma", "bin", "model-analyzer"),
		Caches:        filepath.Join(dir, "caches"),
		ORTLibrary:    filepath.Join(dir, "backends", "onnxruntime", "libonnxruntime.so.1"),
	}
	for _, path := range []string{p.Python, p.Triton, p.PerfAnalyzer, p.ModelAnalyzer, p.Caches, p.ORTLibrary} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("the real peers are not installed: %w; run lab/scripts/peers.sh %s", err, dir)
		}
	}
	return p, nil
}
