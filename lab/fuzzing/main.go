// Fuzzing runs the fuzz targets of the repository in turn, always the one that has run least, until
// each has run for half an hour. A ledger (lab/docs/fuzzing.csv) keeps the time of each target, so
// that the work of many hours resumes where it stopped, on any machine.
//
//	go -C lab run ./fuzzing -for 1h
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
	"time"

	"tuner/lab/program"
)

// options are the flags.
type options struct {
	ledger  string
	names   string
	time    time.Duration // of this run
	turn    time.Duration // of a target at once
	enough  time.Duration // of a target in all
	targets int           // that run side by side, one worker each
}

func main() { program.Main("fuzzing", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Path(&o.ledger, "ledger", "lab/docs/fuzzing.csv", "file with the time of each target; \"\": none")
	f.StringVar(&o.names, "run", ".", "regular expression of the targets, as FOLDER.NAME")
	f.DurationVar(&o.time, "for", time.Hour, "after this time, no turn begins")
	f.DurationVar(&o.turn, "turn", 5*time.Minute, "time of a target's turn")
	f.DurationVar(&o.enough, "enough", 30*time.Minute, "time after which a target is left alone")
	f.IntVar(&o.targets, "targets", 2, "targets that run side by side, one process each")
	f.Check(func() error {
		if _, err := regexp.Compile(o.names); err != nil {
			return fmt.Errorf("-run: %w", err)
		}
		if o.time <= 0 || o.turn < time.Second || o.enough <= 0 || o.targets < 1 {
			return errors.New("-for, -enough and -targets must be above zero, -turn at least 1s")
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	targets, err := find(".")
	if err != nil {
		return err
	}
	wanted := regexp.MustCompile(o.names) // checked by define
	targets = slices.DeleteFunc(targets, func(t target) bool { return !wanted.MatchString(t.name()) })
	if len(targets) == 0 {
		return fmt.Errorf("no fuzz target matches -run %q", o.names)
	}
	had := map[string]turns{}
	if o.ledger != "" {
		if had, err = readLedger(o.ledger); err != nil {
			return err
		}
	}
	q := &queue{targets: targets, had: had, running: map[target]bool{}, enough: o.enough}
	until := time.Now().Add(o.time)
	errs := make([]error, o.targets)
	var workers sync.WaitGroup
	for i := range o.targets {
		workers.Go(func() {
			for ctx.Err() == nil && time.Now().Before(until) {
				t, ok := q.next()
				if !ok {
					return
				}
				got, err := t.fuzz(ctx, o.turn)
				if err := q.add(t, got, o.ledger); err != nil {
					errs[i] = errors.Join(errs[i], err)
					return
				}
				fmt.Fprintln(messages, t.name(), got)
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	workers.Wait()
	fmt.Fprintln(out, q.sum())
	return errors.Join(errs...)
}

// queue gives out targets to workers. It is safe for concurrent use after it was made.
type queue struct {
	targets []target
	enough  time.Duration

	mu      sync.Mutex
	had     map[string]turns
	running map[target]bool
}

// next returns the target that has run least, among those that neither run nor have had enough.
func (q *queue) next() (t target, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.targets {
		had := q.had[c.name()].Time
		if !q.running[c] && had < q.enough && (!ok || had < q.had[t.name()].Time) {
			t, ok = c, true
		}
	}
	if ok {
		q.running[t] = true
	}
	return t, ok
}

// add notes a turn that has ended, and writes the ledger if there is one.
func (q *queue) add(t target, got turns, ledger string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if got.Failed == 0 {
		delete(q.running, t) // one that fails would only fail again
	}
	q.had[t.name()] = q.had[t.name()].plus(got)
	if ledger == "" {
		return nil
	}
	return writeLedger(ledger, q.had)
}

// sum returns one line on all targets.
func (q *queue) sum() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	done, all := 0, turns{}
	for _, t := range q.targets {
		had := q.had[t.name()]
		all = all.plus(had)
		if had.Time >= q.enough {
			done++
		}
	}
	return fmt.Sprintf("%d of %d targets have had %s; all together: %s", done, len(q.targets), q.enough, all)
}
