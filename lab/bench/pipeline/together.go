package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
	"tuner/lab/published"
	"tuner/measure/stats"
	"tuner/search/plan"
)

// traffic is one of the models of the parts together and blocks.
type traffic struct {
	name, file string
	rate       float64 // requests/s at scale 1
	limit      time.Duration
	space      string
	shapes     []string // NAME:SIZES of the inputs with symbolic sizes
}

// traffics returns two or three models. The third is a published CNN, which tells the direction of a line of text. Three
// have twice the limits: on two slow cores nothing kept the limits of two.
func traffics(n int) []traffic {
	all := []traffic{
		{encoder, "minilm.onnx", 20, 50 * time.Millisecond, "{intra_op_threads: [1, 2], instance_count: [1, 2], max_batch_size: [1, 8], max_queue_delay: 0}",
			[]string{"input_ids:32", "attention_mask:32", "token_type_ids:32"}},
		{"ranker", "mlp.onnx", 200, 10 * time.Millisecond, "{intra_op_threads: 1, instance_count: [1, 2], max_batch_size: 8, max_queue_delay: 0}", nil},
		{"direction", published.LineDirection.File(), 60, 15 * time.Millisecond, "{intra_op_threads: 1, instance_count: [1, 2], max_batch_size: 4, max_queue_delay: 0}",
			[]string{"x:3,48,192"}},
	}
	if n > 2 {
		for i := range all {
			all[i].limit *= 2
		}
	}
	return all[:n]
}

// inputs returns the field of a profile's load for the shapes.
func (t traffic) inputs() string {
	if t.shapes == nil {
		return ""
	}
	var sizes []string
	for _, s := range t.shapes {
		name, size, _ := strings.Cut(s, ":")
		sizes = append(sizes, fmt.Sprintf("%s: [%s]", name, size))
	}
	return ", inputs: {shape: {" + strings.Join(sizes, ", ") + "}}"
}

// The campaigns on all models, and the repository of each model's best.
const (
	wholeTogether = "together-exhaustive"
	shortTogether = "together-search"
	alone         = "alone"
)

// of names a campaign or a repository by its number of models.
func (b *bench) of(name string) string {
	if b.several == 2 {
		return name
	}
	return fmt.Sprintf("%s-of-%d", name, b.several)
}

// joint is the text of the profile of all models: 8 configurations of the encoder and 2 of each other. Two models
// are on shared cores and on cores of their own, three on shared ones.
func (b *bench) joint(name, strategy string) string {
	isolation := "[shared, cores]"
	if b.several > 2 {
		isolation = "shared" // the machines that this was made for have two cores
	}
	var models strings.Builder
	for _, t := range traffics(b.several) {
		fmt.Fprintf(&models, "  %s: {model: %q, load: {request_rate: %v%s}, constraints: {latency_p99: %v}, space: %s}\n",
			t.name, filepath.Join(b.models, t.file), t.rate, t.inputs(), t.limit, t.space)
	}
	return fmt.Sprintf("output: %q\n%ssearch: {strategy: %s, budget: %v, window: 1s}\nmodels:\n%sscale: {min: 0.5, max: 16}\nisolation: %s\n",
		b.folder(b.of(name)), b.runner(), strategy, b.together, models.String(), isolation)
}

// single is the text of the profile of one model by itself, for its highest throughput within its limit.
func (b *bench) single(t traffic) string {
	return fmt.Sprintf("model: %q\nname: %s\noutput: %q\n%ssearch: {budget: %v, window: 1s}\nload: {concurrency: auto%s}\nconstraints: {latency_p99: %v}\nspace: %s\n",
		filepath.Join(b.models, t.file), t.name, b.folder(b.of(alone+"-"+t.name)), b.runner(), b.together/5, t.inputs(), t.limit, t.space)
}

