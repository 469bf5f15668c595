package export

import (
	_ "embed"
	"fmt"
	"strings"
)

// Triton is the name of the target for a tritonserver that is started by hand.
const Triton = "triton"

//go:embed readme/triton.md
var tritonReadme string

func tritonTarget() target {
	return target{
		name: Triton, about: "the repository and the docker run line", readme: tritonReadme, mount: modelsMount, isOneServer: true, files: Deployment.plainMonitoring,
		commands: func(d Deployment) []string { return []string{d.dockerRun()} },
	}
}

// dockerRun returns a command that serves the repository with the measured resources.
func (d Deployment) dockerRun() string {
	parts := []string{"docker run --rm"}
	if d.GPUs > 0 {
		parts = append(parts, fmt.Sprintf("--gpus %d", d.GPUs))
	}
	parts = append(parts, fmt.Sprintf("--cpus %d --shm-size %dm", d.CPUs, sharedMemory))
	if d.bindsMemory() {
		parts = append(parts, "--cap-add "+memoryCapability)
	}
	if d.Memory > 0 {
		parts = append(parts, fmt.Sprintf("--memory %dm", d.Memory))
	}
	for _, v := range d.variables() {
		parts = append(parts, fmt.Sprintf("-e %s=%s", v.Name, v.Value))
	}
	for _, port := range []int{portHTTP, portGRPC, portMetrics} {
		parts = append(parts, fmt.Sprintf("-p %d:%[1]d", port))
	}
	parts = append(parts, fmt.Sprintf(`-v "$PWD/%s:%s:ro"`, d.repository(), modelsMount), d.Image,
		"tritonserver --model-repository="+modelsMount)
	return strings.Join(append(parts, d.Arguments...), " ")
}
