package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

// The names of the campaigns on the ensemble, which are those of their folders.
const (
	whole = "exhaustive"
	short = "search"
)

// ensemble is the name of the pipeline, and encoder that of its stage with MiniLM.
const (
	ensemble = "search"
	encoder  = "encoder"
)

// runner is the line of a profile for the server; "" for tuner's own engine.
func (b *bench) runner() string {
	if b.server == onTriton {
		return fmt.Sprintf("runner: {mode: local, server: %q}\n", b.peers.Triton)
	}
	return ""
}

// profile is the text of a campaign's profile: 2 configurations of the tokenizer, 20 of the encoder and 4 of the head.
func (b *bench) profile(name, library, strategy, budget string) string {
	return fmt.Sprintf(`pipeline: %q
output: %q
op_libraries: [%q]
%ssearch: {strategy: %s, budget: %s, window: 300ms}
load: {concurrency: %d, inputs: {data: %q}}
models:
  tokenizer: {space: {intra_op_threads: 1, instance_count: [1, 2]}}
  encoder: {space: {intra_op_threads: [1, 2], instance_count: [1, 2], max_batch_size: [1, 2, 4, 8, 16], max_queue_delay: 0}}
  head: {space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 8], max_queue_delay: 0}}
`, filepath.Join(b.repository(), ensemble), b.folder(name), library, b.runner(), strategy, budget, concurrency, b.texts())
}

func (b *bench) folder(name string) string { return filepath.Join(b.output, b.server+"-"+name) }

// exhaustive measures all configurations, or resumes with them.
func (b *bench) exhaustive(ctx context.Context) error {
	o, err := b.tune(ctx, whole, plan.Grid, fmt.Sprintf("{time: %v, trials: 2000}", b.time))
	if err != nil {
		return err
	}
	b.again(o, "exhaustive", "time", b.time)
	return nil
}

// again says how an exhaustive campaign is completed, if it is not: by another run of its part, with a larger value of
// a flag.
func (b *bench) again(o outcome, part, flag string, budget time.Duration) {
	if len(o.measured) < o.candidates {
		fmt.Fprintf(b.out, "%d of %d configurations are measured: run -what %s again with a -%s above %v\n", len(o.measured), o.candidates, part, flag, budget)
	}
}

// search runs the strategy for pipelines with a tenth as many trials as the exhaustive campaign has configurations.
func (b *bench) search(ctx context.Context) error {
	all, err := b.read(whole)
	if err != nil {
		return err
	}
	_, err = b.tune(ctx, short, plan.Stagewise, fmt.Sprintf("{trials: %d}", all.candidates/10))
	return err
}

// outcome has the answer of a campaign, and its numbers of trials and points.
type outcome struct {
	result     analyze.Result
	candidates int              // configurations of the space, without the default
	measured   []analyze.Config // those of them with figures
	trials     int              // with service trials
}

// tune runs a campaign on the ensemble, or the rest of it.
func (b *bench) tune(ctx context.Context, name, strategy, budget string) (outcome, error) {
	own, err := findExtensions(ctx)
	if err != nil {
		return outcome{}, err
	}
	if _, err := os.Stat(b.texts()); err != nil { // a campaign resumes with the same files alone
		if err := b.makeRepository(ctx, own.library); err != nil {
			return outcome{}, err
		}
	}
	return b.carryOut(ctx, own, name, b.profile(name, own.library, strategy, budget))
}

