package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/search"
)

// sweepResult is what the benchmark reads of a sweep's result.json.
type sweepResult struct {
	Winner struct {
		Settings search.Candidate `json:"settings"`
	} `json:"winner"`
	Model struct {
		Files []struct {
			Precision string `json:"precision"`
			Path      string `json:"path"`
		} `json:"files"`
	} `json:"model"`
	Candidates []struct {
		Settings search.Candidate `json:"settings"`
		Value    struct {
			Value float64 `json:"value"`
		} `json:"value"`
		Windows [][]float64 `json:"windows"`
	} `json:"candidates"`
}

// sweep runs `tuner ortsweep` on a model.
func sweep(ctx context.Context, o options, s subject) (answer, error) {
	output := filepath.Join(s.dir, "sweep")
	args := []string{"ortsweep", "-m", s.path, "-o", output, "--budget", o.budget.String(), "--ort-library", o.library, "--data", s.rows, "--quiet"}
	for _, shape := range s.shapes {
		args = append(args, "--shape", shape)
	}
	a := answer{by: "tuner ortsweep"}
	begin := time.Now()
	text, err := exec.CommandContext(ctx, o.tuner, args...).CombinedOutput()
	a.elapsed = time.Since(begin)
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended): // a result, as it is of Olive
		first, _, _ := strings.Cut(string(text), "\n")
		a.exit, a.message = ended.ExitCode(), first
		return a, nil
	case err != nil:
		return a, fmt.Errorf("cannot run the sweep: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(output, "result.json"))
	if err != nil {
		return a, fmt.Errorf("cannot read the sweep's result: %w", err)
	}
	return a, a.readSweep(content)
}

// readSweep takes the answer from result.json.
func (a *answer) readSweep(content []byte) error {
	var r sweepResult
	if err := json.Unmarshal(content, &r); err != nil {
		return fmt.Errorf("cannot read the sweep's result: %w", err)
	}
	files := map[string]string{}
	for _, f := range r.Model.Files {
		files[f.Precision] = f.Path
	}
	s, err := ofCandidate(r.Winner.Settings, files)
	if err != nil {
		return err
	}
	a.setting = &s
	values := map[string][]string{}
	for _, c := range r.Candidates {
		if len(c.Windows) == 0 {
			continue
		}
		a.measured++
		if c.Settings.Key() == r.Winner.Settings.Key() {
			a.latency = c.Value.Value
		}
		for _, one := range c.Settings.Settings() {
			values[one.Knob] = append(values[one.Knob], string(one.Value))
		}
	}
	a.tried = valuesText(values)
	return nil
}

// valuesText lists what was given to each setting: "intra_op_threads 1, 2".
func valuesText(values map[string][]string) []string {
	var list []string
	for name, all := range values {
		slices.Sort(all)
		text := name
		for i, value := range slices.Compact(all) {
			text += map[bool]string{true: " ", false: ", "}[i == 0] + value
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}
