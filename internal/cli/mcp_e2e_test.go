//go:build linux && !noengine

package cli

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// assistant is a client of `tuner mcp`, which runs as a process of its own.
type assistant struct {
	t        *testing.T
	cmd      *exec.Cmd
	session  *sdk.ClientSession
	progress *atomic.Int64 // number of messages of progress
}

// newAssistant starts `tuner mcp` for a workplace. The sample models are open, too.
func newAssistant(t *testing.T, w workplace) assistant {
	t.Helper()
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		t.Fatal(err)
	}
	a := assistant{t: t, cmd: exec.Command(tuner, "mcp", "--root", w.dir, "--root", os.Getenv("TUNER_MODELS")), progress: new(atomic.Int64)}
	a.cmd.Dir, a.cmd.Stderr = t.TempDir(), os.Stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { a.progress.Add(1) },
	})
	if a.session, err = client.Connect(t.Context(), &sdk.CommandTransport{Command: a.cmd, TerminateDuration: hangs}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.session.Close() })
	return a
}

// call calls a tool, which must succeed. It returns its text, and puts the structured result into out.
func (a assistant) call(name string, arguments map[string]any, out any) string {
	a.t.Helper()
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken("token")
	result, err := a.session.CallTool(a.t.Context(), params)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	text := result.Content[0].(*sdk.TextContent).Text
	if result.IsError {
		a.t.Fatalf("%s: %s", name, text)
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(structured, out)
	}
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return text
}

// campaignStatus is the structured result of tools about a campaign.
type campaignStatus struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Output string `json:"output"`
	Trials int    `json:"trials"`
	Exit   int    `json:"exit_code"`
	Answer *struct {
		Headline string   `json:"headline"`
		Lines    []string `json:"lines"`
	} `json:"answer"`
}

// An assistant goes from a model to a deployment: it inspects, runs a campaign, watches it, reads and
// explains the answer, compares and exports.
func TestAssistantTunes(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.withoutCharts(".", "out")
	a := newAssistant(t, w)
	var model struct {
		Name  string `json:"name"`
		Ready bool   `json:"ready"`
	}
	a.call("inspect_model", map[string]any{"model": filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx")}, &model)
	if model.Name != "mlp" || !model.Ready {
		t.Errorf("%+v", model)
	}
	var s campaignStatus
	a.call("start_campaign", map[string]any{"profile": "profile.yaml"}, &s)
	if s.ID != "campaign-1" || s.Output != w.output {
		t.Errorf("%+v", s)
	}
	wasRunning := s.State == "running"
	for s.State == "running" {
		a.call("campaign_status", map[string]any{"wait_seconds": 60}, &s)
	}
	if s.State != "ended" || s.Exit != 0 || s.Trials != budget || s.Answer == nil || s.Answer.Headline == "" || len(s.Answer.Lines) == 0 {
		t.Errorf("%+v", s)
	}
	if wasRunning && a.progress.Load() == 0 {
		t.Error("no progress was reported while it waited")
	}
	var answer struct {
		Status  string `json:"status"`
		Config  string `json:"best_config"`
		Ranking []struct {
			Name   string                     `json:"name"`
			Values map[string]json.RawMessage `json:"values"`
		} `json:"ranking"`
	}
	text := a.call("read_answer", map[string]any{"folder": "out"}, &answer)
	expect(t, text, s.Answer.Headline, filepath.Join(w.output, "report.md"), filepath.Join(w.output, "repository", "mlp"))
	if answer.Status != "satisfied" || !strings.Contains(answer.Config, `name: "mlp"`) || len(answer.Ranking) == 0 || len(answer.Ranking[0].Values) != 5 {
		t.Errorf("%+v", answer)
	}
	var rest map[string]any
	expect(t, a.call("explain", map[string]any{"folder": "out"}, &rest), "What limits it")
	expect(t, a.call("compare", map[string]any{"runs": []string{"out", w.output}}, &rest), "0 better, 0 worse")
	expect(t, a.call("export", map[string]any{"target": "helm", "folders": []string{"out"}, "output": "deploy"}, &rest), "values.yaml")
	if _, err := os.Stat(filepath.Join(w.dir, "deploy", "export.json")); err != nil {
		t.Error(err)
	}
	a.call("start_campaign", map[string]any{"profile": "profile.yaml"}, &s) // nothing is left to do
	for s.State == "running" {
		a.call("campaign_status", map[string]any{"id": "campaign-2", "wait_seconds": 60}, &s)
	}
	if s.ID != "campaign-2" || s.State != "ended" || s.Trials != budget {
		t.Errorf("%+v", s)
	}
}

// A campaign that is stopped keeps what was measured, and ends. The next one may begin then.
func TestAssistantStops(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.withoutCharts(".", "out")
	w.write("profile.yaml", strings.Replace(calmText(os.Getenv("TUNER_MODELS"), w.output), "window: 100ms", "window: 1s", 1))
	a := newAssistant(t, w)
	var s campaignStatus
	a.call("start_campaign", map[string]any{"profile": "profile.yaml"}, &s)
	eventually(t, "two trials", func() bool { return len(w.trials()) >= 2 })
	again, err := a.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "start_campaign", Arguments: map[string]any{"profile": "profile.yaml"}})
	if err != nil || !again.IsError {
		t.Errorf("a second campaign began: %+v, %v", again, err)
	}
	for a.call("stop_campaign", nil, &s); s.State == "stopping"; {
		a.call("campaign_status", map[string]any{"wait_seconds": 60}, &s)
	}
	if s.State != "ended" || s.Exit != 130 || s.Trials < 2 || s.Answer == nil {
		t.Errorf("%+v", s)
	}
	w.checkInterrupted()
}

// However a client or the server goes, the campaign and its engine end with it. Unless it is killed,
// the campaign writes the results of what was measured.
func TestAssistantGoes(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(a assistant) error{
		"closed": func(a assistant) error { return a.session.Close() }, // closes standard input
		"SIGTERM": func(a assistant) error {
			return a.cmd.Process.Signal(syscall.SIGTERM)
		},
		"SIGKILL": func(a assistant) error { return a.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t)
			w.withoutCharts(".", "out")
			w.write("profile.yaml", strings.Replace(calmText(os.Getenv("TUNER_MODELS"), w.output), "window: 100ms", "window: 1s", 1))
			a := newAssistant(t, w)
			var s campaignStatus
			a.call("start_campaign", map[string]any{"profile": "profile.yaml"}, &s)
			run, engine := 0, 0
			eventually(t, "two trials and an engine", func() bool {
				if run = childOf(a.cmd.Process.Pid, "run"); run != 0 {
					engine = engineOf(run)
				}
				return engine != 0 && len(w.trials()) >= 2
			})
			if err := leave(a); err != nil && name != "closed" {
				t.Fatal(err)
			}
			awaitGone(t, engine)
			awaitGone(t, run)
			if name == "SIGKILL" {
				return
			}
			w.checkInterrupted()
			if _, err := os.Stat(filepath.Join(w.output, "result.json")); err != nil {
				t.Error(err)
			}
			_ = a.session.Close() // waits for the process
			if code := a.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// childOf returns a child of a process that runs a verb of tuner; 0 without one.
func childOf(parent int, verb string) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if state, of := status(pid); of != parent || state == "Z" {
			continue
		}
		if command, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && strings.Contains(string(command), "\x00"+verb+"\x00") {
			return pid
		}
	}
	return 0
}
