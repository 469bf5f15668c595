package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"tuner/measure/stats"
	"tuner/search"
)

// raceResult is the part of a race's result.json that the benchmark reads.
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

// sweepText returns the space: 3·2⁵ = 96 distinct candidates on a machine with two cores.
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
`, o.model, o.budget, seed, o.sequence, o.data)
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

// mostBest is the number of the exhaustive measurement's best candidates that meet the races'
// winners.
const mostBest = 3

// finalists returns the winners of the races and the best of the exhaustive measurement, each once.
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

// report prints the comparison: the candidates that met, and for each race its time and its
// winner's distance from the best. The best of several figures looks better than it is. So report
// counts the winners that are certainly not within 2 %.
func report(w io.Writer, races []raceResult, every exhaustive, m meeting) error {
	best := 0
	for i := range m.candidates {
		if m.figures.Ratio(i, best).Value > 1 {
			best = i
		}
	}
	fmt.Fprintf(w, "exhaustive: %d candidates in %.0f s. Its best and the races' winners on fresh launches, against the default:\n",
		len(every.standings), every.elapsed.Seconds())
	for i, c := range m.candidates {
		fmt.Fprintf(w, "  %s  %s\n", times(m.figures.Ratio(i, 0)), c)
	}
	near, far := 0, 0
	for i, r := range races {
		share := m.figures.Ratio(m.index(r.Winner.Settings), best)
		if share.Value >= 0.98 {
			near++
		}
		if share.Hi < 0.98 {
			far++
		}
		fmt.Fprintf(w, "race %2d: %5.1f %% (%.1f to %.1f) of the best, %4.1f %% of the exhaustive time: %s\n", i+1, 100*share.Value, 100*share.Lo,
			100*share.Hi, 100*r.Elapsed/every.elapsed.Seconds(), r.Winner.Settings)
	}
	if _, err := fmt.Fprintf(w, "%d of %d races within 2 %% of the best; %d certainly not\n", near, len(races), far); err != nil {
		return fmt.Errorf("cannot write the comparison: %w", err)
	}
	return nil
}

func (m meeting) index(c search.Candidate) int {
	return slices.IndexFunc(m.candidates, func(known search.Candidate) bool { return known.Key() == c.Key() })
}

// times prints a ratio to the default with its interval.
func times(e stats.Estimate) string {
	return fmt.Sprintf("%.3f × (%.3f to %.3f)", e.Value, e.Lo, e.Hi)
}
