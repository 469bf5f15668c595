package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tuner/lab/bench/sidebyside"
	"tuner/measure/stats"
)

//go:embed published.yaml
var publishedText string

// Sizes returns the shapes in a profile's syntax: "x: [3, 48, 320]".
func (m subject) Sizes() []string {
	var list []string
	for _, shape := range m.Shapes {
		name, sizes, _ := strings.Cut(shape, ":")
		list = append(list, fmt.Sprintf("%s: [%s]", name, strings.ReplaceAll(sizes, ",", ", ")))
	}
	return list
}

// contest is the outcome for one published model on one engine.
type contest struct {
	model           rival
	engine          string
	limit           time.Duration
	guided, grid    side
	ours, analyzers side  // on the real Triton alone: the guided answer again, beside Model Analyzer's
	analyzerFailed  error // reason why Model Analyzer has no answer
	failed          error // reason why there is no result at all
}

// side is an answer, with its pairs against another.
type side struct {
	answer
	figures []figures
}

// published runs campaigns on four published models, on both engines. It compares each with an
// exhaustive campaign, and on Triton with Model Analyzer. If one fails, the others still run, and
// the table has the reason. Rows without a failure are kept in files.
func (b *bench) published(ctx context.Context) error {
	var rows []string
	var failed error
	for _, p := range rivals() {
		var prepared error
		var limit time.Duration
		for _, engine := range []string{"tuner", "Triton"} {
			kept := filepath.Join(b.output, "published", p.Name, strings.ToLower(engine)+".row")
			if text, err := os.ReadFile(kept); err == nil { // of a run before an interruption
				rows = append(rows, string(text))
				continue
			}
			if limit == 0 && prepared == nil {
				limit, prepared = b.prepare(ctx, &p)
			}
			c := contest{model: p, engine: engine, limit: limit, failed: prepared}
			if prepared == nil {
				c.failed = b.compete(ctx, &c)
			}
			failed = errors.Join(failed, c.failed)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			rows = append(rows, c.row())
			fmt.Fprint(b.messages, c.row())
			if c.failed == nil {
				failed = errors.Join(failed, os.WriteFile(kept, []byte(c.row()), 0o644))
			}
		}
	}
	title := fmt.Sprintf("Published models: campaigns of %v beside exhaustive ones and Model Analyzer", b.budgetOr(5*time.Minute))
	var text strings.Builder
	fmt.Fprintf(&text, "\n### %s\n\n| model | engine | p99 within | guided: answer, infer/s and p99 in pairs | exhaustive: the same | guided over exhaustive | Model Analyzer: the same | guided over Model Analyzer |\n|---|---|---|---|---|---|---|---|\n", title)
	for _, row := range rows {
		text.WriteString(row)
	}
	return errors.Join(sidebyside.Print(b.out, text.String()), failed)
}

// prepare gets a model, its default configuration and its limit on p99.
func (b *bench) prepare(ctx context.Context, p *rival) (limit time.Duration, err error) {
	if err := p.made.Fetch(ctx, b.models, b.messages); err != nil {
		return 0, err
	}
	dir := filepath.Join(b.output, "published", p.Name)
	if err := b.program(ctx, nil, b.tuner, "init", filepath.Join(b.models, p.File), "-o", filepath.Join(dir, "init"), "--force"); err != nil {
		return 0, err
	}
	if p.config, err = os.ReadFile(filepath.Join(dir, "init", "config.pbtxt")); err != nil {
		return 0, fmt.Errorf("cannot read the default configuration: %w", err)
	}
	return b.limit(ctx, p.subject, dir)
}

// limitFactor times the latency of a single inference is the limit on p99.
const limitFactor = 4

// limit returns the limit on p99 in whole milliseconds, since Model Analyzer takes no others. It
// stores the limit, because campaigns resume only under the same one.
func (b *bench) limit(ctx context.Context, m subject, dir string) (time.Duration, error) {
	kept := filepath.Join(dir, "limit")
	if text, err := os.ReadFile(kept); err == nil {
		return time.ParseDuration(string(text))
	}
	single := answer{by: "a single request", model: m, repository: filepath.Join(dir, "default"), concurrency: 1}
	if err := b.place(m, single.repository, m.config); err != nil {
		return 0, err
	}
	f, err := b.measure(ctx, b.onTuner, single)
	if err != nil {
		return 0, err
	}
	limit := wholeLimit(f.throughput)
	return limit, os.WriteFile(kept, []byte(limit.String()), 0o644)
}

