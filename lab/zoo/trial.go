package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/lab/peers"
	"tuner/lab/published"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/report/result"
)

// Result has the outcome of a model.
type Result struct {
	Name, Package, Origin, Task, License string

	Opset    int64         // of ONNX's own operators
	Exit     int           // status of `tuner run`
	Took     time.Duration // of `tuner run`
	Refusal  string        // what it said; "" if it ended well
	Shapes   string        // of the requests, with reasons
	Decided  string        // the configuration that is deployed
	Gain     string        // over the default, with the interval; "" without one
	Served   string        // why the repository is not served with equal outputs; "" if it is
	Compared int           // outputs that were compared
}

// longestRefusal is the time in which a model that cannot be tuned must be refused.
const longestRefusal = 5 * time.Second

// Passed reports whether the model is served with equal outputs, or refused as it should be.
func (r Result) Passed() bool {
	if r.Exit == exit.OK {
		return r.Served == ""
	}
	isClear := strings.Contains(r.Refusal, "hint:") || strings.Contains(r.Refusal, ";") // a remedy follows
	return r.Exit == exit.Usage && r.Took <= longestRefusal && isClear
}

// Verdict returns the result in a word, with the reason.
func (r Result) Verdict() string {
	switch {
	case r.Exit == exit.OK && r.Passed():
		return "served, outputs equal"
	case r.Passed():
		return fmt.Sprintf("refused after %.1f s", r.Took.Seconds())
	case r.Exit == exit.OK:
		return "FAILED: " + r.Served
	default:
		return fmt.Sprintf("FAILED: exit %d after %.1f s: %s", r.Exit, r.Took.Seconds(), r.Refusal)
	}
}

// keeper runs models.
type keeper struct {
	options  options
	peers    *peers.Peers
	messages io.Writer
}

// exhibit runs one model and keeps its result. An error means that the zoo cannot go on.
func (k keeper) exhibit(ctx context.Context, e published.Exhibit) (Result, error) {
	if err := e.Fetch(ctx, k.options.models, k.messages); err != nil {
		return Result{}, err
	}
	r := Result{Name: e.Name, Package: e.Package(), Origin: e.Origin, Task: e.What, License: e.License}
	file := filepath.Join(k.options.models, e.File())
	if m, err := onnx.Read(file); err == nil { // else tuner says why
		r.Opset = m.Opset("")
	}
	folder := filepath.Join(k.options.out, e.Name)
	if err := os.RemoveAll(folder); err != nil {
		return r, err
	}
	if err := k.tune(ctx, file, folder, &r); err != nil {
		return r, err
	}
	if r.Exit == exit.OK {
		if err := describe(folder, &r); err != nil {
			return r, err
		}
		r.Compared, r.Served = k.compare(ctx, folder)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, err
	}
	return r, durable.WriteFile(k.resultPath(e), durable.Bytes(append(text, '\n')))
}

// tune runs `tuner run`.
func (k keeper) tune(ctx context.Context, file, folder string, r *Result) error {
	cmd := exec.CommandContext(ctx, k.options.tuner, "run", file, "--budget", k.options.budget.String(), "-o", folder)
	cmd.Env = append(os.Environ(), "TUNER_ORT_LIBRARY="+k.peers.ORTLibrary)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	var said bytes.Buffer
	cmd.Stderr = &said
	begin := time.Now()
	err := cmd.Run()
	r.Took = time.Since(begin)
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		return fmt.Errorf("cannot run %s: %w", k.options.tuner, err)
	}
	if r.Exit = cmd.ProcessState.ExitCode(); r.Exit != exit.OK {
		_, r.Refusal, _ = strings.Cut(said.String(), "tuner: ")
		r.Refusal = strings.ReplaceAll(strings.Join(strings.Fields(r.Refusal), " "), k.options.models+string(filepath.Separator), "")
	}
	return nil
}

// describe reads what was decided.
func describe(folder string, r *Result) error {
	path := filepath.Join(folder, "result.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	found, err := result.Parse(path, text)
	if err != nil {
		return err
	}
	var shapes []string
	for _, q := range found.Requests {
		shape := fmt.Sprintf("%s %v", q.Input, q.Shape)
		if q.Reason != "" {
			shape += " (" + q.Reason + ")"
		}
		shapes = append(shapes, shape)
	}
	r.Shapes = strings.Join(shapes, ", ")
	for _, c := range found.Configurations {
		if c.Name == found.Best {
			r.Decided = setupText(c.Setup)
			if c.Gain != nil && !c.Default {
				r.Gain = fmt.Sprintf("%.2f [%.2f, %.2f]", c.Gain.Value, c.Gain.Lo, c.Gain.Hi)
			}
		}
	}
	return nil
}

// setupText describes a configuration: "int8, batch 8, 2 instances × 1 thread".
func setupText(s result.Setup) string {
	parts := []string{s.Precision}
	if s.MaxBatchSize != nil {
		parts = append(parts, fmt.Sprintf("batch %d", max(1, *s.MaxBatchSize)))
	}
	if s.Instances != nil && s.IntraOpThreads != nil {
		threads := fmt.Sprint(*s.IntraOpThreads)
		if threads == "0" {
			threads = "all"
		}
		parts = append(parts, fmt.Sprintf("%d × %s", *s.Instances, threads))
	}
	return strings.Join(parts, ", ")
}

// repository returns the folder of the served models in a run's folder, and the model's.
func repository(folder string) (root string, model modelrepo.Model, err error) {
	root = filepath.Join(folder, "repository")
	entries, err := os.ReadDir(root)
	if err != nil {
		return root, model, err
	}
	for _, e := range entries {
		if e.IsDir() {
			model, err = modelrepo.OpenModel(filepath.Join(root, e.Name()))
			return root, model, err
		}
	}
	return root, model, fmt.Errorf("there is no model in %q", root)
}

// readResult reads the result of an earlier run, and whether there is one.
func readResult(path string) (r Result, found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, false, fmt.Errorf("%s is no result of the zoo: %w", path, err)
	}
	return r, true, nil
}
