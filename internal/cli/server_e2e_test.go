//go:build linux && !noengine

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tuner/engine/api"
	"tuner/internal/exit"
)

// After Ctrl-C in the middle of a campaign, a remote server's model is as before: loaded, with its
// own configuration.
func TestInterruptedCampaignGivesTheModelBack(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	at := w.serveExplicit("mlp", "max_batch_size: 3\n")
	profile := strings.Replace(profileText(filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx"), w.output),
		"output:", fmt.Sprintf("runner: {mode: remote, url: %q}\noutput:", at.GRPC), 1)
	w.write("profile.yaml", profile)
	p := w.start("profile", "-f", "profile.yaml")
	eventually(t, "two trials", func() bool { return len(w.trials()) >= 2 })
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exit.Interrupted {
		t.Errorf("exit code %d, want %d; stderr:\n%s", code, exit.Interrupted, p.stderr.String())
	}
	client, err := api.OpenGRPC(at.GRPC, api.Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if c, err := client.ModelConfig(t.Context(), "mlp"); err != nil || c.GetMaxBatchSize() != 3 {
		t.Errorf("in the end the model has the configuration %v, %v", c, err)
	}
	w.analyze()
}

// serveExplicit runs an engine in explicit mode until the test's end, with a sample model loaded.
func (w workplace) serveExplicit(model, config string) api.Announcement {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(os.Getenv("TUNER_MODELS"), model+".onnx"))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "served", model, "1"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join("served", model, "1", "model.onnx"), string(data))
	w.write(filepath.Join("served", model, "config.pbtxt"), config)
	p, at := w.serve("served", "--model-control-mode=explicit", "--load-model="+model)
	w.t.Cleanup(func() {
		p.signal(syscall.SIGTERM)
		p.exit()
	})
	return at
}
