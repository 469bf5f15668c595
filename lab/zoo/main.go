// Zoo runs published models through tuner: from a file to a repository that a real Triton serves. It
// fetches each model, runs `tuner run` on it with a short budget, and loads the written repository
// in tuner's engine and in a real Triton. Both answer the same requests, and the outputs are
// compared. A refusal counts only if it comes at once and says what to do.
//
// Each model leaves a file with its result, so an interrupted run resumes where it stopped.
// The table of all results is a part of lab/docs/zoo.md.
//
//	go -C lab run ./zoo -models models -run silero
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"tuner/lab/peers"
	"tuner/lab/program"
	"tuner/lab/published"
)

// options are the flags.
type options struct {
	models string
	out    string
	tuner  string
	names  string
	page   string
	budget time.Duration
	again  bool
}

func main() { program.Main("zoo", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Path(&o.models, "models", "models", "folder of the models")
	f.Path(&o.out, "o", "out/zoo", "folder of the results")
	f.Tuner(&o.tuner)
	f.StringVar(&o.names, "run", ".", "regular expression of the models' names")
	f.Path(&o.page, "page", "", "page whose table is replaced; \"\": none")
	f.DurationVar(&o.budget, "budget", 20*time.Second, "budget of each search")
	f.BoolVar(&o.again, "again", false, "run models again that have a result")
	f.Check(func() error {
		if _, err := regexp.Compile(o.names); err != nil {
			return fmt.Errorf("-run: %w", err)
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	servers, err := peers.Find()
	if err != nil {
		return err
	}
	k := keeper{options: o, peers: servers, messages: messages}
	wanted := regexp.MustCompile(o.names) // checked by define
	var results []Result
	for _, e := range published.Zoo() {
		known, found, err := readResult(k.resultPath(e))
		if err != nil {
			return err
		}
		if wanted.MatchString(e.Name) && (!found || o.again) {
			if known, err = k.exhibit(ctx, e); err != nil {
				return errors.Join(err, ctx.Err())
			}
			found = true
			fmt.Fprintf(messages, "%s: %s\n", known.Name, known.Verdict())
		}
		if found {
			results = append(results, known)
		}
	}
	if o.page != "" {
		if err := replaceTable(o.page, results); err != nil {
			return err
		}
	}
	return writeTable(out, results)
}

// resultPath returns the file of a model's result.
func (k keeper) resultPath(e published.Exhibit) string {
	return filepath.Join(k.options.out, e.Name+".json")
}
