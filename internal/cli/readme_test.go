package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readmeBlock is a block of shell lines in README.md.
type readmeBlock struct {
	lines  string
	notRun string // the reason in the comment <!-- not run: REASON --> before the block
}

// readmeBlocks returns the shell blocks of README.md, in order.
func readmeBlocks(t *testing.T) []readmeBlock {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []readmeBlock
	parts := strings.Split(string(text), "```sh\n")
	for i, part := range parts[1:] {
		lines, _, _ := strings.Cut(part, "```")
		b := readmeBlock{lines: lines}
		before := strings.TrimSpace(parts[i])
		if j := strings.LastIndex(before, "<!-- not run: "); j >= 0 && strings.HasSuffix(before, "-->") {
			b.notRun = strings.TrimSuffix(before[j+len("<!-- not run: "):], " -->")
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// The shell lines of README.md work, in order, in a folder that has a model.onnx. Budgets are
// shortened.
func TestReadmeRuns(t *testing.T) {
	t.Parallel()
	models := os.Getenv("TUNER_MODELS")
	if os.Getenv("TUNER_ORT_LIBRARY") == "" || models == "" {
		t.Skip("needs ONNX Runtime and the sample models: run make test")
	}
	script := "set -eu\n"
	for _, b := range readmeBlocks(t) {
		if b.notRun == "" {
			script += b.lines
		}
	}
	if !strings.Contains(script, "--budget 1m") {
		t.Fatal("README.md runs no campaign of a minute")
	}
	dir := t.TempDir()
	model, err := os.ReadFile(filepath.Join(models, "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), model, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(script, "--budget 1m", "--budget 4s"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TUNER_CACHE="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, script, out)
	}
}

// All verbs and flags in README.md's shell lines exist, also in lines that are not run.
func TestReadmeNamesFlags(t *testing.T) {
	t.Parallel()
	found := 0
	for _, b := range readmeBlocks(t) {
		for line := range strings.Lines(b.lines) {
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "tuner" {
				continue
			}
			found++
			help, err := exec.CommandContext(t.Context(), "tuner", words[1], "--help").CombinedOutput()
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			for _, word := range words[2:] {
				flag, _, _ := strings.Cut(word, "=")
				if strings.HasPrefix(flag, "-") && !strings.Contains(string(help), flag+" ") && !strings.Contains(string(help), flag+",") {
					t.Errorf("%q: tuner %s has no flag %s", line, words[1], flag)
				}
			}
		}
	}
	if found == 0 {
		t.Error("README.md has no line with tuner")
	}
}
