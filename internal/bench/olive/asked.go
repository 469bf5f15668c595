package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// oliveTime bounds one run of Olive.
const oliveTime = 5 * time.Minute

// launch runs Olive in a folder and returns what it printed. That it fails is a result: the exit code is in the answer.
func launch(ctx context.Context, p programs, dir string, a *answer, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, oliveTime)
	defer cancel()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make a folder for Olive: %w", err)
	}
	cmd := exec.CommandContext(ctx, p.olive, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OLIVE_DISABLE_TELEMETRY=1", "HF_HUB_OFFLINE=1")
	begin := time.Now()
	log, err := cmd.CombinedOutput()
	a.elapsed = time.Since(begin)
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		a.exit = ended.ExitCode()
	case err != nil:
		return "", fmt.Errorf("cannot run Olive: %w", err)
	}
	a.message = cause(string(log))
	return string(log), nil
}

// cause is the error at the end of the first Python traceback in a log, with the lines that go on with it, which are indented;
// "" without one.
func cause(log string) string {
	_, after, _ := strings.Cut(log, "Traceback (most recent call last):\n")
	text := ""
	for line := range strings.Lines(after) {
		indented := strings.HasPrefix(line, " ")
		if text != "" && !indented {
			break
		}
		if text != "" || !indented {
			text += " " + strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(text)
}

// commandLine asks as Olive's documentation does.
func commandLine(ctx context.Context, p programs, s subject) (answer, error) {
	a := answer{by: "olive tune-session-params"}
	dir := filepath.Join(s.dir, "command")
	log, err := launch(ctx, p, dir, &a, "tune-session-params", "-m", s.path, "-o", filepath.Join(dir, "out"), "--log_level", "1")
	if err != nil {
		return a, err
	}
	a.measured = strings.Count(log, "Running tuning with params")
	content, err := os.ReadFile(filepath.Join(dir, "out", "cpu-cpu.json"))
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("cannot read Olive's settings: %w", err)
	}
	return a, a.readSettings(content, s.path)
}

// readSettings takes the answer of the command line; a file without settings, which it writes when it could not run the model,
// is none.
func (a *answer) readSettings(content []byte, model string) error {
	var found map[string]json.RawMessage
	if err := json.Unmarshal(content, &found); err != nil {
		return fmt.Errorf("cannot read Olive's settings: %w", err)
	}
	if len(found) == 0 {
		return nil
	}
	var settings oliveSettings
	if err := json.Unmarshal(content, &settings); err != nil {
		return fmt.Errorf("cannot read Olive's settings: %w", err)
	}
	one := ofOlive(settings, model, "fp32")
	a.setting = &one
	return nil
}

// runWorkflow asks with a workflow file.
func runWorkflow(ctx context.Context, p programs, s subject) (answer, error) {
	a := answer{by: "olive run"}
	dir := filepath.Join(s.dir, "workflow")
	script, config, output := filepath.Join(s.dir, "rows.py"), filepath.Join(s.dir, "workflow.json"), filepath.Join(dir, "out")
	text, err := workflow(s, script, output, filepath.Join(dir, "cache"))
	if err != nil {
		return a, err
	}
	if err := errors.Join(os.WriteFile(script, []byte(rowsScript), 0o644), os.WriteFile(config, text, 0o644)); err != nil {
		return a, fmt.Errorf("cannot write Olive's workflow: %w", err)
	}
	if _, err := launch(ctx, p, dir, &a, "run", "--config", config); err != nil {
		return a, err
	}
	content, err := os.ReadFile(filepath.Join(output, "footprint.json"))
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("cannot read Olive's footprint: %w", err)
	}
	return a, a.readFootprint(content, filepath.Join(output, "model.onnx"))
}

// node is a model in Olive's footprint: the original, or what a pass made.
type node struct {
	Parent string `json:"parent_model_id"`
	Pass   string `json:"from_pass"`
	Best   bool   `json:"is_pareto_frontier"`
	Model  struct {
		Config struct {
			Settings *oliveSettings `json:"inference_settings"`
		} `json:"config"`
	} `json:"model_config_data"`
	Metrics struct {
		Value map[string]struct {
			Value float64 `json:"value"` // milliseconds
		} `json:"value"`
	} `json:"metrics"`
}

// sessionPass is the name of OrtSessionParamsTuning in a footprint.
const sessionPass = "ortsessionparamstuning"

// precisionOf is what a pass makes; "" for the original.
func precisionOf(pass string) string {
	return map[string]string{"onnxpeepholeoptimizer": "fp32 after peephole", "onnxdynamicquantization": "int8",
		"onnxstaticquantization": "int8_static"}[pass]
}

// readFootprint takes the answer from footprint.json: the point of the Pareto frontier, which with latency as the only
// objective is the fastest one. The file of that model is at path.
func (a *answer) readFootprint(content []byte, path string) error {
	nodes := map[string]node{}
	if err := json.Unmarshal(content, &nodes); err != nil {
		return fmt.Errorf("cannot read Olive's footprint: %w", err)
	}
	values := map[string][]string{}
	for _, n := range nodes {
		latency, measured := n.Metrics.Value["latency-avg"]
		if !measured || n.Pass == "" {
			continue
		}
		precision, settings := precisionOf(n.Pass), oliveSettings{}
		if n.Pass == sessionPass {
			precision = precisionOf(nodes[n.Parent].Pass)
		}
		if n.Model.Config.Settings != nil {
			settings = *n.Model.Config.Settings
		}
		a.measured++
		one := ofOlive(settings, path, precision)
		one.note(values)
		if seconds := latency.Value / 1e3; n.Best && (a.setting == nil || seconds < a.latency) {
			a.setting, a.latency = &one, seconds
		}
	}
	a.tried = valuesText(values)
	if a.setting == nil && a.message == "" {
		a.message = "no point of the search came to its end"
	}
	return nil
}

// note adds the setting's values to those that were tried, by tuner's names.
func (s setting) note(values map[string][]string) {
	add := func(knob, value string) { values[knob] = append(values[knob], value) }
	add("precision", s.Precision)
	if s.IntraOpThreads > 0 {
		add("intra_op_threads", strconv.Itoa(s.IntraOpThreads))
	}
	if s.InterOpThreads > 0 {
		add("inter_op_threads", strconv.Itoa(s.InterOpThreads))
	}
	if s.Graph != "" {
		add("graph_optimization", s.Graph)
		add("execution_mode", map[bool]string{true: "parallel", false: "sequential"}[s.Parallel])
	}
}
