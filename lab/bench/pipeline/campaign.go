package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/analyze"
	"tuner/analyze/bottleneck"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/search/plan"
)

// concurrency is the load of all trials. It keeps the instances of every configuration busy.
const concurrency = 16

// The campaigns' names, which are those of their folders.
const (
	whole = "exhaustive"
	short = "search"
)

// profile is the text of a campaign's profile: 2 configurations of the tokenizer, 20 of the encoder and 4 of the head.
func (b *bench) profile(name, library, strategy, budget string) string {
	runner := ""
	if b.server == onTriton {
		runner = fmt.Sprintf("runner: {mode: local, server: %q}\n", b.peers.Triton)
	}
	return fmt.Sprintf(`pipeline: %q
output: %q
op_libraries: [%q]
%ssearch: {strategy: %s, budget: %s, window: 300ms}
load: {concurrency: %d, inputs: {data: %q}}
models:
  tokenizer: {space: {intra_op_threads: 1, instance_count: [1, 2]}}
  encoder: {space: {intra_op_threads: [1, 2], instance_count: [1, 2], max_batch_size: [1, 2, 4, 8, 16], max_queue_delay: 0}}
  head: {space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 8], max_queue_delay: 0}}
`, filepath.Join(b.repository(), "search"), b.folder(name), library, runner, strategy, budget, concurrency, b.texts())
}

func (b *bench) folder(name string) string { return filepath.Join(b.output, b.server+"-"+name) }

// exhaustive measures all configurations, or resumes with them.
func (b *bench) exhaustive(ctx context.Context) error {
	o, err := b.carryOut(ctx, whole, plan.Grid, fmt.Sprintf("{time: %v, trials: 2000}", b.time))
	if err != nil {
		return err
	}
	if o.points < o.candidates {
		fmt.Fprintf(b.out, "%d of %d configurations are measured: run -what exhaustive again with a -time above %v\n", o.points, o.candidates, b.time)
	}
	return nil
}

// search runs the strategy for pipelines with a tenth as many trials as the exhaustive campaign has configurations.
func (b *bench) search(ctx context.Context) error {
	all, err := b.read(whole)
	if err != nil {
		return err
	}
	_, err = b.carryOut(ctx, short, plan.Stagewise, fmt.Sprintf("{trials: %d}", all.candidates/10))
	return err
}

// outcome has the answer of a campaign, and its numbers of trials and points.
type outcome struct {
	result     analyze.Result
	candidates int // configurations of the space, without the default
	points     int // those of them with figures
	trials     int // with service trials
}

// carryOut runs a campaign, or the rest of it, and prints its answer.
func (b *bench) carryOut(ctx context.Context, name, strategy, budget string) (outcome, error) {
	own, err := findExtensions(ctx)
	if err != nil {
		return outcome{}, err
	}
	if _, err := os.Stat(b.texts()); err != nil { // a campaign resumes with the same files alone
		if err := b.makeRepository(ctx, own.library); err != nil {
			return outcome{}, err
		}
	}
	path := b.folder(name) + ".profile.yaml"
	if err := os.WriteFile(path, []byte(b.profile(name, own.library, strategy, budget)), 0o644); err != nil {
		return outcome{}, fmt.Errorf("cannot write the profile: %w", err)
	}
	for _, args := range [][]string{{"profile", "-f", path, "--quiet"}, {"analyze", "--input", b.folder(name)}} {
		if err := b.program(ctx, own, args...); err != nil {
			return outcome{}, err
		}
	}
	o, err := b.read(name)
	if err != nil {
		return outcome{}, err
	}
	_, err = fmt.Fprintf(b.out, "%s: %s\n", name, o.text())
	return o, err
}