// carryOut runs the campaign of a profile, or the rest of it, and prints its answer.
func (b *bench) carryOut(ctx context.Context, own extensions, name, profile string) (outcome, error) {
	path := b.folder(name) + ".profile.yaml"
	if err := os.WriteFile(path, []byte(profile), 0o644); err != nil {
		return outcome{}, fmt.Errorf("cannot write the profile: %w", err)
	}
	for _, args := range [][]string{{"profile", "-f", path, "--quiet"}, {"analyze", "--input", b.folder(name)}} {
		if _, err := b.program(ctx, own, args...); err != nil {
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

// program runs tuner to its end with Python's own library, if operators need it, and returns what it prints.
func (b *bench) program(ctx context.Context, own extensions, args ...string) (string, error) {
	command := exec.CommandContext(ctx, b.tuner, args...)
	command.Env = append(os.Environ(), "LD_PRELOAD="+own.python)
	var messages strings.Builder
	command.Stderr = &messages
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("tuner %s: %w; its output:\n%s%s", strings.Join(args, " "), err, text, messages.String())
	}
	return string(text), nil
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
	space := c.Profile.Space(c.Facts).Candidates().All()
	o.candidates, o.trials = len(space), len(c.Events)
	o.measured = ofSpace(o.result.Configs, space)
	if _, ok := o.result.Winner(); !ok {
		return outcome{}, fmt.Errorf("campaign %s has no answer", name)
	}
	return o, nil
}

// ofSpace returns the configurations of a space that were measured. A campaign also measures the default, and one
// configuration for its first service trials.
func ofSpace(configs []analyze.Config, space []search.Candidate) []analyze.Config {
	in := map[string]bool{}
	for _, candidate := range space {
		in[candidate.Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(configs), func(c analyze.Config) bool { return len(c.Points) == 0 || !in[c.Candidate.Key()] })
}

// text describes a campaign's answer with the bottleneck that it names.
func (o outcome) text() string {
	best, _ := o.result.Winner()
	figure := fmt.Sprintf("%.1f infer/s", best.Best.Values[measure.Throughput].Value)
	if scale := best.Best.Load.Scale; scale > 0 {
		figure = fmt.Sprintf("scale %.3f", scale)
	}
	text := fmt.Sprintf("%s: %s by its own report; %d trials in %v, %d of %d configurations", best.Candidate.Describe(), figure,
		o.trials, o.result.Account.Elapsed.Round(time.Second), len(o.measured), o.candidates)
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

// nearBest returns the number of configurations that are near the best. Where these are many, any search finds one.
func nearBest(configs []analyze.Config) int {
	var values []float64
	for _, c := range configs {
		if c.Best != nil {
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

// effects returns, for each of the stages, the ratio of the highest to the lowest throughput that a choice for the stage alone
// allows: the others are chosen as well as possible. The stage that limits the pipeline has the largest.
func effects(stages []analyze.Served, configs []analyze.Config) map[string]float64 {
	found := map[string]float64{}
	for _, stage := range stages {
		if stage.Calls {
			continue
		}
		best := map[string]float64{}
		for _, c := range configs {
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
	figures, err := b.inTurn(ctx, own, [2]string{filepath.Join(b.folder(short), "repository"), filepath.Join(b.folder(whole), "repository")}, ensemble)
	if err != nil {
		return err
	}
	return sidebyside.Print(b.out, report(b.server, found, best, stats.PairedRatio(figures[0][0], figures[1][0])))
}

// inTurn measures models of two repositories in pairs, on fresh servers. Those of a pair are up together and take turns:
// A B B A in the first pair, B A A B in the second, and so on. The figures are in infer/s, by repository and model.
func (b *bench) inTurn(ctx context.Context, own extensions, repositories [2]string, models ...string) (figures [2][][]float64, err error) {
	for k := range figures {
		figures[k] = make([][]float64, len(models))
	}
	for i := range b.pairs {
		pair, err := b.pair(ctx, own, repositories, i%2 == 1, models)
		if err != nil {
			return figures, fmt.Errorf("pair %d: %w", i+1, err)
		}
		for k := range pair {
			for m := range models {
				figures[k][m] = append(figures[k][m], pair[k][m])
			}
		}
		fmt.Fprintf(b.messages, "pair %d of %d: %.1f and %.1f infer/s of %v\n", i+1, b.pairs, pair[0], pair[1], models)
	}
	return figures, nil
}

// pair measures a pair of inTurn. A figure is the geometric mean of a server's two turns.
func (b *bench) pair(ctx context.Context, own extensions, repositories [2]string, reversed bool, models []string) (figures [2][]float64, err error) {
	var servers [2]*peers.Server
	for k, repository := range repositories {
		if servers[k], err = b.serve(ctx, own, repository); err != nil {
			return figures, err
		}
		defer func() { err = errors.Join(err, servers[k].Stop()) }()
	}
	order := []int{0, 1, 1, 0}
	if reversed {
		order = []int{1, 0, 0, 1}
	}
	for _, model := range models {
		logs := [2]float64{}
		for _, k := range order {
			throughput, err := b.measure(ctx, servers[k], model)
			if err != nil {
				return figures, fmt.Errorf("%s: %w", repositories[k], err)
			}
			logs[k] += math.Log(throughput) / 2
		}
		for k := range figures {
			figures[k] = append(figures[k], math.Exp(logs[k]))
		}
	}
	return figures, nil
}

// report is the table of both campaigns.
func report(server string, found, best outcome, ratio stats.Estimate) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n### Stages of a pipeline on %s\n\n| by | answer |\n|---|---|\n| search | %s |\n| exhaustive | %s |\n\n", server, found.text(), best.text())
	fmt.Fprintf(&t, "Throughput of the search's answer over the exhaustive one's, in pairs: **%.3f** (%.3f–%.3f), with %.1f %% of the points.\n",
		ratio.Value, ratio.Lo, ratio.Hi, 100*float64(found.trials)/float64(len(best.measured)))
	fmt.Fprintf(&t, "By the exhaustive campaign, %d of %d configurations are within %.0f %% of the best.\n", nearBest(best.measured), len(best.measured), 100*(1-near))
	if same := winner(found).Key() == winner(best).Key(); same {
		t.WriteString("Both are the same configuration.\n")
	}
	all := effects(best.result.Stages, best.measured)
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

// serve starts a fresh server on a repository, with flags of its own.
func (b *bench) serve(ctx context.Context, own extensions, repository string, flags ...string) (*peers.Server, error) {
	command := []string{b.peers.Triton}
	if b.server == onTuner {
		command = []string{b.tuner, "serve", "--ort-library=" + b.peers.ORTLibrary}
		if own.library != "" {
			flags = append(flags, "--allow-op-library="+own.library)
		}
	}
	return peers.StartServer(ctx, append([]string{"env", "LD_PRELOAD=" + own.python}, command...), repository, flags...)
}

// measure measures a model of a server, in infer/s. Only the ensemble gets texts. The values of the other models' inputs
// do not matter, except the tokenizer's.
func (b *bench) measure(ctx context.Context, server *peers.Server, model string) (throughput float64, err error) {
	client := sidebyside.Analyzer{Name: "tuner perf", Command: []string{b.tuner, "perf"}, Work: b.output}
	d := sidebyside.Demand{Model: model, Protocol: sidebyside.GRPC, Address: server.GRPC, Window: b.window,
		Args: []string{"--concurrency-range", strconv.Itoa(concurrency)}}
	if model == ensemble {
		d.Data = b.texts()
	}
	return sidebyside.Retry(ctx, b.messages, model, func() (float64, error) {
		const column = "Inferences/Second"
		columns, err := sidebyside.Measure(ctx, client, d, columnsOf(column))
		return columns[column], err
	})
}

// columnsOf reads columns of a report.
func columnsOf(titles ...string) func(io.Reader) (map[string]float64, error) {
	return func(report io.Reader) (map[string]float64, error) { return sidebyside.Columns(report, titles...) }
}
