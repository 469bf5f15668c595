//go:build conformance

package conformance

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWatch opens the page of a campaign of one minute in a real browser, from its first measurement
// until it is the report. Every machine keeps the limit, so that there is an answer. testdata/watch.mjs
// has the checks. TUNER_PICTURES names a folder for screenshots.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "profile.yaml"), []byte("model: "+filepath.Join(environment(t, "TUNER_MODELS"), "minilm.onnx")+`
output: out
search: {budget: 1m}
constraints: {latency_p99: {max: 2s}}
load: {inputs: {shape: {input_ids: [32], attention_mask: [32], token_type_ids: [32]}}}
`))
	cmd := exec.CommandContext(t.Context(), environment(t, "TUNER_BINARY"), "profile", "profile.yaml", "--ui", "web")
	cmd.Dir = dir
	messages, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(messages)
	address := ""
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "watch at ")
	}
	if address == "" {
		t.Fatalf("no address: %v, %v", lines.Err(), cmd.Wait())
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	inBrowser(t, "watch.mjs", address)
	<-read
	if err := cmd.Wait(); err != nil {
		t.Errorf("the campaign: %v", err)
	}
}
