package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/hostinfo"
	"tuner/stats"
)

// rankingLoads are the requests in flight: few, where delays and instances show in the latency, and many, where batches do.
func rankingLoads() []int { return []int{4, 32} }

// rankingSettings are 20 configurations: what a search would try on a machine of that many cores, poor ones included.
func rankingSettings(cores int) []setting {
	var out []setting
	for _, layout := range [][2]int{{1, 1}, {1, cores}, {cores, 1}, {2, cores}, {2 * cores, 1}} {
		for _, batcher := range []setting{{MaxBatch: 1}, {MaxBatch: 4}, {MaxBatch: 16}, {MaxBatch: 16, Delay: 5 * time.Millisecond}} {
			batcher.Instances, batcher.Threads = layout[0], layout[1]
			out = append(out, batcher)
		}
	}
	return out
}

// standing is a setting under a load, measured on both servers once in every pass.
type standing struct {
	setting     setting
	concurrency int
	rounds      []round
}

// throughput is the median of a side's passes.
func (s standing) throughput(of func(round) figures) float64 {
	return s.median(func(r round) float64 { return of(r).Throughput })
}

func (s standing) median(of func(round) float64) float64 {
	var values []float64
	for _, r := range s.rounds {
		values = append(values, of(r))
	}
	return stats.Median(values)
}

func ofTuner(r round) figures { return r.Tuner }

func ofTriton(r round) figures { return r.Triton }

// ranking compares the order in which both servers put the same configurations, each on a fresh server that has the
// machine for itself. A configuration that cannot be measured is left out, and is an error in the end.
func (b *bench) ranking(ctx context.Context) error {
	o := b.or(1, 5*time.Second)
	settings := rankingSettings(hostinfo.Read(ctx).UsableCores())
	var standings []standing
	for _, s := range settings {
		for _, concurrency := range rankingLoads() {
			standings = append(standings, standing{setting: s, concurrency: concurrency})
		}
	}
	loads := len(rankingLoads())
	var failed error
	for pass := range o.rounds {
		for i, s := range settings {
			if ctx.Err() != nil {
				break
			}
			fmt.Fprintf(b.messages, "ranking: pass %d, configuration %d of %d: %v\n", pass+1, i+1, len(settings), s)
			rounds, err := b.rank(ctx, s, o.window, (pass+i)%2 == 1)
			if err != nil && ctx.Err() == nil {
				failed = errors.Join(failed, fmt.Errorf("%v: %w", s, err))
			}
			for j, r := range rounds {
				into := &standings[i*loads+j]
				into.rounds = append(into.rounds, r)
			}
		}
	}
	measured := slices.DeleteFunc(standings, func(s standing) bool { return len(s.rounds) == 0 })
	if len(measured) > 0 {
		failed = errors.Join(failed, writeRanking(b.out, measured))
	}
	return errors.Join(context.Cause(ctx), failed)
}

// rank measures a setting under every load, on one server and then on the other.
func (b *bench) rank(ctx context.Context, s setting, window time.Duration, tritonFirst bool) ([]round, error) {
	repository, err := b.repository(fileFP32, s.config())
	if err != nil {
		return nil, err
	}
	rounds := make([]round, len(rankingLoads()))
	servers := []struct {
		start launch
		into  func(*round) *figures
	}{
		{b.startTuner, func(r *round) *figures { return &r.Tuner }},
		{b.startTriton, func(r *round) *figures { return &r.Triton }},
	}
	if tritonFirst {
		slices.Reverse(servers)
	}
	for _, server := range servers {
		measured, err := b.underLoads(ctx, server.start, repository, window)
		if err != nil {
			return nil, err
		}
		for i, f := range measured {
			*server.into(&rounds[i]) = f
		}
	}
	return rounds, nil
}

// launch starts a server on a repository.
type launch func(ctx context.Context, repository string) (*side, error)

// underLoads starts a server and measures it under every load.
func (b *bench) underLoads(ctx context.Context, start launch, repository string, window time.Duration) (out []figures, err error) {
	s, err := start(ctx, repository)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, concurrency := range rankingLoads() {
		f, err := measureSide(ctx, s, nil, closedLoop(minilmRequest(), concurrency, window))
		if err != nil {
			return nil, fmt.Errorf("%s, concurrency %d: %w", s.name, concurrency, err)
		}
		out = append(out, f)
	}
	return out, nil
}

// writeRanking prints standings, under every load the same, with their ranks among those of the same load, and how well
// the ranks agree.
func writeRanking(out io.Writer, standings []standing) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n### Ranking: MiniLM fp32, %d tokens (instances × threads, max batch, delay)\n\n", sequence)
	text.WriteString("| configuration | concurrency | tuner, infer/s | rank | Triton, infer/s | rank | ratio | tuner, p99 | Triton, p99 | foreign CPU |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, concurrency := range rankingLoads() {
		same := slices.DeleteFunc(slices.Clone(standings), func(s standing) bool { return s.concurrency != concurrency })
		tuner, triton := throughputs(same)
		tunerRanks, tritonRanks := ranks(tuner), ranks(triton)
		for i, s := range same {
			fmt.Fprintf(&text, "| %v | %d | %.1f | %g | %.1f | %g | %.3f | %.1f ms | %.1f ms | %.0f %% |\n", s.setting, concurrency,
				tuner[i], tunerRanks[i], triton[i], tritonRanks[i], tuner[i]/triton[i],
				1e3*s.median(func(r round) float64 { return r.Tuner.P99 }), 1e3*s.median(func(r round) float64 { return r.Triton.P99 }),
				100*s.median(func(r round) float64 { return (r.Tuner.Foreign + r.Triton.Foreign) / 2 }))
		}
	}
	text.WriteString("\n| | rank correlation (Spearman), goal ≥ 0.95 | best on tuner | what it yields on Triton, of Triton's best, goal ≥ 0.97 |\n|---|---|---|---|\n")
	for _, concurrency := range rankingLoads() {
		same := slices.DeleteFunc(slices.Clone(standings), func(s standing) bool { return s.concurrency != concurrency })
		writeAgreement(&text, fmt.Sprintf("concurrency %d", concurrency), same)
	}
	writeAgreement(&text, "all", standings)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("cannot print the ranking: %w", err)
	}
	return nil
}

func writeAgreement(text *strings.Builder, name string, standings []standing) {
	tuner, triton := throughputs(standings)
	fmt.Fprintf(text, "| %s | **%.3f** | %v | **%.3f** |\n", name, spearman(tuner, triton), standings[best(tuner)].setting, kept(tuner, triton))
}

func throughputs(standings []standing) (tuner, triton []float64) {
	for _, s := range standings {
		tuner = append(tuner, s.throughput(ofTuner))
		triton = append(triton, s.throughput(ofTriton))
	}
	return tuner, triton
}
