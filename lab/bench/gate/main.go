// Gate checks the promise of `tuner gate` on a real model. A gate of a model against itself must
// not fail. A gate of an engine that is 5 % slower, or slow in a few of its executions, must fail.
//
// The program runs the verb like a user. It prints a line for each gate, and a summary, also after
// an interruption. It judges nothing.
//
//	TUNER_ORT_LIBRARY="$(bin/tuner runtime install cpu)" go -C lab run ./bench/gate -what slow -runs 20
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/lab/bench/sidebyside"
	"tuner/lab/program"
	"tuner/measure/stats"
)

// options are the flags.
type options struct {
	what     string
	model    string
	sequence int
	tuner    string
	library  string
	runs     int
	budget   time.Duration
}

// kind is a way in which the candidate's engine differs from the baseline's.
type kind struct {
	name string
	slow slowness // 0: the same engine
}

func kinds() []kind {
	return []kind{{name: "same"}, {"slow", slowness{1.05, 1}}, {"tail", slowness{5, 0.02}}}
}

func main() {
	program.Main("gate", program.Or(asSlow, slowEngine, program.With(define, run)))
}

func define(f *program.Flags, o *options) {
	names := []string{sidebyside.All}
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	f.Choice(&o.what, "what", sidebyside.All, names, "slow is 5 % slower, of tail 2 % of the executions take 5 times as long")
	f.Path(&o.model, "model", "models/minilm.onnx", "model")
	f.IntVar(&o.sequence, "sequence", 32, "length of its inputs")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.IntVar(&o.runs, "runs", 20, "gates of each kind")
	f.DurationVar(&o.budget, "budget", 15*time.Minute, "time of each gate")
	f.Check(func() error {
		if o.runs < 1 || o.budget < time.Second {
			return errors.New("-runs must be 1 or more, -budget 1s or more")
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	return program.InFolder("", "bench-gate", func(dir string) error { return bench(ctx, o, dir, out, messages) })
}

// bench runs the requested gates, with their files in dir.
func bench(ctx context.Context, o options, dir string, out, messages io.Writer) error {
	asked := slices.DeleteFunc(kinds(), func(k kind) bool { return o.what != sidebyside.All && o.what != k.name })
	list := make([]series, len(asked))
	for i, k := range asked {
		file, err := write(dir, o, k)
		if err != nil {
			return err
		}
		list[i] = series{kind: k, file: file}
	}
	failure := gates(ctx, o, list, messages)
	for _, s := range list {
		if len(s.results) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(out, summary(s.kind, s.results)); err != nil {
			return fmt.Errorf("cannot write the summary: %w", err)
		}
	}
	return failure
}

// series holds the gates of a kind.
type series struct {
	kind    kind
	file    string // gate.yaml
	results []result
}

// gates runs the kinds in turn, so that all of them meet the machine's drift. So an interrupted
// benchmark has some gates of each kind.
func gates(ctx context.Context, o options, list []series, messages io.Writer) error {
	for i := range o.runs {
		for k := range list {
			s := &list[k]
			r, err := gate(ctx, o, s.file, messages)
			if err != nil {
				return fmt.Errorf("%s, gate %d: %w", s.kind.name, i+1, err)
			}
			fmt.Fprintf(messages, "%s, gate %d of %d: %s\n", s.kind.name, i+1, o.runs, r)
			s.results = append(s.results, r)
		}
	}
	return nil
}

// gates runs the kinds in turn, so that the machine's drift affects all of them. An interrupted
// benchmark then has some gates of each kind.
const oneInstance = `max_batch_size: 8
instance_group [{ count: 1 kind: KIND_CPU }]
dynamic_batching {}
`

// write makes the gate.yaml of a kind. The slow engine is this program: the runner starts a script
// that adds its role.
func write(dir string, o options, k kind) (string, error) {
	engine := ""
	if k.slow.factor > 0 {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("cannot find this program: %w", err)
		}
		path := filepath.Join(dir, k.name+"-engine")
		script := fmt.Sprintf("#!/bin/sh\nexec %q %s %s \"$@\"\n", self, asSlow, strings.Join(k.slow.args(), " "))
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			return "", fmt.Errorf("cannot write the slow engine: %w", err)
		}
		engine = fmt.Sprintf(", engine: %q", path)
	}
	config := filepath.Join(dir, "config.pbtxt")
	if err := os.WriteFile(config, []byte(oneInstance), 0o644); err != nil {
		return "", fmt.Errorf("cannot write the configuration: %w", err)
	}
	text := fmt.Sprintf(`name: model
output: %q
baseline: {model: %q, config: %q}
candidate: {model: %[2]q, config: %[3]q%s}
load: {concurrency: 8, inputs: {shape: {input_ids: [%[5]d], attention_mask: [%[5]d], token_type_ids: [%[5]d]}}}
budget: %[6]v
`, filepath.Join(dir, k.name), o.model, config, engine, o.sequence, o.budget)
	file := filepath.Join(dir, k.name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("cannot write the gate's file: %w", err)
	}
	return file, nil
}

// result is the part of gate.json that the benchmark reads.
type result struct {
	Verdict  string      `json:"verdict"`
	Elapsed  float64     `json:"elapsed_seconds"`
	Pairs    int         `json:"pairs"`
	Criteria []criterion `json:"criteria"`
}

type criterion struct {
	Metric  string   `json:"metric"`
	Verdict string   `json:"verdict"`
	Change  *float64 `json:"change"`
	Lo      *float64 `json:"lo"`
	Hi      *float64 `json:"hi"`
}

func (r result) String() string {
	text := fmt.Sprintf("%s after %d pairs, %.0f s", r.Verdict, r.Pairs, r.Elapsed)
	for _, c := range r.Criteria {
		if c.Change != nil && c.Lo != nil && c.Hi != nil {
			text += fmt.Sprintf(", %s %+.1f %% (%+.1f to %+.1f): %s", c.Metric, 100**c.Change, 100**c.Lo, 100**c.Hi, c.Verdict)
		}
	}
	return text
}

// gate runs the verb once. Exit codes 3 and 4 are verdicts.
func gate(ctx context.Context, o options, file string, messages io.Writer) (result, error) {
	cmd := exec.CommandContext(ctx, o.tuner, "gate", "-f", file, "--quiet", "--output", "json", "--ort-library", o.library)
	cmd.Stderr = messages
	text, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && (exit.ExitCode() == 3 || exit.ExitCode() == 4)) {
		return result{}, fmt.Errorf("cannot run the gate: %w", err)
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		return result{}, fmt.Errorf("cannot read the gate's result: %w", err)
	}
	return r, nil
}

