// Attack drives a built tuner from outside like hostile clients, web pages, models, files and
// machines. Each attack of the corpus has a name, a required observation, and a report of the
// actual one. The program starts its own servers on loopback, in its own folders, and limits their
// resources.
//
// It ends with exit code 1 if an attack succeeded. If the machine lacks a tool for an attack (a
// proxy, root, strace), the attack is skipped, and the table says so. The program measures no
// speed.
//
//	go -C lab run ./attack -run 'smuggl|journal'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"tuner/lab/program"
)

// options are the flags.
type options struct {
	tuner, library, models, run string
	list                        bool
}

func main() { program.Main("attack", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.Existing(&o.models, "models", "models", "folder of the sample models (samplemodels: all-small)")
	f.StringVar(&o.run, "run", ".", "regular expression of the attacks that are run")
	f.BoolVar(&o.list, "list", false, "list the attacks as a table in Markdown, and run none")
	f.Check(func() error {
		_, err := regexp.Compile(o.run)
		return err
	})
}

// attack is one case of the corpus.
type attack struct {
	row  string // the finding behind it; lab/docs/attack.md describes it
	name string
	want string // required observation
	// run attacks, and returns the observation in a few words. An error describes a successful
	// attack.
	run func(ctx context.Context, s *scene) (seen string, err error)
}

// attacks lists the whole corpus in the order of the table.
func attacks() []attack {
	var all []attack
	for _, some := range [][]attack{privacy(), connections(), memory(), framing(), pages(), queues(), requests(), loads(), models(), data(), journals(), faults(), features(), ensembles(), sequences(), certificates()} {
		all = append(all, some...)
	}
	return all
}

// patience is the longest time of an attack. The longest attack waits until a client counts as
// idle, which takes ten seconds.
const patience = 90 * time.Second

// notRun is the error of an attack that this machine cannot make.
type notRun string

func (n notRun) Error() string { return string(n) }

func run(ctx context.Context, o options, out, messages io.Writer) error {
	if o.list {
		return list(out)
	}
	chosen := regexp.MustCompile(o.run)
	var results []result
	for _, a := range attacks() {
		if !chosen.MatchString(a.row+" "+a.name) || ctx.Err() != nil {
			continue
		}
		r := try(ctx, o, a)
		fmt.Fprintf(messages, "%-7s %5.1fs  %s %s: %s\n", r.state, r.took.Seconds(), a.row, a.name, r.seen)
		results = append(results, r)
	}
	return errors.Join(table(out, results), ctx.Err())
}

// try makes one attack in its own folder.
func try(ctx context.Context, o options, a attack) result {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := result{attack: a, state: passed}
	begin := time.Now()
	err := program.InFolder("", "attack", func(dir string) error {
		s := &scene{options: o, dir: dir}
		defer s.close()
		var err error
		r.seen, err = a.run(ctx, s)
		return errors.Join(err, s.faults())
	})
	r.took = time.Since(begin)
	var missing notRun
	switch {
	case errors.As(err, &missing):
		r.state, r.seen = skipped, missing.Error()
	case err != nil:
		r.state, r.seen = failed, err.Error()
	}
	return r
}
