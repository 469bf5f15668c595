package deployment

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const imageDigest = "669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1"

// fleets are variants of a fleet.yaml: what is added to the usual one, and the flags.
var fleets = map[string]struct {
	replace [2]string
	flags   []string
}{
	"usual":       {},
	"hardened":    {flags: []string{"--harden"}},
	"queue":       {replace: [2]string{"exclusive: node", "exclusive: shared, queue: tuning-queue"}},
	"cores":       {replace: [2]string{"exclusive: node", "exclusive: cores, priority_class: low, service_account: profiler"}},
	"tolerations": {replace: [2]string{"exclusive: node", "exclusive: node, tolerations: [{key: tuning, operator: Equal, value: x, effect: NoSchedule}]"}},
	"repeats":     {replace: [2]string{"budget: 4m", "budget: 4m, machines: 3"}},
}

// manifests writes the objects of a fleet and returns them, each a document.
func manifests(t *testing.T, name string) [][]byte {
	t.Helper()
	dir := t.TempDir()
	file := `name: q3
models:
  minilm: {profile: minilm.yaml, from: pvc://models/minilm/model.onnx, sha256: ` + imageDigest + `}
  resnet: {profile: minilm.yaml, from: "oci://registry.example.com/resnet@sha256:` + imageDigest + `#model.onnx"}
machines:
  c7i: {select: {node.kubernetes.io/instance-type: c7i.2xlarge}, cpus: 7, memory: 12Gi, price: {per_hour: 0.4}}
  l4: {select: {nvidia.com/gpu.product: NVIDIA-L4}, cpus: 6, memory: 24Gi, gpus: 1, share: 1/4}
search: {budget: 4m}
cluster: {namespace: default, image: "registry.example.com/tuner:1@sha256:` + imageDigest + `", exclusive: node}
`
	v := fleets[name]
	if v.replace[0] != "" {
		file = strings.Replace(file, v.replace[0], v.replace[1], 1)
	}
	for path, text := range map[string]string{"fleet.yaml": file, "minilm.yaml": "model: m.onnx\n"} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"fleet", "manifests", "-f", filepath.Join(dir, "fleet.yaml"), "-o", filepath.Join(dir, "manifests")}, v.flags...)
	if out, err := exec.CommandContext(t.Context(), environment(t, "TUNER_BINARY"), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	written, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
	if err != nil || len(written) != 3 {
		t.Fatalf("%v, %v", written, err)
	}
	var list [][]byte
	for _, file := range written {
		list = append(list, documents(t, read(t, file))...)
	}
	return list
}

// The objects of a fleet are Kubernetes' own types, to the last field.
func TestFleetFields(t *testing.T) {
	for name := range fleets {
		t.Run(name, func(t *testing.T) {
			for _, object := range manifests(t, name) {
				if _, err := decode(object); err != nil {
					t.Errorf("%v\n%s", err, object)
				}
			}
		})
	}
}

// A real API server accepts the objects of a fleet, with the pod in a namespace that enforces Pod
// Security "restricted".
func TestFleetOnAnAPIServer(t *testing.T) {
	c := newCluster(t)
	c.restrict(t, "default")
	for name := range fleets {
		t.Run(name, func(t *testing.T) {
			for _, object := range manifests(t, name) {
				if err := c.create(t, object); err != nil {
					t.Errorf("%v\n%s", err, object)
				}
				if pod := podOf(t, object); pod != nil {
					if err := c.create(t, pod); err != nil {
						t.Errorf("the pod of a job: %v\n%s", err, pod)
					}
				}
			}
		})
	}
	// What the checks above would let through is refused.
	for _, object := range manifests(t, "usual") {
		pod := podOf(t, object)
		if pod == nil {
			continue
		}
		spoilt := strings.Replace(string(pod), "runAsNonRoot: true", "runAsNonRoot: false", 1)
		c.refuses(t, []byte(spoilt), "violates PodSecurity")
		c.refuses(t, []byte(strings.Replace(string(object), "podReplacementPolicy: Failed", "podReplacementPolicy: TerminatingOrFailed", 1)), "podReplacementPolicy")
	}
}
