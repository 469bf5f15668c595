//go:build linux && !noengine

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"tuner/internal/exit"
	"tuner/spec"
)

// githubJob is the part of a workflow with shell steps.
type githubJob struct {
	Jobs map[string]struct {
		Steps []struct {
			Name string `yaml:"name"`
			If   string `yaml:"if"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// ciSteps reads the shell steps of the examples in configs/ci. Steps that also run after a failure
// are marked.
func ciSteps(t *testing.T) map[string][]ciStep {
	t.Helper()
	read := func(name string, into any) {
		text, err := os.ReadFile(filepath.Join("../../configs/ci", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	var github githubJob
	read("github.yml", &github)
	var gitlab map[string]struct {
		Script []string `yaml:"script"`
	}
	read("gitlab.yml", &gitlab)
	steps := map[string][]ciStep{}
	for _, s := range github.Jobs["gate"].Steps {
		if s.Run != "" {
			steps["github"] = append(steps["github"], ciStep{s.Run, s.If == "always()"})
		}
	}
	// GitLab runs the lines of a script in one shell.
	steps["gitlab"] = []ciStep{{strings.Join(gitlab["gate"].Script, "\n"), false}}
	return steps
}

type ciStep struct {
	script string
	always bool
}

// ciRepository makes a repository whose branch has the same model as its base. It has the gate of
// configs/ci, with a short budget.
func ciRepository(t *testing.T, w workplace) {
	t.Helper()
	model, err := os.ReadFile(filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../configs/ci/gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.ParseGate("gate.yaml", text); err != nil {
		t.Fatal(err)
	}
	short := bytes.Replace(text, []byte("budget: 15m"), []byte("budget: 1s\nwindow: 50ms"), 1)
	if bytes.Equal(short, text) {
		t.Fatal("the example has no budget of 15m")
	}
	w.write("model.onnx", string(model))
	w.write("gate.yaml", string(short))
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", "model.onnx")
	git("commit", "-qm", "base")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	git("add", "gate.yaml")
	git("commit", "-qm", "branch")
}

// The shell steps of the examples work. With a budget of a second the gate ends inconclusive, with
// exit code 4, after one pair.
func TestCIExamples(t *testing.T) {
	t.Parallel()
	for system, steps := range ciSteps(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t)
			if _, err := exec.LookPath("git"); err != nil {
				t.Skip("needs git")
			}
			ciRepository(t, w)
			summary := filepath.Join(w.dir, "summary.md")
			failed, log := false, ""
			for _, s := range steps {
				if failed && !s.always {
					continue
				}
				cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", s.script)
				cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "GITHUB_STEP_SUMMARY="+summary, "GITHUB_SHA=abc", "CI_COMMIT_SHA=abc")
				out, err := cmd.CombinedOutput()
				log += string(out)
				if err != nil {
					failed = true
					if code := cmd.ProcessState.ExitCode(); code != exit.Inconclusive {
						t.Fatalf("exit code %d of\n%s\n%s", code, s.script, out)
					}
				}
			}
			if !failed {
				t.Errorf("no step was inconclusive:\n%s", log)
			}
			mark := map[string]string{"github": "::warning title=tuner gate%3A model::", "gitlab": "WARNING: tuner gate: model: "}[system]
			if !strings.Contains(log, mark) {
				t.Errorf("no annotation in:\n%s", log)
			}
			for _, name := range []string{"gate.json", "gate.md", "junit.xml", "gate.bench", "trend.png", "trend.html", "history.jsonl"} {
				if _, err := os.Stat(filepath.Join(w.dir, "out", "gate", name)); err != nil {
					t.Error(err)
				}
			}
			if system == "github" {
				if text, err := os.ReadFile(summary); err != nil || !bytes.Contains(text, []byte("### tuner gate: model: inconclusive")) {
					t.Errorf("the summary is %q, %v", text, err)
				}
			}
		})
	}
}
