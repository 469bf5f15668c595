package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tuner/lab/bench/sidebyside"
	"tuner/measure/stats"
)

// stage compares what the search has brought the ensemble with what it has brought its bottleneck alone. Both are
// measured on the first repository and on the answer's, in turn. The answer's export is verified at the end.
func (b *bench) stage(ctx context.Context) error {
	own, err := findExtensions(ctx)
	if err != nil {
		return err
	}
	found, err := b.read(short)
	if err != nil {
		return err
	}
	models := []string{ensemble, found.bottleneck()}
	if models[1] != encoder && models[1] != "head" {
		return fmt.Errorf("the bottleneck is %q: this part knows inputs of the encoder and the head alone", models[1])
	}
	figures, err := b.inTurn(ctx, own, [2]string{b.repository(), filepath.Join(b.folder(short), "repository")}, models...)
	if err != nil {
		return err
	}
	if err := sidebyside.Print(b.out, factors(b.server, models, figures)); err != nil {
		return err
	}
	return b.verify(ctx, own)
}

// factors is the table of what the search has brought the ensemble and its bottleneck. figures are by repository and
// model.
func factors(server string, models []string, figures [2][][]float64) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n### The ensemble and its bottleneck alone on %s\n\n| model | at first, infer/s | tuned, infer/s | factor |\n|---|---|---|---|\n", server)
	var brought [2][]float64
	for m, name := range models {
		before, after := figures[0][m], figures[1][m]
		for i := range before {
			brought[m] = append(brought[m], after[i]/before[i])
		}
		factor := stats.PairedRatio(after, before)
		fmt.Fprintf(&t, "| %s | %.1f | %.1f | **%.3f** (%.3f–%.3f) |\n", name, stats.Median(before), stats.Median(after), factor.Value, factor.Lo, factor.Hi)
	}
	ratio := stats.PairedRatio(brought[0], brought[1])
	fmt.Fprintf(&t, "\nFactor of %s over that of %s alone: **%.3f** (%.3f–%.3f).\n", models[0], models[1], ratio.Value, ratio.Lo, ratio.Hi)
	return t.String()
}

// verify exports the answer, and prints the checks of `tuner export verify`.
func (b *bench) verify(ctx context.Context, own extensions) error {
	deploy := filepath.Join(b.output, "deploy")
	if err := os.RemoveAll(deploy); err != nil {
		return fmt.Errorf("cannot remove an earlier export: %w", err)
	}
	if _, err := b.program(ctx, own, "export", "triton", "--input", b.folder(short), "-o", deploy); err != nil {
		return err
	}
	carried := filepath.Join(deploy, "model_repository", "tokenizer", "operators", filepath.Base(own.library))
	text, err := b.program(ctx, own, "export", "verify", deploy, "--op-library", carried, "--ort-library", b.peers.ORTLibrary)
	return errors.Join(err, sidebyside.Print(b.out, "\n`tuner export verify`:\n\n"+text))
}