// wholeLimit returns the limit of a model from its throughput with single requests, one after the
// other.
func wholeLimit(throughput float64) time.Duration {
	return time.Duration(math.Ceil(1e3*limitFactor/throughput)) * time.Millisecond
}

// compete runs the campaigns of a model on an engine, and measures the answers.
func (b *bench) compete(ctx context.Context, c *contest) (err error) {
	serve, runner := b.onTuner, ""
	if c.engine == "Triton" {
		serve, runner = b.onTriton, b.peers.Triton
	}
	of := func(strategy string, budget time.Duration) campaign {
		name := filepath.Join("published", c.model.Name, strings.ToLower(c.engine)+"-"+strategy)
		return campaign{Model: c.model.subject, Name: name, Strategy: strategy, Budget: budget, Seed: 1, Limit: c.limit, Runner: runner}
	}
	if c.guided.answer, err = b.tune(ctx, of("guided", b.budgetOr(5*time.Minute))); err != nil && !errors.Is(err, errNone) {
		return err
	}
	if c.grid.answer, err = b.tune(ctx, of("grid", 0)); err != nil && !errors.Is(err, errNone) {
		return err
	}
	c.ours.answer = c.guided.answer
	if err := b.meet(ctx, serve, &c.guided, &c.grid); err != nil || runner == "" {
		return err
	}
	c.analyzers.answer, c.analyzerFailed = b.quick(ctx, c.model.subject, c.limit, filepath.Join(b.output, "published", c.model.Name, "analyzer"))
	if c.analyzerFailed == nil {
		c.analyzerFailed = b.meet(ctx, serve, &c.ours, &c.analyzers)
	}
	return nil
}

// meet measures two answers in pairs, if there are two.
func (b *bench) meet(ctx context.Context, serve start, one, other *side) (err error) {
	if one.repository == "" || other.repository == "" {
		return nil
	}
	one.figures, other.figures, err = b.pairs(ctx, serve, one.answer, other.answer)
	return err
}

// row returns a contest's line of the table.
func (c contest) row() string {
	begin := fmt.Sprintf("| %s | %s | %v |", c.model.made.What, c.engine, c.limit)
	if c.failed != nil {
		return fmt.Sprintf("%s failed: %s | | | | |\n", begin, cell(c.failed))
	}
	other := "| |"
	switch {
	case c.analyzerFailed != nil:
		other = fmt.Sprintf("none: %s | |", cell(c.analyzerFailed))
	case c.analyzers.repository != "":
		other = fmt.Sprintf("%s | %s |", c.analyzers, over(c.ours, c.analyzers))
	}
	return fmt.Sprintf("%s %s | %s | %s | %s\n", begin, c.guided, c.grid, over(c.guided, c.grid), other)
}

// String prints an answer and the medians of its pairs. Without pairs it prints the figures of the
// answer's own report.
func (s side) String() string {
	switch {
	case s.repository == "":
		return "none"
	case s.figures == nil:
		return fmt.Sprintf("%s at concurrency %d: %.0f, %.1f ms by its own report", s.text, s.concurrency, s.throughput, 1e3*s.p99)
	}
	text := s.text
	if s.beyond {
		text += ", beyond the limit by its own report,"
	}
	return fmt.Sprintf("%s at concurrency %d: %.0f, %.1f ms", text, s.concurrency, stats.Median(throughputs(s.figures)), 1e3*stats.Median(p99s(s.figures)))
}

// over returns the ratio of two sides' throughputs, if both were measured.
func over(one, other side) string {
	if one.figures == nil || other.figures == nil {
		return ""
	}
	ratio := stats.PairedRatio(throughputs(one.figures), throughputs(other.figures))
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", ratio.Value, ratio.Lo, ratio.Hi)
}

// cell prints an error in a cell of a table: its last lines, which have the cause, as one line.
func cell(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return strings.ReplaceAll(strings.Join(lines[max(0, len(lines)-3):], " "), "|", "/")
}