// summary counts the verdicts of a kind, and then those of each criterion alone. A slow tail
// reduces the throughput, too, and the criterion that fails first ends the gate.
func summary(k kind, results []result) string {
	var all tally
	var metrics []string // in order
	single := map[string]tally{}
	var seconds, pairs []float64
	for _, r := range results {
		all = all.with(r.Verdict)
		for _, c := range r.Criteria {
			if !slices.Contains(metrics, c.Metric) {
				metrics = append(metrics, c.Metric)
			}
			single[c.Metric] = single[c.Metric].with(c.Verdict)
		}
		seconds, pairs = append(seconds, r.Elapsed), append(pairs, float64(r.Pairs))
	}
	text := fmt.Sprintf("%s: %s of %d; median %.0f s, %.0f pairs", k.name, all, len(results), stats.Median(seconds), stats.Median(pairs))
	for _, m := range metrics {
		text += fmt.Sprintf("; %s alone: %s", m, single[m])
	}
	return text
}

// tally counts verdicts.
type tally struct{ pass, fail, inconclusive int }

func (t tally) with(verdict string) tally {
	switch verdict {
	case "pass":
		t.pass++
	case "fail":
		t.fail++
	default:
		t.inconclusive++
	}
	return t
}

func (t tally) String() string {
	return fmt.Sprintf("%d pass, %d fail, %d inconclusive", t.pass, t.fail, t.inconclusive)
}
