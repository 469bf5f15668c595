// Olive puts Microsoft's Olive beside `tuner ortsweep`: both look for the best session settings of the same models on the same
// machine, one after the other, and then a judge that belongs to neither measures both answers and the default in turn.
//
// Olive is asked in two ways: as the command line does it (`olive tune-session-params`), and with a workflow file that makes
// the most of its passes: int8 dynamic and static with the recipe that tuner has, then OrtSessionParamsTuning over threads,
// execution mode and graph optimization, every point of them. Only the second can have rows that the model accepts.
//
// It needs what scripts/peers.sh (the judge's Python) and scripts/olive.sh install. It prints Markdown and judges nothing.
//
//	go run ./internal/bench/olive -models models -budget 60s
//	go run ./internal/bench/olive -budget 20s mlp cnn
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tuner/internal/bench/program"
)

// options are the flags.
type options struct {
	models    string
	names     []string
	tuner     string
	library   string
	sentences string
	budget    time.Duration
	rounds    int
	window    time.Duration
}

func main() { program.Main("olive", run) }

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("olive", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(&o.models, "models", "models", "folder of the models")
	flags.StringVar(&o.tuner, "tuner", "bin/tuner", "the tuner program")
	flags.StringVar(&o.library, "ort-library", "cpu", "ONNX Runtime for tuner: the build that Olive and the judge have too")
	flags.StringVar(&o.sentences, "sentences", "testdata/accuracy/minilm_sentences.npz", "rows for the model minilm; other models get random ones")
	flags.DurationVar(&o.budget, "budget", time.Minute, "time of a sweep; Olive measures all points of its workflow")
	flags.IntVar(&o.rounds, "rounds", 10, "rounds of the judge")
	flags.DurationVar(&o.window, "window", 300*time.Millisecond, "window of each setting in a round")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if o.names = flags.Args(); len(o.names) == 0 {
		o.names = []string{"minilm", "mlp", "cnn", "resnet", "mobilenet", "lstm", "bertsquad"}
	}
	if o.budget < time.Second || o.rounds < 3 || o.window <= 0 {
		return options{}, errors.New("-budget must be a second at least, -rounds 3, -window above zero")
	}
	return o, nil
}

// comparison is what came out for one model.
type comparison struct {
	name    string
	answers []answer
	judged  verdict
}

// answer is what one program says about a model.
type answer struct {
	by       string
	elapsed  time.Duration
	exit     int
	measured int     // settings
	latency  float64 // seconds, what the program itself says of its answer; 0: it says nothing
	tried    []string
	message  string   // what it said when there is no setting
	setting  *setting // nil: it has no answer
}

// run asks and judges model by model, so that what is compared is measured close together.
func run(ctx context.Context, args []string, out, messages io.Writer) (err error) {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	peers, err := find()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tuner-bench-olive-*")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the results: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var all []comparison
	for _, name := range o.names {
		c, err := compare(ctx, o, peers, filepath.Join(dir, name), name, messages)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), report(out, all)) // what was measured before took minutes
		}
		all = append(all, c)
	}
	return report(out, all)
}

// compare asks all programs about one model, and has their answers judged.
func compare(ctx context.Context, o options, p programs, dir, name string, messages io.Writer) (comparison, error) {
	c := comparison{name: name}
	s, err := prepare(o, dir, name)
	if err != nil {
		return c, err
	}
	for _, ask := range []func() (answer, error){
		func() (answer, error) { return commandLine(ctx, p, s) },
		func() (answer, error) { return runWorkflow(ctx, p, s) },
		func() (answer, error) { return sweep(ctx, o, s) },
	} {
		a, err := ask()
		if err != nil {
			return c, err
		}
		fmt.Fprintf(messages, "%s: %s: %.0f s, %s\n", name, a.by, a.elapsed.Seconds(), a.text())
		c.answers = append(c.answers, a)
	}
	c.judged, err = judge(ctx, o, p, s, c.answers)
	return c, err
}

// text is the answer in words.
func (a answer) text() string {
	if a.setting == nil {
		return strings.TrimRight("no answer: "+a.message, ": ")
	}
	return a.setting.String()
}
