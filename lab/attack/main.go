// Attack drives a built tuner from outside, as hostile clients, web pages, models, files and machines do. Each attack
// of the corpus has a name, says what must be seen, and tells what was seen. The program starts its own servers on
// loopback, in folders of its own, and bounds what each of them may take.
//
// It ends with exit code 1 if an attack was not withstood. Where an attack needs what the machine lacks (a proxy, root,
// strace), it is left out, and the table says so. The program measures no speed.
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
	row  string // the finding that it stands for; lab/docs/attack.md says what it is
	name string
	want string // what must be seen
	// run attacks, and tells in a few words what was seen. An error says what was not withstood.
	run func(ctx context.Context, s *scene) (seen string, err error)
}

// attacks lists the whole corpus. The order is that of the table.
func attacks() []attack {
	var all []attack
	for _, some := range [][]attack{privacy(), connections(), memory(), framing(), pages(), queues(), requests(), loads(), models(), data(), journals(), faults()} {
		all = append(all, some...)
	}
	return all
}

// patience bounds each attack. The longest one waits for a client to be found idle, which takes ten seconds.
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

// try makes one attack in a folder of its own.
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
