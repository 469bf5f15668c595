package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"tuner/search"
	"tuner/stats"
)

// raceResult is what the benchmark reads of a race's result.json.
type raceResult struct {
	Elapsed float64 `json:"elapsed_seconds"`
	Winner  struct {
		Settings search.Candidate `json:"settings"`
		Gain     stats.Estimate   `json:"gain"`
	} `json:"winner"`
	Model struct {
		Files []struct {
			Precision string `json:"precision"`
			Path      string `json:"path"`
		} `json:"files"`
	} `json:"model"`
}

// sweepText is the space: 3·2⁵ = 96 distinct candidates on a machine of two cores.
func sweepText(o options, seed int) string {
	return fmt.Sprintf(`model: %q
name: model
search: {budget: %v, seed: %d}
space:
  precision: [fp32, int8]
  intra_op_threads: [1, 2]
  graph_optimization: [extended, all]
  execution_mode: [sequential, parallel]
  allow_spinning: [true, false]
  memory_arena: [true, false]
load: {inputs: {shape: {input_ids: [%[4]d], attention_mask: [%[4]d], token_type_ids: [%[4]d]}}}
accuracy: {data: %[5]q}
`, absolute(o.model), o.budget, seed, o.sequence, absolute(o.data))
}

// absolute is a path as seen from any folder; one that cannot be resolved stays, and is reported when it is opened.
func absolute(path string) string {
	if resolved, err := filepath.Abs(path); err == nil {
		return resolved
	}
	return path
}

// sweep runs the verb once.
func sweep(ctx context.Context, o options, dir string, i int, messages io.Writer) (raceResult, error) {
	file, output := filepath.Join(dir, fmt.Sprintf("race%d.yaml", i+1)), filepath.Join(dir, fmt.Sprintf("race%d", i+1))
	if err := os.WriteFile(file, []byte(sweepText(o, i+1)), 0o644); err != nil {
		return raceResult{}, fmt.Errorf("cannot write the sweep's file: %w", err)
	}
	cmd := exec.CommandContext(ctx, o.tuner, "ortsweep", "-f", file, "-o", output, "--quiet", "--output", "json", "--ort-library", o.library)
	cmd.Stderr = messages
	text, err := cmd.Output()
	if err != nil {
		return raceResult{}, fmt.Errorf("cannot run the sweep: %w", err)
	}
	var r raceResult
	if err := json.Unmarshal(text, &r); err != nil {
		return raceResult{}, fmt.Errorf("cannot read the sweep's result: %w", err)
	}
	return r, nil
}

// standing is a candidate with its figure against the default.
type standing struct {
	candidate search.Candidate
	gain      stats.Estimate
}

// mostBest is how many of the exhaustive measurement's best meet the races' winners.
const mostBest = 3

// finalists are the winners of the races and the best of the exhaustive measurement, each once.
func finalists(races []raceResult, every exhaustive) []search.Candidate {
	var list []search.Candidate
	add := func(c search.Candidate) {
		if !c.IsDefault() && !slices.ContainsFunc(list, func(known search.Candidate) bool { return known.Key() == c.Key() }) {
			list = append(list, c)
		}
	}
	for _, s := range every.standings[:min(mostBest, len(every.standings))] {
		add(s.candidate)
	}
	for _, r := range races {
		add(r.Winner.Settings)
	}
	return list
}

// report prints the comparison: for each race its time and how near its winner came to the best.
func report(w io.Writer, races []raceResult, every exhaustive, meeting []standing) error {
	best := slices.MaxFunc(meeting, func(a, b standing) int { return cmp.Compare(a.gain.Value, b.gain.Value) })
	gains := map[string]float64{search.Candidate{}.Key(): 1}
	for _, s := range meeting {
		gains[s.candidate.Key()] = s.gain.Value
	}
	fmt.Fprintf(w, "exhaustive: %d candidates in %.0f s; best of all on fresh launches: %s, %.3f × the default (%.3f to %.3f)\n",
		len(every.standings), every.elapsed.Seconds(), best.candidate, best.gain.Value, best.gain.Lo, best.gain.Hi)
	near := 0
	for i, r := range races {
		share := gains[r.Winner.Settings.Key()] / best.gain.Value
		if share >= 0.98 {
			near++
		}
		fmt.Fprintf(w, "race %2d: %5.1f %% of the best, %4.1f %% of the exhaustive time: %s\n", i+1, 100*share,
			100*r.Elapsed/every.elapsed.Seconds(), r.Winner.Settings)
	}
	if _, err := fmt.Fprintf(w, "%d of %d races within 2 %% of the best\n", near, len(races)); err != nil {
		return fmt.Errorf("cannot write the comparison: %w", err)
	}
	return nil
}
