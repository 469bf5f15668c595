package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tuner/internal/hostinfo"
	"tuner/lab/bench/sidebyside"
	"tuner/measure/stats"
)

// rankingLoads returns the requests in flight. With few, delays and instances show in the latency;
// with many, batches do.
func rankingLoads() []int { return []int{4, 32} }

// rankingSettings returns 20 configurations that a search would try on a machine with that many
// cores, including poor ones.
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

// standing is a setting under a load, with the figures of both servers in all passes.
type standing struct {
	setting     setting
	concurrency int
	rounds      []round
}

// throughput returns the median of a side's rounds.
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

// rankingRounds is the number of consecutive rounds of a setting in each pass.
const rankingRounds = 2

// ranking compares the order of the same configurations on both servers. Each pass visits them in
// its own order, with fresh servers, so that a drift of the machine favours none. A configuration
// that cannot be measured is left out, and becomes an error at the end.
func (b *bench) ranking(ctx context.Context) error {
	o := b.or(3, 1500*time.Millisecond)
	settings := rankingSettings(hostinfo.Read(ctx).UsableCores())
	loads := len(rankingLoads())
	var standings []standing
	for _, s := range settings {
		for _, concurrency := range rankingLoads() {
			standings = append(standings, standing{setting: s, concurrency: concurrency})
		}
	}
	order := rand.New(rand.NewPCG(1, 1))
	var failed error
	for pass := range o.rounds {
		for n, i := range order.Perm(len(settings)) {
			if ctx.Err() != nil {
				break
			}
			fmt.Fprintf(b.messages, "ranking: pass %d, configuration %d of %d: %v\n", pass+1, n+1, len(settings), settings[i])
			if err := b.rank(ctx, settings[i], o.window, standings[i*loads:(i+1)*loads]); err != nil && ctx.Err() == nil {
				failed = errors.Join(failed, fmt.Errorf("%v: %w", settings[i], err))
			}
		}
	}
	measured := slices.DeleteFunc(standings, func(s standing) bool { return len(s.rounds) == 0 })
	if len(measured) > 0 {
		failed = errors.Join(failed, writeRanking(b.out, measured))
	}
	return errors.Join(context.Cause(ctx), failed)
}

// rank measures a setting under every load, on both servers in turn, and adds the rounds to its
// standings.
func (b *bench) rank(ctx context.Context, s setting, window time.Duration, into []standing) (err error) {
	c, err := b.serve(ctx, fileFP32, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	for i := range into {
		rounds, err := c.alternate(ctx, rankingRounds, closedLoop(minilmRequest(), into[i].concurrency, window))
		if err != nil {
			return fmt.Errorf("concurrency %d: %w", into[i].concurrency, err)
		}
		into[i].rounds = append(into[i].rounds, rounds...)
	}
	return nil
}

// writeRanking prints the standings, with their ranks among those of the same load, and the
// agreement of the ranks. Every load has the same standings.
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
	text.WriteString("\n| | configurations | rank correlation (Spearman), goal ≥ 0.95 | best on tuner | what it yields on Triton, of Triton's best, goal ≥ 0.97 |\n|---|---|---|---|---|\n")
	for _, concurrency := range rankingLoads() {
		same := slices.DeleteFunc(slices.Clone(standings), func(s standing) bool { return s.concurrency != concurrency })
		writeAgreement(&text, fmt.Sprintf("concurrency %d", concurrency), same)
	}
	writeAgreement(&text, "both", standings)
	return sidebyside.Print(out, text.String())
}

func writeAgreement(text *strings.Builder, name string, standings []standing) {
	tuner, triton := throughputs(standings)
	fmt.Fprintf(text, "| %s | %d | **%.3f** | %v | **%.3f** |\n", name, len(standings), spearman(tuner, triton), standings[best(tuner)].setting, kept(tuner, triton))
}

func throughputs(standings []standing) (tuner, triton []float64) {
	for _, s := range standings {
		tuner = append(tuner, s.throughput(ofTuner))
		triton = append(triton, s.throughput(ofTriton))
	}
	return tuner, triton
}