// campaigns measures all configurations of the models together, searches them in the same time, and finds the best of
// each model by itself, or resumes with that.
func (b *bench) campaigns(ctx context.Context) error {
	if b.several > 2 {
		if err := published.LineDirection.Fetch(ctx, b.models, b.messages); err != nil {
			return err
		}
	}
	for _, c := range []struct{ name, strategy string }{{wholeTogether, plan.Grid}, {shortTogether, plan.Colocation}} {
		o, err := b.carryOut(ctx, extensions{}, b.of(c.name), b.joint(c.name, c.strategy))
		if err != nil {
			return err
		}
		if c.name == wholeTogether {
			b.again(o, "together", "together", b.together)
		}
	}
	for _, t := range traffics(b.several) {
		name := b.of(alone + "-" + t.name)
		if _, err := b.carryOut(ctx, extensions{}, name, b.single(t)); err != nil {
			return err
		}
		if err := copyModel(filepath.Join(b.folder(name), "repository", t.name), filepath.Join(b.folder(b.of(alone)), t.name)); err != nil {
			return err
		}
	}
	return nil
}

// copyModel copies the folder of a model, in place of an earlier one.
func copyModel(from, to string) error {
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		return fmt.Errorf("cannot make a repository: %w", err)
	}
	return nil
}

// contender is a repository with both models, the flags of its server.
type contender struct {
	name, repository string
	flags            []string
	scale            float64 // at which its next block begins
}

// blocks measures which scale each repository carries: of the search's answer, of the exhaustive one, and of each model's
// best by itself. Each block has all of them on fresh servers. An exhaustive answer that is the search's is left out.
// Before, perf_analyzer measures the search's answer at its own scale: the sooner after the campaign, the more the
// machine is the same.
func (b *bench) blocks(ctx context.Context) error {
	found, errFound := b.read(b.of(shortTogether))
	best, errBest := b.read(b.of(wholeTogether))
	if err := errors.Join(errFound, errBest); err != nil {
		return err
	}
	short, _ := found.result.Winner()
	whole, _ := best.result.Winner()
	answer := contender{shortTogether, filepath.Join(b.folder(b.of(shortTogether)), "repository"), short.ServerFlags(), short.Best.Load.Scale}
	list := []contender{answer}
	if whole.Candidate.Key() == short.Candidate.Key() {
		fmt.Fprintf(b.messages, "both campaigns answer %s\n", short.Candidate.Describe())
	} else {
		list = append(list, contender{wholeTogether, filepath.Join(b.folder(b.of(wholeTogether)), "repository"), whole.ServerFlags(), whole.Best.Load.Scale})
	}
	list = append(list, contender{alone, b.folder(b.of(alone)), nil, answer.scale})
	check, err := b.check(ctx, answer)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.messages, "at scale %.3f: p99 %v by perf_analyzer, %v by tuner perf\n", answer.scale, check.analyzer, check.own)
	scales := make([][]float64, len(list))
	for i := range b.pairs {
		carried, err := b.block(ctx, list, i)
		if err != nil {
			return fmt.Errorf("block %d: %w", i+1, err)
		}
		for k, scale := range carried {
			scales[k], list[k].scale = append(scales[k], scale), scale
		}
		fmt.Fprintf(b.messages, "block %d of %d: scales %.3f\n", i+1, b.pairs, carried)
	}
	return sidebyside.Print(b.out, carriedTable(b.server, list, scales, traffics(b.several), check))
}

// block returns the scales that contenders carry, by `tuner perf` on fresh servers. The servers are up together and take
// turns, so that the machine is the same for all. Block i begins with another contender than the one before.
func (b *bench) block(ctx context.Context, list []contender, i int) (scales []float64, err error) {
	servers, ladders := make([]*peers.Server, len(list)), make([]ladder, len(list))
	for k, c := range list {
		if servers[k], err = b.serve(ctx, extensions{}, c.repository, c.flags...); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer func() { err = errors.Join(err, servers[k].Stop()) }()
		ladders[k].at = c.scale
	}
	for turn := i; slices.ContainsFunc(ladders, ladder.goesOn); turn++ {
		k := turn % len(list)
		margin, err := sidebyside.Retry(ctx, b.messages, list[k].name, func() (float64, error) { return b.margin(ctx, servers[k], ladders[k].at) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list[k].name, err)
		}
		ladders[k].take(margin)
	}
	for k, l := range ladders {
		scale, err := l.carried()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list[k].name, err)
		}
		scales = append(scales, scale)
	}
	return scales, nil
}

