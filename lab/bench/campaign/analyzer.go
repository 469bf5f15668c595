package main

import (
	"context"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"tuner/lab/peers"
)

//go:embed analyzer.yaml
var analyzerText string

//go:embed minilm.pbtxt
var minilmConfig []byte

// analyzer compares a campaign with Model Analyzer's quick search. Both search on the same real
// Triton; the campaign confirms its finalists there. Both are timed as programs, from their start
// to the answer. The campaign has Model Analyzer's own time plus a minute.
func (b *bench) analyzer(ctx context.Context) error {
	dir := filepath.Join(b.output, "analyzer")
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove an earlier search: %w", err)
	}
	theirs, err := b.quick(ctx, minilm(), usualLimit, dir)
	if err != nil {
		return err
	}
	c := campaign{Model: minilm(), Name: "triton", Strategy: "guided", Seed: 1, Limit: usualLimit, Server: b.peers.Triton}
	preparation, err := b.preparation(ctx, c)
	if err != nil {
		return err
	}
	limit := theirs.wall + time.Minute
	if c.Budget, err = budgetWithin(limit, preparation); err != nil {
		return err
	}
	ours, err := b.whole(ctx, c)
	if err != nil {
		return err
	}
	own, other, err := b.pairs(ctx, b.onTriton, ours, theirs)
	if err != nil {
		return err
	}
	return table(b.out, "MiniLM, p99 within 30 ms, on a real Triton: a campaign beside Model Analyzer's quick search", theirs.by,
		[]string{row(theirs, other, other, ""), row(ours, own, other, fmt.Sprintf("≥ 2.0, p99 ≤ 30 ms, within %v", limit.Round(time.Second)))})
}

// quick runs Model Analyzer's quick search in a folder, or takes the existing results. Their first
// configuration is the best.
func (b *bench) quick(ctx context.Context, m subject, limit time.Duration, dir string) (answer, error) {
	a := answer{by: "Model Analyzer", model: m, repository: filepath.Join(dir, "chosen")}
	results := filepath.Join(dir, "results", "metrics-model-inference.csv")
	if _, err := os.Stat(results); err != nil {
		profile, err := b.analyzerFiles(m, limit, dir)
		if err != nil {
			return answer{}, err
		}
		fmt.Fprintf(b.messages, "Model Analyzer, quick search, %s\n", m.Name)
		begin := b.now()
		if err := b.program(ctx, nil, b.peers.ModelAnalyzer, "profile", "-f", profile); err != nil {
			return answer{}, err
		}
		a.wall = b.now().Sub(begin)
	}
	variant, err := a.read(results)
	if err != nil {
		return answer{}, err
	}
	config, err := os.ReadFile(filepath.Join(dir, "variants", variant, "config.pbtxt"))
	if err != nil {
		return answer{}, fmt.Errorf("cannot read Model Analyzer's choice: %w", err)
	}
	return a, b.place(m, a.repository, config)
}

// read takes the best configuration from the table of results, and returns the name of its folder.
// The table is sorted by merit, with those within the constraints first.
func (a *answer) read(path string) (variant string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read Model Analyzer's results: %w", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		return "", fmt.Errorf("cannot read Model Analyzer's results: %d rows in %s, %v", len(rows), path, err)
	}
	a.measured = len(rows) - 1
	value := func(title string) (text string) {
		if i := slices.Index(rows[0], title); i >= 0 {
			text = rows[1][i]
		}
		return text
	}
	number := func(title string) float64 {
		v, parse := strconv.ParseFloat(value(title), 64)
		if parse != nil && err == nil {
			err = fmt.Errorf("cannot read %q in %s: %w", title, path, parse)
		}
		return v
	}
	a.concurrency, a.throughput, a.p99 = int(number("Concurrency")), number("Throughput (infer/sec)"), number("p99 Latency (ms)")/1e3
	a.text = fmt.Sprintf("%s instances, batch %s", value("Instance Group"), value("Max Batch Size"))
	a.beyond = value("Satisfies Constraints") == "No"
	return value("Model Config Path"), err
}

// analyzerFiles writes the initial repository of the search, and its profile.
func (b *bench) analyzerFiles(m subject, limit time.Duration, dir string) (profile string, err error) {
	if err := os.RemoveAll(dir); err != nil { // remains of an interrupted search
		return "", fmt.Errorf("cannot remove an earlier search: %w", err)
	}
	if err := b.place(m, filepath.Join(dir, "repository"), m.config); err != nil {
		return "", err
	}
	ports, err := peers.FreePorts(3)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	values := map[string]any{
		"Dir": dir, "Triton": b.peers.Triton, "Analyzer": b.peers.PerfAnalyzer, "HTTP": ports[0], "GRPC": ports[1], "Metrics": ports[2],
		"Model": m, "Limit": limit.Milliseconds(),
	}
	if err := template.Must(template.New("analyzer.yaml").Parse(analyzerText)).Execute(&text, values); err != nil {
		return "", fmt.Errorf("cannot make Model Analyzer's profile: %w", err)
	}
	profile = filepath.Join(dir, "profile.yaml")
	return profile, os.WriteFile(profile, []byte(text.String()), 0o644)
}

// place makes a repository with a model in a configuration. It replaces an earlier one.
func (b *bench) place(m subject, repository string, config []byte) error {
	folder := filepath.Join(repository, m.Name)
	err := errors.Join(os.RemoveAll(repository), os.MkdirAll(filepath.Join(folder, "1"), 0o755))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "config.pbtxt"), config, 0o644)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(filepath.Join(b.models, m.File))
	}
	if err == nil {
		// err: tuner serve does not follow links out of a repository
		err = os.WriteFile(filepath.Join(folder, "1", "model.onnx"), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot make a repository: %w", err)
	}
	return nil
}
