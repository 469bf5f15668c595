// Package environment has the variables of an exported server. It knows no target and no model.
package environment

import (
	"tuner/internal/telemetry"
	"tuner/ort/hugepages"
)

// manyWeights is the size of models, in bytes, from which their weights belong in huge pages. Less than
// that is within reach of a processor's TLB with small pages: 2048 to 4096 entries of 4 KiB. Servers of
// small models also answer more requests, and would feel the one arena of hugepages.Tunables.
const manyWeights = 16 << 20

// Of returns the variables of a server with models of so many bytes. They stop the image's ONNX Runtime
// from sending telemetry to its maker, and put many weights on the CPU into huge pages, in which they
// were measured.
func Of(bytes int64, gpus int) map[string]string {
	variables := map[string]string{telemetry.Variable: telemetry.Off}
	if gpus == 0 && bytes >= manyWeights {
		variables[hugepages.Variable] = hugepages.Tunables
	}
	return variables
}
