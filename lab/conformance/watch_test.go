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
// until it is the report, and those of a gate and a sweep. testdata/watch.mjs has the checks.
// TUNER_PICTURES names a folder for screenshots.
func TestWatch(t *testing.T) {
	model := filepath.Join(environment(t, "TUNER_MODELS"), "minilm.onnx")
	const shape = "{input_ids: [32], attention_mask: [32], token_type_ids: [32]}"
	for kind, of := range map[string]struct{ command, text string }{
		// every machine keeps the limit, so that there is an answer
		"campaign": {"profile", "output: out\nsearch: {budget: 1m}\nconstraints: {latency_p99: {max: 2s}}\nload: {inputs: {shape: " + shape + "}}\n"},
		// a margin that no minute decides, and time for at least five pairs of 20 to 35 s; with less time a gate ends after one
		"gate": {"gate", "baseline: " + model + "\ncandidate: " + model + "\noutput: out\nhistory: history.jsonl\nmetrics: [{name: throughput, margin: 0.1%}]\n" +
			"inconclusive: pass\nbudget: 3m\nwindow: 500ms\nload: {concurrency: 2, inputs: {shape: " + shape + "}}\n"},
		"sweep": {"ortsweep", "output: out\nsearch: {budget: 1m}\nload: {inputs: {shape: " + shape + "}}\n" +
			"space: {intra_op_threads: [1, 2], graph_optimization: [basic, extended, all], execution_mode: [sequential, parallel]}\n"},
	} {
		t.Run(kind, func(t *testing.T) {
			if kind != "gate" {
				of.text = "model: " + model + "\n" + of.text
			}
			checkWatch(t, kind, of.command, of.text)
		})
	}
}

// checkWatch runs a verb with a file, and looks at its page.
func checkWatch(t *testing.T, kind, command, text string) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file.yaml"), []byte(text))
	cmd := exec.CommandContext(t.Context(), environment(t, "TUNER_BINARY"), command, "file.yaml", "--ui", "web")
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
		t.Log(lines.Text())
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
	inBrowser(t, "watch.mjs", address, kind)
	<-read
	if err := cmd.Wait(); err != nil {
		t.Errorf("the %s: %v", kind, err)
	}
}
