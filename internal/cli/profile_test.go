package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/internal/exit"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/spec"
)

// profileIn runs `tuner profile` on a file with this text, beside the model m.onnx. It returns the
// exit code and stderr.
func profileIn(ctx context.Context, t *testing.T, dir, text string) (code int, said string) {
	t.Helper()
	if err := build.MLP().Write(filepath.Join(dir, "m.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(file, []byte("model: m.onnx\noutput: out\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	code = run(ctx, console{in: strings.NewReader(""), out: io.Discard, err: &stderr}, []string{"profile", "-f", file})
	return code, stderr.String()
}

// While another campaign writes to the folder, its server gets no requests. In this test there is
// no server that could answer.
func TestFolderInUseIsFoundBeforeTheServerIsTouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, err := journal.Create(filepath.Join(dir, "out"), journal.Header{})
	if err != nil {
		t.Fatal(err)
	}
	code, said := profileIn(t.Context(), t, dir, "runner: {mode: remote, url: 127.0.0.1:1}\n")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if code != exit.Usage || !strings.Contains(said, "is writing there") {
		t.Errorf("exit code %d, stderr %q; want 2, and that the folder is in use", code, said)
	}
}

// Ctrl-C during the reading of a server's metrics page is not reported as a mistake in the file.
func TestInterruptedMetricsPage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, said := profileIn(ctx, t, t.TempDir(), "runner: {mode: remote, url: 127.0.0.1:1, metrics_url: \"http://127.0.0.1:1/metrics\"}\n")
	if code != exit.Interrupted {
		t.Errorf("exit code %d, stderr %q; want 130", code, said)
	}
}

// The summary of a campaign without measurements, with its time.
func TestSummaryWithoutFigures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trials, failed int
		interrupted    bool
		code           int
		says, err      string // the whole summary, and a part of the error
	}{
		"interrupted in the first trial": {0, 0, true, exit.Interrupted, "m: 0 trials (0 failed) in 40s; the reason\n",
			"interrupted in the first trial; the same command begins it again"},
		"interrupted later": {3, 3, true, exit.Interrupted, "m: 3 trials (3 failed) in 40s; the reason\nnothing could be measured\nnext: tuner analyze --input out\n",
			"interrupted after 3 trials; the same command resumes, and 'tuner analyze' uses what was measured"},
		"all failed": {3, 3, false, exit.Infeasible, "m: 3 trials (3 failed) in 40s; the reason\nnothing could be measured\nnext: tuner analyze --input out\n",
			"no configuration could be measured; 'tuner analyze' lists the failures"},
		"nothing satisfies the constraints": {3, 1, false, exit.Infeasible,
			"m: 3 trials (1 failed) in 40s; the reason\nno configuration satisfied the constraints so far\nnext: tuner analyze --input out\n",
			"'tuner analyze' shows the nearest configuration"},
	} {
		var out strings.Builder
		setup := profile.Setup{Profile: spec.Profile{Output: "out"}, Subject: profile.Subject{Name: "m"}}
		err := summarize(console{in: nil, out: &out, err: io.Discard}, profileOptions{output: "text"}, setup, profile.Outcome{
			End: journal.End{Reason: "the reason", Interrupted: c.interrupted, Elapsed: 40 * time.Second},
			// end of the last trial
			Status: profile.Status{Trials: c.trials, Failed: c.failed, Elapsed: 30 * time.Second},
		})
		if out.String() != c.says {
			t.Errorf("%s: says %q, want %q", name, out.String(), c.says)
		}
		if exit.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: exit code %d, error %v; want %d and %q", name, exit.CodeOf(err), err, c.code, c.err)
		}
	}
}

// What a campaign names next analyzes it as its analyze.yaml says. The file of another campaign, and one that cannot be
// read, are left alone.
func TestSummaryNamesTheAnalysis(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"input: my out\nconstraints: {latency_p99: 20ms}\n": "next: tuner analyze -f 'DIR/analyze.yaml'\n",
		"input: other\n": "next: tuner analyze --input 'DIR/my out'\n",
		"input: [\n":     "next: tuner analyze --input 'DIR/my out'\n",
	} {
		dir := filepath.Join(t.TempDir(), "a model")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "analyze.yaml"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		setup := profile.Setup{Profile: spec.Profile{Path: filepath.Join(dir, "profile.yaml"), Output: filepath.Join(dir, "my out")}}
		_ = summarize(console{out: &out, err: io.Discard}, profileOptions{output: "text"}, setup, profile.Outcome{Status: profile.Status{Trials: 1, Failed: 1}})
		if got := strings.ReplaceAll(out.String(), dir, "DIR"); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("%q: says %q, want %q", text, got, want)
		}
	}
}
