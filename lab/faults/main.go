// Faults kills campaigns, and damages models, many times, and checks the remains.
//
// It has two parts. Part kills runs a short campaign and kills it with SIGKILL at random instants,
// again and again, until the campaign ends. After each kill it checks that no record was lost and
// that no process is left. At the end it checks that no file is left. Part models changes model
// files in random places. Each goes through `tuner init`, the conversions, the engine and one
// inference. It must be refused with its name, or give the result of ONNX Runtime alone. `tuner
// convert` itself gets every fiftieth.
//
// A fault is printed with the number that repeats it. The program ends with exit code 1 if there
// was one. It records its progress in a folder, from which a later run continues.
//
//	go -C lab run ./faults -what models -mutations 2000
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"tuner/lab/program"
)

// options are the flags.
type options struct {
	what      string
	kills     int
	mutations int
	models    string
	only      string // names of models, separated by commas
	seed      uint64
	tuner     string
	library   string
	notes     string // folder for the progress
}

// The parts.
const (
	all    = "all"
	kills  = "kills"
	models = "models"
)

// damaged are the models of part models, below the folder of the sample models: two small ones, a
// recurrent one, and two published ones.
var damaged = []string{"mlp", "cnn", "lstm", "published/ppocr_cls", "published/magika"}

func main() {
	program.Main("faults", program.Or(role, runChild, program.With(define, run)))
}

func define(f *program.Flags, o *options) {
	f.Choice(&o.what, "what", all, []string{all, kills, models}, "what to do")
	f.IntVar(&o.kills, "kills", 200, "how many kills")
	f.IntVar(&o.mutations, "mutations", 2000, "how many mutations of each model")
	f.Existing(&o.models, "models", "models", "folder of the sample models")
	f.StringVar(&o.only, "only", strings.Join(damaged, ","), "which models to damage")
	f.Uint64Var(&o.seed, "seed", 32, "of the random numbers: another seed is another set of faults")
	f.Path(&o.notes, "notes", "out/faults", "folder for what was done; remove it to start again")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
}

func run(ctx context.Context, o options, out, _ io.Writer) error {
	var failed []string
	parts := []struct {
		name string
		do   func(context.Context, options, io.Writer) (faults int, err error)
	}{{kills, killCampaigns}, {models, damageModels}}
	for _, p := range parts {
		if !slices.Contains([]string{all, p.name}, o.what) {
			continue
		}
		n, err := p.do(ctx, o, out)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if n > 0 {
			failed = append(failed, fmt.Sprintf("%d in part %s", n, p.name))
		}
	}
	if len(failed) > 0 {
		return errors.New("there were faults: " + strings.Join(failed, ", "))
	}
	return nil
}

// notesOf returns the file in which a part records its progress.
func (o options) notesOf(part string) string {
	return filepath.Join(o.notes, fmt.Sprintf("%s-%d.jsonl", part, o.seed))
}
