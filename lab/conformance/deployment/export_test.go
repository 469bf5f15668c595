package deployment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// variants are exports with different kinds of content.
var variants = map[string][]string{
	"as measured":  nil,
	"one server":   {"--max-replicas", "1"},
	"MIG device":   {"--gpus", "1", "--gpu-resource", "nvidia.com/mig-1g.5gb"},
	"object store": {"--storage", "s3://bucket/models"},
	"a claim":      {"--storage", "pvc://shared/minilm/v1"},
	"two models":   {"--input", "other"},
	"explicit":     {"--model-control-mode", "explicit", "--host-policy", "cpu_0,cpu-cores=0-1"},
	"a plan":       {"--plan", "hpa.json"},
	"a KEDA plan":  {"--plan", "keda.json"},
	"a fixed plan": {"--plan", "fixed.json"},
	"other image":  {"--image", "registry.example.com/serving/triton@sha256:" + strings.Repeat("ab", 32), "--name", "encoder"},
}

// environment returns a required environment variable.
func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run make -C lab conformance", name)
	}
	return value
}

// run runs a program in a folder and returns its output.
func run(t *testing.T, dir, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, stderr.String())
	}
	return out
}

// export analyzes the recorded campaign with an available model, exports it, and returns the
// export's folder. The folder other has the same campaign for a model with another name.
func export(t *testing.T, target string, args ...string) string {
	t.Helper()
	const root = "../../.."
	dir := t.TempDir()
	model := read(t, filepath.Join(root, "testdata/ort/add_sub.onnx"))
	journal := bytes.ReplaceAll(read(t, filepath.Join(root, "testdata/journals/format1/journal.jsonl")), []byte("ab12"), []byte(digest(model)))
	program := environment(t, "TUNER_BINARY")
	for folder, name := range map[string]string{"out": "minilm", "other": "resnet"} {
		write(t, filepath.Join(dir, name+".onnx"), model)
		write(t, filepath.Join(dir, folder, "journal.jsonl"), renamed(t, journal, name))
		write(t, filepath.Join(dir, "analyze.yaml"), []byte("input: "+folder+"\nformats: [table, config, repository]\n"))
		run(t, dir, program, "analyze", "-f", "analyze.yaml")
	}
	writePlans(t, dir)
	run(t, dir, program, append([]string{"export", target, "--input", "out", "-o", "deploy"}, args...)...)
	return filepath.Join(dir, "deploy")
}

// scalings are the numbers of servers of plans, by the plan's name.
var scalings = map[string]string{
	"hpa":   `{"autoscaler": "hpa", "min": 8, "max": 14, "target": 312.5, "tolerance": 0.03, "scale_down_stabilization": 120, "metric_window": 60, "startup": 30}`,
	"keda":  `{"autoscaler": "keda", "min": 2, "max": 14, "target": 312.5, "tolerance": 0.1, "scale_down_stabilization": 60, "metric_window": 60, "startup": 30}`,
	"fixed": `{"autoscaler": "fixed", "min": 3, "max": 3, "startup": 30}`,
}

// writePlans writes plans for the best configuration of the result in the folder out.
func writePlans(t *testing.T, dir string) {
	t.Helper()
	var result struct {
		Best           string
		Configurations []struct {
			Name  string
			Setup struct {
				Precision string
				Instances int `json:"instance_count"`
				Batch     int `json:"max_batch_size"`
			}
		}
	}
	if err := json.Unmarshal(read(t, filepath.Join(dir, "out", "result.json")), &result); err != nil {
		t.Fatal(err)
	}
	setup := ""
	for _, c := range result.Configurations {
		if c.Name == result.Best {
			setup = fmt.Sprintf("%d × %s, batch %d", c.Setup.Instances, c.Setup.Precision, c.Setup.Batch)
		}
	}
	for name, scaling := range scalings {
		text := fmt.Sprintf(`{"format": 1, "status": "satisfied", "model": "minilm", "best": {"machine": "out", "configuration": %q, "setup": %q, "scaling": %s},
			"configurations": [{"machine": "out", "configuration": %q, "safe_rate": 420}]}`, result.Best, setup, scaling, result.Best)
		write(t, filepath.Join(dir, name+".json"), []byte(text))
	}
}

// renamed returns a journal from before checksums existed, with another name of its model. It has
// the digest of its profile.
func renamed(t *testing.T, journal []byte, name string) []byte {
	t.Helper()
	journal = bytes.ReplaceAll(journal, []byte("minilm"), []byte(name))
	line, _, _ := bytes.Cut(journal, []byte("\n"))
	var header struct {
		Data struct {
			Spec struct{ Text, SHA256 string }
		}
	}
	if err := json.Unmarshal(line, &header); err != nil {
		t.Fatal(err)
	}
	spec := header.Data.Spec
	return bytes.Replace(journal, []byte(spec.SHA256), []byte(digest([]byte(spec.Text))), 1)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