// program runs tuner to its end with Python's own library, which the operators need.
func (b *bench) program(ctx context.Context, own extensions, args ...string) error {
	command := exec.CommandContext(ctx, b.tuner, args...)
	command.Env = append(os.Environ(), "LD_PRELOAD="+own.python)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("tuner %s: %w; its output:\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// read reads a campaign.
func (b *bench) read(name string) (outcome, error) {
	c, err := analyze.Replay(b.folder(name))
	if err != nil {
		return outcome{}, fmt.Errorf("the part %s has not run: %w", name, err)
	}
	o := outcome{}
	if o.result, err = analyze.Analyze(c, analyze.Options{}); err != nil {
		return outcome{}, err
	}
	o.candidates, _ = c.Profile.Space(c.Facts).Candidates().Len()
	o.trials = len(c.Events)
	for _, config := range o.result.Configs {
		if len(config.Points) > 0 && !config.Candidate.IsDefault() {
			o.points++
		}
	}
	if _, ok := o.result.Winner(); !ok {
		return outcome{}, fmt.Errorf("campaign %s has no answer", name)
	}
	return o, nil
}

// text describes a campaign's answer with the bottleneck that it names.
func (o outcome) text() string {
	best, _ := o.result.Winner()
	text := fmt.Sprintf("%s: %.1f infer/s by its own report; %d trials in %v, %d of %d configurations", best.Candidate.Describe(), best.Best.Values[measure.Throughput].Value,
		o.trials, o.result.Account.Elapsed.Round(time.Second), o.points, o.candidates)
	if name := o.bottleneck(); name != "" {
		text += "; the bottleneck is " + name
	}
	return text
}

// bottleneck is the stage that the explanation of the answer names; "" without one.
func (o outcome) bottleneck() string {
	best, _ := o.result.Winner()
	if len(o.result.Explanation.Subjects) == 0 || o.result.Explanation.Subjects[0].Name != best.Name {
		return ""
	}
	limiting, _ := bottleneck.Limiting(o.result.Explanation.Subjects[0].Stages)
	return limiting.Model
}

// near is the share of the best throughput that an answer must reach to be near it.
const near = 0.95

// nearBest returns the number of configurations without the default that are near the best. Where these are many, any
// search finds one.
func nearBest(r analyze.Result) int {
	var values []float64
	for _, c := range r.Configs {
		if c.Best != nil && !c.Candidate.IsDefault() {
			values = append(values, c.Best.Values[measure.Throughput].Value)
		}
	}
	n := 0
	for _, v := range values {
		if v >= near*slices.Max(values) {
			n++
		}
	}
	return n
}

// effects returns, for each stage, the ratio of the highest to the lowest throughput that a choice for the stage alone
// allows: the others are chosen as well as possible. The stage that limits the pipeline has the largest.
func effects(r analyze.Result) map[string]float64 {
	found := map[string]float64{}
	for _, stage := range r.Stages {
		if stage.Calls {
			continue
		}
		best := map[string]float64{}
		for _, c := range r.Configs {
			if c.Best != nil {
				key := c.Candidate.Of(stage.Header.Model).Key()
				best[key] = max(best[key], c.Best.Values[measure.Throughput].Value)
			}
		}
		least, most := 0.0, 0.0
		for _, v := range best {
			most = max(most, v)
			if least == 0 || v < least {
				least = v
			}
		}
		if least > 0 {
			found[stage.Header.Model] = most / least
		}
	}
	return found
}

// compare measures the answers of both campaigns in turn: A B, B A, A B and so on.
func (b *bench) compare(ctx context.Context) error {
	own, err := findExtensions(ctx)
	if err != nil {
		return err
	}
	found, errFound := b.read(short)
	best, errBest := b.read(whole)
	if err := errors.Join(errFound, errBest); err != nil {
		return err
	}
	folders := []string{b.folder(short), b.folder(whole)}
	figures := make([][]float64, 2)
	for i := range b.pairs {
		order := []int{0, 1}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, k := range order {
			throughput, err := b.measure(ctx, own, filepath.Join(folders[k], "repository"))
			if err != nil {
				return fmt.Errorf("pair %d: %w", i+1, err)
			}
			figures[k] = append(figures[k], throughput)
		}
		fmt.Fprintf(b.messages, "pair %d of %d: %.1f and %.1f infer/s\n", i+1, b.pairs, figures[0][i], figures[1][i])
	}
	return sidebyside.Print(b.out, report(b.server, found, best, stats.PairedRatio(figures[0], figures[1])))
}

// report is the table of both campaigns.
func report(server string, found, best outcome, ratio stats.Estimate) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n### Stages of a pipeline on %s\n\n| by | answer |\n|---|---|\n| search | %s |\n| exhaustive | %s |\n\n", server, found.text(), best.text())
	fmt.Fprintf(&t, "Throughput of the search's answer over the exhaustive one's, in pairs: **%.3f** (%.3f–%.3f), with %.1f %% of the points.\n",
		ratio.Value, ratio.Lo, ratio.Hi, 100*float64(found.trials)/float64(best.points))
	fmt.Fprintf(&t, "By the exhaustive campaign, %d of %d configurations are within %.0f %% of the best.\n", nearBest(best.result), best.points, 100*(1-near))
	if same := winner(found).Key() == winner(best).Key(); same {
		t.WriteString("Both are the same configuration.\n")
	}
	all := effects(best.result)
	t.WriteString("By the exhaustive campaign, the choice for a stage alone changes the throughput by the factor")
	for i, stage := range best.result.Stages {
		if !stage.Calls {
			comma := ","
			if i == 0 {
				comma = ""
			}
			fmt.Fprintf(&t, "%s %.2f for %s", comma, all[stage.Header.Model], stage.Header.Model)
		}
	}
	t.WriteString(".\n")
	return t.String()
}

func winner(o outcome) search.Candidate {
	best, _ := o.result.Winner()
	return best.Candidate
}

// measure measures a repository's ensemble on a fresh server, in infer/s.
func (b *bench) measure(ctx context.Context, own extensions, repository string) (throughput float64, err error) {
	command := []string{b.peers.Triton}
	args := []string{}
	if b.server == onTuner {
		command, args = []string{b.tuner, "serve", "--ort-library=" + b.peers.ORTLibrary}, []string{"--allow-op-library=" + own.library}
	}
	server, err := peers.StartServer(ctx, append([]string{"env", "LD_PRELOAD=" + own.python}, command...), repository, args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client := sidebyside.Analyzer{Name: "tuner perf", Command: []string{b.tuner, "perf"}, Work: b.output}
	d := sidebyside.Demand{Model: "search", Protocol: sidebyside.GRPC, Address: server.GRPC, Window: b.window, Data: b.texts(),
		Args: []string{"--concurrency-range", strconv.Itoa(concurrency)}}
	return sidebyside.Retry(ctx, b.messages, repository, func() (float64, error) {
		const column = "Inferences/Second"
		columns, err := sidebyside.Measure(ctx, client, d, columnsOf(column))
		return columns[column], err
	})
}

// columnsOf reads columns of a report.
func columnsOf(titles ...string) func(io.Reader) (map[string]float64, error) {
	return func(report io.Reader) (map[string]float64, error) { return sidebyside.Columns(report, titles...) }
}
