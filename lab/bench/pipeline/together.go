package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
	"tuner/measure/stats"
	"tuner/search/plan"
)

// traffic is one of the two models of the parts together and blocks.
type traffic struct {
	name, file string
	rate       float64 // requests/s at scale 1
	limit      time.Duration
	space      string
	shapes     []string // NAME:SIZES of the inputs with symbolic sizes
}

func traffics() []traffic {
	return []traffic{
		{encoder, "minilm.onnx", 20, 50 * time.Millisecond, "{intra_op_threads: [1, 2], instance_count: [1, 2], max_batch_size: [1, 8], max_queue_delay: 0}",
			[]string{"input_ids:32", "attention_mask:32", "token_type_ids:32"}},
		{"ranker", "mlp.onnx", 200, 10 * time.Millisecond, "{intra_op_threads: 1, instance_count: [1, 2], max_batch_size: 8, max_queue_delay: 0}", nil},
	}
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

// The names of the campaigns on both models, and of the repository of each model's best.
const (
	wholeTogether = "together-exhaustive"
	shortTogether = "together-search"
	alone         = "alone"
)

// joint is the text of the profile of both models: 8 configurations of the encoder and 2 of the ranker, on shared cores
// and on cores of their own.
func (b *bench) joint(name, strategy string) string {
	var models strings.Builder
	for _, t := range traffics() {
		fmt.Fprintf(&models, "  %s: {model: %q, load: {request_rate: %v%s}, constraints: {latency_p99: %v}, space: %s}\n",
			t.name, filepath.Join(b.models, t.file), t.rate, t.inputs(), t.limit, t.space)
	}
	return fmt.Sprintf("output: %q\n%ssearch: {strategy: %s, budget: %v, window: 1s}\nmodels:\n%sscale: {min: 0.5, max: 16}\nisolation: [shared, cores]\n",
		b.folder(name), b.runner(), strategy, b.together, models.String())
}

// single is the text of the profile of one model by itself, for its highest throughput within its limit.
func (b *bench) single(t traffic) string {
	return fmt.Sprintf("model: %q\nname: %s\noutput: %q\n%ssearch: {budget: %v, window: 1s}\nload: {concurrency: auto%s}\nconstraints: {latency_p99: %v}\nspace: %s\n",
		filepath.Join(b.models, t.file), t.name, b.folder(alone+"-"+t.name), b.runner(), b.together/5, t.inputs(), t.limit, t.space)
}

// campaigns measures all configurations of both models together, searches them in the same time, and finds the best of
// each model by itself, or resumes with that.
func (b *bench) campaigns(ctx context.Context) error {
	for _, c := range []struct{ name, strategy string }{{wholeTogether, plan.Grid}, {shortTogether, plan.Colocation}} {
		o, err := b.carryOut(ctx, extensions{}, c.name, b.joint(c.name, c.strategy))
		if err != nil {
			return err
		}
		if c.name == wholeTogether {
			b.again(o, "together", "together", b.together)
		}
	}
	for _, t := range traffics() {
		name := alone + "-" + t.name
		if _, err := b.carryOut(ctx, extensions{}, name, b.single(t)); err != nil {
			return err
		}
		if err := copyModel(filepath.Join(b.folder(name), "repository", t.name), filepath.Join(b.folder(alone), t.name)); err != nil {
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

// contender is a repository with both models, and the flags of its server.
type contender struct {
	name, repository string
	flags            []string
	scale            float64 // at which its next measurement begins
}

// blocks measures which scale each repository carries: of the search's answer, of the exhaustive one, of each model's
// best by itself, and of the files without any configuration. Each block has all of them, and begins with another one.
// Then perf_analyzer measures the search's answer at its own scale.
func (b *bench) blocks(ctx context.Context) error {
	found, errFound := b.read(shortTogether)
	best, errBest := b.read(wholeTogether)
	if err := errors.Join(errFound, errBest); err != nil {
		return err
	}
	var list []contender
	for _, c := range []struct {
		name string
		outcome
	}{{shortTogether, found}, {wholeTogether, best}} {
		answer, _ := c.result.Winner()
		list = append(list, contender{c.name, filepath.Join(b.folder(c.name), "repository"), answer.ServerFlags(), answer.Best.Load.Scale})
	}
	plain := filepath.Join(b.output, "plain")
	for _, t := range traffics() {
		if err := placeModel(filepath.Join(b.models, t.file), filepath.Join(plain, t.name, "1")); err != nil {
			return err
		}
	}
	list = append(list, contender{alone, b.folder(alone), nil, list[0].scale}, contender{"no configuration", plain, nil, list[0].scale / 2})
	answer := list[0]
	scales := make([][]float64, len(list))
	for i := range b.pairs {
		for k := range list {
			at := (i + k) % len(list)
			scale, err := b.carries(ctx, list[at])
			if err != nil {
				return fmt.Errorf("block %d, %s: %w", i+1, list[at].name, err)
			}
			scales[at], list[at].scale = append(scales[at], scale), scale
		}
		fmt.Fprintf(b.messages, "block %d of %d done\n", i+1, b.pairs)
	}
	p99, err := b.independent(ctx, answer)
	return errors.Join(err, sidebyside.Print(b.out, carriedTable(b.server, list, scales, answer.scale, p99)))
}

// placeModel puts a model's file into the folder of a version.
func placeModel(file, folder string) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "model.onnx"), text, 0o644))
	}
	if err != nil {
		return fmt.Errorf("cannot make a repository: %w", err)
	}
	return nil
}

