package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/gate/flags"
	"tuner/internal/exit"
	"tuner/model/modelrepo"
	"tuner/profile"
	"tuner/spec"
)

// If the history cannot be written, the verdict is still printed, its files are written, and the
// exit code stays.
func TestVerdictIsToldWhateverCannotBeWritten(t *testing.T) {
	t.Parallel()
	for verdict, code := range map[decide.Verdict]int{decide.Fail: exit.GateFailed, decide.Inconclusive: exit.Inconclusive, decide.Pass: exit.Usage} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		g, err := spec.ParseGate("gate.yaml", []byte("candidate: new.onnx\nlimits: {memory: {max: 1GB}}"))
		if err != nil {
			t.Fatal(err)
		}
		g.Output, g.History = filepath.Join(dir, "out"), filepath.Join(dir, "file", "history.jsonl")
		source := modelrepo.Source{Path: "new.onnx", Digest: "d"}
		s := gate.Setup{Spec: g, Candidate: gate.Subject{Subject: profile.Subject{Name: "new", Files: []profile.File{{Source: source}}}}}
		o := gate.Outcome{Verdict: verdict, Reasons: []string{"memory is 2 GB"}, Pairs: []gate.Pair{{}}}
		var out, log bytes.Buffer
		err = reportGate(console{out: &out, err: &log}, &flags.Options{Quiet: true}, gate.NewResult(s, o, nil, time.Now(), ""))
		if exit.CodeOf(err) != code || !strings.Contains(err.Error(), "cannot write the history") {
			t.Errorf("%s: exit code %d, want %d: %v", verdict, exit.CodeOf(err), code, err)
		}
		if !strings.Contains(out.String(), "new: "+string(verdict)) {
			t.Errorf("%s is not in\n%s", verdict, out.String())
		}
		if _, err := os.Stat(filepath.Join(g.Output, "gate.json")); err != nil {
			t.Errorf("%s: %v", verdict, err)
		}
	}
}