// stair is the ratio of neighbouring scales that are measured. A ladder has stairsAround measurements around the scale
// that is carried, and mostStairs at most, which is a factor of 8 and more.
const (
	stair        = 1.06
	stairsAround = 8
	mostStairs   = 48
)

// ladder finds the scale at which a limit is kept as often as it is missed, by the up-and-down method: a stair up after
// the limit was kept, and down after it was missed. See Dixon and Mood, A method for obtaining and analyzing sensitivity
// data, 1948.
type ladder struct {
	at    float64 // the next scale
	kept  []bool
	steps []float64 // logarithms of the scales that were measured
}

// take notes a measurement at the next scale: ln(latency/limit).
func (l *ladder) take(margin float64) {
	kept := margin <= 0
	l.steps, l.kept = append(l.steps, math.Log(l.at)), append(l.kept, kept)
	if kept {
		l.at *= stair
	} else {
		l.at /= stair
	}
}

// around returns the scales that were measured from the last one before the first change of direction.
func (l ladder) around() []float64 {
	for i := 1; i < len(l.kept); i++ {
		if l.kept[i] != l.kept[0] {
			return l.steps[i-1:]
		}
	}
	return nil
}

func (l ladder) goesOn() bool { return len(l.around()) < stairsAround && len(l.steps) < mostStairs }

// carried returns the geometric mean of the scales around the one that is carried.
func (l ladder) carried() (float64, error) {
	around := l.around()
	if len(around) == 0 {
		return 0, fmt.Errorf("cannot find the scale that is carried: it is beyond %.3g", l.at)
	}
	return math.Exp(stats.Mean(around).Value), nil
}

// carriedTable is the table of the scales that repositories carry, with the check of the first one.
func carriedTable(server string, list []contender, scales [][]float64, all []traffic, check checked) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n### %d models on %s: the scale that each answer carries\n\n| answer | carries, median | the search's over this |\n|---|---|---|\n", len(all), server)
	for k, c := range list {
		ratio := stats.PairedRatio(scales[0], scales[k])
		fmt.Fprintf(&t, "| %s | %.3f | **%.3f** (%.3f–%.3f) |\n", c.name, stats.Median(scales[k]), ratio.Value, ratio.Lo, ratio.Hi)
	}
	measured := make([]string, len(all))
	for i, of := range all {
		measured[i] = fmt.Sprintf("%s p99 %.2f (%.2f) ms of %v", of.name, 1e3*check.analyzer[i], 1e3*check.own[i], of.limit)
	}
	fmt.Fprintf(&t, "\nThe search answers scale %.3f. There perf_analyzer (and tuner perf right before) measures %s.\n", check.scale, strings.Join(measured, ", "))
	return t.String()
}

// margin measures all models at a scale, and returns the largest ln(p99/limit).
func (b *bench) margin(ctx context.Context, server *peers.Server, scale float64) (float64, error) {
	p99, err := b.latencies(ctx, server, scale, b.window)
	if err != nil {
		return 0, err
	}
	most := math.Inf(-1)
	for i, of := range traffics(b.several) {
		most = max(most, math.Log(p99[i]/of.limit.Seconds()))
	}
	return most, nil
}