// carriedTable is the table of the scales that repositories carry, with the latencies of the first one at its own
// scale by perf_analyzer.
func carriedTable(server string, list []contender, scales [][]float64, scale float64, p99 []time.Duration) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n### Two models on %s: the scale that each answer carries\n\n| answer | carries, median | the search's over this |\n|---|---|---|\n", server)
	for k, c := range list {
		ratio := stats.PairedRatio(scales[0], scales[k])
		fmt.Fprintf(&t, "| %s | %.3f | **%.3f** (%.3f–%.3f) |\n", c.name, stats.Median(scales[k]), ratio.Value, ratio.Lo, ratio.Hi)
	}
	fmt.Fprintf(&t, "\nThe search answers scale %.3f. There perf_analyzer measures", scale)
	for i, of := range traffics() {
		fmt.Fprintf(&t, " %s p99 %.2f ms of %v", of.name, 1e3*p99[i].Seconds(), of.limit)
		if i == 0 {
			t.WriteString(" and")
		}
	}
	t.WriteString(".\n")
	return t.String()
}

// carries returns the scale that a repository carries, by `tuner perf` on a fresh server.
func (b *bench) carries(ctx context.Context, c contender) (scale float64, err error) {
	server, err := b.serve(ctx, extensions{}, c.repository, c.flags...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return carried(c.scale, func(scale float64) (float64, error) {
		return sidebyside.Retry(ctx, b.messages, c.name, func() (float64, error) { return b.margin(ctx, server, scale) })
	})
}

// stair is the ratio of neighbouring scales that are measured, and mostStairs their largest number: a factor of 8.
const (
	stair      = 1.09
	mostStairs = 24
)

// carried returns the scale at which a margin crosses 0: the largest ln(latency/limit) of both models. It goes up or
// down from a scale to the first one on the other side, and interpolates between the two.
func carried(from float64, margin func(scale float64) (float64, error)) (float64, error) {
	last, err := margin(from)
	if err != nil {
		return 0, err
	}
	step := stair
	if last > 0 {
		step = 1 / stair
	}
	begin := from
	for range mostStairs {
		next, err := margin(from * step)
		if err != nil {
			return 0, err
		}
		if (next > 0) != (last > 0) {
			return from * math.Pow(step, last/(last-next)), nil
		}
		from, last = from*step, next
	}
	return 0, fmt.Errorf("cannot find the scale that is carried: scales from %.3g to %.3g are on one side of it", begin, from)
}

// margin measures both models at a scale, and returns the larger ln(p99/limit).
func (b *bench) margin(ctx context.Context, server *peers.Server, scale float64) (float64, error) {
	all := traffics()
	first, second := all[0], all[1]
	args := []string{"perf", "-m", first.name, "-i", sidebyside.GRPC, "-u", server.GRPC, "--input-data", "zero", "--format", "json",
		"-p", strconv.FormatInt(b.window.Milliseconds(), 10), "-s", "100000", "-r", strconv.Itoa(sidebyside.Windows),
		"--request-distribution", "poisson", "--request-rate-range", decimal(scale * first.rate),
		"--with", second.name + ",rate=" + decimal(scale*second.rate) + ",input-data=zero"}
	for _, s := range first.shapes {
		args = append(args, "--shape", s)
	}
	text, err := b.program(ctx, extensions{}, args...)
	if err != nil {
		return 0, err
	}
	return marginOf([]byte(text), all)
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// percentiles are the part of a report of `tuner perf` that is read: latencies by their names, in s.
type percentiles struct {
	Model   string
	Latency map[string]struct{ Value float64 }
}

// marginOf reads the larger ln(p99/limit) of both models from a report of `tuner perf`.
func marginOf(report []byte, all []traffic) (float64, error) {
	var r struct {
		Levels []struct {
			percentiles
			Others []percentiles
		}
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return 0, fmt.Errorf("cannot read the report of tuner perf: %w", err)
	}
	if len(r.Levels) != 1 || len(r.Levels[0].Others) != 1 {
		return 0, errors.New("the report of tuner perf is not of one level with one other model")
	}
	most := math.Inf(-1)
	for i, of := range []percentiles{r.Levels[0].percentiles, r.Levels[0].Others[0]} {
		p99 := of.Latency["p99"].Value
		if !(p99 > 0) {
			return 0, fmt.Errorf("the report of tuner perf has no p99 of %s", all[i].name)
		}
		most = max(most, math.Log(p99/all[i].limit.Seconds()))
	}
	return most, nil
}

// independent measures the p99 of both models at a contender's scale with perf_analyzer, a process for each. The
// processes begin together: one process for several models needs MPI.
func (b *bench) independent(ctx context.Context, c contender) (p99 []time.Duration, err error) {
	server, err := b.serve(ctx, extensions{}, c.repository, c.flags...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	all := traffics()
	p99 = make([]time.Duration, len(all))
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range all {
		group.Go(func() error {
			work := filepath.Join(b.output, "perf_analyzer-"+t.name)
			if err := os.MkdirAll(work, 0o755); err != nil {
				return fmt.Errorf("cannot make a folder for perf_analyzer: %w", err)
			}
			a := sidebyside.Analyzer{Name: "perf_analyzer", Command: []string{b.peers.PerfAnalyzer}, Work: work}
			d := sidebyside.Demand{Model: t.name, Protocol: sidebyside.GRPC, Address: server.GRPC, Window: 5 * time.Second,
				Args: []string{"--async", "--request-distribution", "poisson", "--request-rate-range", decimal(c.scale * t.rate)}}
			for _, s := range t.shapes {
				d.Args = append(d.Args, "--shape", s)
			}
			const column = "p99 latency" // µs
			columns, err := sidebyside.Measure(ctx, a, d, columnsOf(column))
			p99[i] = time.Duration(columns[column] * float64(time.Microsecond))
			return err
		})
	}
	return p99, group.Wait()
}
