package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/lab/bench/sidebyside"
	"tuner/measure/stats"
)

// trust is a part of the benchmark. It checks whether the answers of several campaigns hold on the
// machine in its current state.
type trust struct {
	name      string // of the part, and of its campaigns
	campaigns int
	budget    time.Duration // per campaign
	limit     time.Duration
	neighbour bool // computes during the campaigns
}

// trustedRatio is the least share of the best answer's throughput that every other answer must
// reach.
const trustedRatio = 0.97

// looserLimit is the limit on p99 in the parts of this file.
const looserLimit = 50 * time.Millisecond

func (b *bench) disturbed(ctx context.Context) error {
	return b.trusted(ctx, trust{name: "neighbour", campaigns: b.repetitions, budget: b.budgetOr(3 * time.Minute), limit: looserLimit, neighbour: true})
}

func (b *bench) undisturbed(ctx context.Context) error {
	return b.trusted(ctx, trust{name: "quiet", campaigns: b.repetitions, budget: b.budgetOr(3 * time.Minute), limit: looserLimit})
}

// short runs two campaigns with less time than they need. If their answers differ, both should
// report that they are unfinished.
func (b *bench) short(ctx context.Context) error {
	return b.trusted(ctx, trust{name: "short", campaigns: 2, budget: b.budgetOr(45 * time.Second), limit: looserLimit})
}

// trusted runs several campaigns. It measures each distinct answer in turn with the most promising
// one.
func (b *bench) trusted(ctx context.Context, t trust) (err error) {
	var found []finding
	all := func() error {
		if found, err = b.findings(ctx, t); err == nil {
			err = b.judge(ctx, found)
		}
		return err
	}
	machine := "without a neighbour"
	if t.neighbour {
		share, err := b.besides(1, all)
		if err != nil {
			return err
		}
		machine = fmt.Sprintf("beside a neighbour that took %.0f %% of one core in bursts", 100*share)
	} else if err := all(); err != nil {
		return err
	}
	title := fmt.Sprintf("MiniLM, p99 within %v, %s: %d campaigns of %v", t.limit, machine, t.campaigns, t.budget)
	return sidebyside.Print(b.out, trustTable(title, t.limit, found))
}

// finding is an answer with the campaigns that gave it. Its pairs compare it with the most
// promising answer.
type finding struct {
	answer
	seeds      []string
	states     []string  // of each of their answers
	own, other []figures // empty without an answer
}

// findings runs the campaigns. Those that recommend the same configuration at the same load are one
// finding. The first finding is the most promising one.
func (b *bench) findings(ctx context.Context, t trust) ([]finding, error) {
	var found []finding
	for i := range t.campaigns {
		c := campaign{Model: minilm(), Name: fmt.Sprintf("%s-%d", t.name, i+1), Strategy: "guided", Budget: t.budget, Seed: i + 1, Limit: t.limit}
		a, err := b.tune(ctx, c)
		if err != nil && !errors.Is(err, errNone) {
			return nil, err
		}
		state, err := readState(b.folder(c))
		if err != nil {
			return nil, err
		}
		seed := fmt.Sprint(c.Seed)
		if at := slices.IndexFunc(found, func(f finding) bool { return f.key == a.key && f.concurrency == a.concurrency }); at >= 0 {
			found[at].seeds, found[at].states = append(found[at].seeds, seed), append(found[at].states, state)
			continue
		}
		found = append(found, finding{answer: a, seeds: []string{seed}, states: []string{state}})
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(b.throughput, a.throughput) })
	return found, nil
}

// readState reads the state of a campaign's answer from its machine-readable report: "proven",
// "unfinished" and so on.
func readState(folder string) (string, error) {
	var report struct{ Answer struct{ State string } }
	text, err := os.ReadFile(filepath.Join(folder, "result.json"))
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the state of an answer: %w", err)
	}
	return report.Answer.State, nil
}

// judge measures the findings in turn with the first. A single finding is measured in pairs with
// itself, for its p99; its ratio is 1.
func (b *bench) judge(ctx context.Context, found []finding) error {
	var answers []*finding
	for i := range found {
		if found[i].repository != "" {
			answers = append(answers, &found[i])
		}
	}
	for i, f := range answers {
		if i == 0 && len(answers) > 1 {
			continue
		}
		own, other, err := b.pairs(ctx, b.onTuner, f.answer, answers[0].answer)
		if err != nil {
			return err
		}
		f.own, f.other = own, other
		answers[0].own = append(answers[0].own, other...)
		answers[0].other = answers[0].own
	}
	return nil
}

// trustTable prints the findings. The best is the one with the best measurement. The most promising
// one may be another.
func trustTable(title string, limit time.Duration, found []finding) string {
	best := 1.0
	for _, f := range found {
		if f.own != nil {
			best = max(best, f.ratio().Value)
		}
	}
	yes := map[bool]string{true: "yes", false: "**no**"}
	var text strings.Builder
	fmt.Fprintf(&text, "\n### %s\n\n| seed | answer | state | infer/s and p99, its own report | in pairs, medians | throughput of the first's | p99 within %v | at least %.2f of the best measured | foreign CPU |\n|---|---|---|---|---|---|---|---|---|\n", title, limit, trustedRatio)
	for _, f := range found {
		seeds, states := strings.Join(f.seeds, ", "), strings.Join(f.states, ", ")
		if f.own == nil {
			fmt.Fprintf(&text, "| %s | none | %s | | | | **no** | **no** | |\n", seeds, states)
			continue
		}
		p99, ratio := stats.Median(p99s(f.own)), f.ratio()
		fmt.Fprintf(&text, "| %s | %s at concurrency %d | %s | %.0f, %.1f ms | %.0f, %.1f ms | **%.2f** (%.2f–%.2f) | %s | %s (%.2f) | %.0f %% |\n",
			seeds, f.text, f.concurrency, states, f.throughput, 1e3*f.p99, stats.Median(throughputs(f.own)), 1e3*p99, ratio.Value, ratio.Lo, ratio.Hi,
			yes[p99 <= limit.Seconds()], yes[ratio.Value/best >= trustedRatio], ratio.Value/best, 100*stats.Median(foreigns(f.own)))
	}
	return text.String()
}

// ratio returns the ratio of its throughput to that of the most promising finding.
func (f finding) ratio() stats.Estimate {
	return stats.PairedRatio(throughputs(f.own), throughputs(f.other))
}