// latencies measures the p99 of all models at a scale, in s, by `tuner perf`.
func (b *bench) latencies(ctx context.Context, server *peers.Server, scale float64, window time.Duration) ([]float64, error) {
	all := traffics(b.several)
	first := all[0]
	args := []string{"perf", "-m", first.name, "-i", sidebyside.GRPC, "-u", server.GRPC, "--input-data", "zero", "--format", "json",
		"-p", strconv.FormatInt(window.Milliseconds(), 10), "-s", "100000", "-r", strconv.Itoa(sidebyside.Windows),
		"--request-distribution", "poisson", "--request-rate-range", decimal(scale * first.rate)}
	for _, t := range all[1:] {
		with := t.name + ",rate=" + decimal(scale*t.rate) + ",input-data=zero"
		for _, s := range t.shapes {
			with += ",shape=" + s
		}
		args = append(args, "--with", with)
	}
	for _, s := range first.shapes {
		args = append(args, "--shape", s)
	}
	text, err := b.program(ctx, extensions{}, args...)
	if err != nil {
		return nil, err
	}
	return latenciesOf([]byte(text), all)
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// percentiles are the part of a report of `tuner perf` that is read: latencies by their names, in s.
type percentiles struct {
	Model   string
	Latency map[string]struct{ Value float64 }
}

// latenciesOf reads the p99 of all models, in s, from a report of `tuner perf`.
func latenciesOf(report []byte, all []traffic) ([]float64, error) {
	var r struct {
		Levels []struct {
			percentiles
			Others []percentiles
		}
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, fmt.Errorf("cannot read the report of tuner perf: %w", err)
	}
	if len(r.Levels) != 1 || len(r.Levels[0].Others) != len(all)-1 {
		return nil, fmt.Errorf("the report of tuner perf is not of one level of %d models", len(all))
	}
	var list []float64
	for i, of := range append([]percentiles{r.Levels[0].percentiles}, r.Levels[0].Others...) {
		p99 := of.Latency["p99"].Value
		if !(p99 > 0) {
			return nil, fmt.Errorf("the report of tuner perf has no p99 of %s", all[i].name)
		}
		list = append(list, p99)
	}
	return list, nil
}

// checked has the p99 of all models at a scale, in s.
type checked struct {
	scale         float64
	analyzer, own []float64
}

// checkWindow is the length of a window of a check: at some 30 requests/s, three windows of 5 s know a p99 to 20 % only.
const checkWindow = 20 * time.Second

// check measures all models at a contender's scale with `tuner perf`, then with perf_analyzer. `tuner perf` sends as the
// campaign did, so it tells whether the campaign stated too much or perf_analyzer's processes take the server's cores.
func (b *bench) check(ctx context.Context, c contender) (p checked, err error) {
	server, err := b.serve(ctx, extensions{}, c.repository, c.flags...)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	own, err := b.latencies(ctx, server, c.scale, checkWindow)
	if err != nil {
		return p, err
	}
	analyzer, err := b.independent(ctx, server, c.scale)
	return checked{c.scale, analyzer, own}, err
}

// independent measures the p99 of all models at a scale, in s, with perf_analyzer, a process for each. The processes
// begin together: one process for several models needs MPI.
func (b *bench) independent(ctx context.Context, server *peers.Server, scale float64) ([]float64, error) {
	all := traffics(b.several)
	p99 := make([]float64, len(all))
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range all {
		group.Go(func() error {
			work := filepath.Join(b.output, "perf_analyzer-"+t.name)
			if err := os.MkdirAll(work, 0o755); err != nil {
				return fmt.Errorf("cannot make a folder for perf_analyzer: %w", err)
			}
			a := sidebyside.Analyzer{Name: "perf_analyzer", Command: []string{b.peers.PerfAnalyzer}, Work: work}
			d := sidebyside.Demand{Model: t.name, Protocol: sidebyside.GRPC, Address: server.GRPC, Window: checkWindow,
				Args: []string{"--async", "--request-distribution", "poisson", "--request-rate-range", decimal(scale * t.rate)}}
			for _, s := range t.shapes {
				d.Args = append(d.Args, "--shape", s)
			}
			const column = "p99 latency" // µs
			columns, err := sidebyside.Measure(ctx, a, d, columnsOf(column))
			p99[i] = columns[column] / 1e6
			return err
		})
	}
	return p99, group.Wait()
}
