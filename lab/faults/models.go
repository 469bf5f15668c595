package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tuner/internal/children"
	"tuner/lab/mutation"
)

const (
	// hangs is the time after which a mutation counts as endless. Each takes milliseconds; the
	// engine's own limit on a load is two minutes of ONNX Runtime's work.
	hangs = 3 * time.Minute
	// perChild is the number of mutations per child, which limits the sum of leaks.
	perChild = 250
	// allowed is the resident memory that a mutation may use beyond ten times its file. It includes
	// the child's own memory.
	allowed = 1 << 30
	// eachWhole is the number of mutations for each one that `tuner convert` gets. It starts
	// engines and takes seconds.
	eachWhole = 50
)

// outcome is the note of a mutation.
type outcome struct {
	Model string
	line
}

// damageModels is part models.
func damageModels(ctx context.Context, o options, out io.Writer) (faults int, err error) {
	notes, earlier, err := openNotes[outcome](o.notesOf(models))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, notes.close()) }()
	done := map[string]map[int]outcome{}
	for _, e := range earlier {
		if done[e.Model] == nil {
			done[e.Model] = map[int]outcome{}
		}
		done[e.Model][e.Number] = e
	}
	for _, name := range strings.Split(o.only, ",") {
		d := damaging{o: o, name: name, path: filepath.Join(o.models, name+".onnx"), done: done[name], notes: notes, out: out}
		if d.done == nil {
			d.done = map[int]outcome{}
		}
		if err := d.all(ctx); err != nil {
			return faults, err
		}
		faults += d.report()
	}
	return faults, nil
}

// damaging is the work on one model.
type damaging struct {
	o          options
	name, path string
	done       map[int]outcome
	notes      *notes[outcome]
	out        io.Writer
}

// all processes the remaining mutations.
func (d damaging) all(ctx context.Context) error {
	for n := 0; n < d.o.mutations; n++ {
		if _, isDone := d.done[n]; isDone {
			continue
		}
		if err := d.batch(ctx, n, min(d.o.mutations, n+perChild)); err != nil {
			return err
		}
		if _, isDone := d.done[n]; !isDone {
			return fmt.Errorf("%s: no child works on mutation %d", d.name, n)
		}
	}
	return d.whole(ctx)
}

// batch has a child process mutations. If it dies or hangs, its current mutation is at fault.
func (d damaging) batch(ctx context.Context, from, to int) error {
	for to > from+1 {
		if _, isDone := d.done[to-1]; !isDone {
			break
		}
		to-- // an earlier run has processed it
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := children.Command(ctx, self, role, "-model", d.path, "-seed", strconv.FormatUint(d.o.seed, 10), "-from", strconv.Itoa(from), "-to", strconv.Itoa(to))
	cmd.Env = append(os.Environ(), "TUNER_ORT_LIBRARY="+d.o.library)
	var words tail
	cmd.Stderr = &words
	in, child, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe: %w", err)
	}
	cmd.Stdout = child
	ended, err := children.Start(cmd)
	_ = child.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot start a child: %w", err), in.Close())
	}
	last, err := d.follow(in, func() { cancel(errHangs) })
	err = errors.Join(err, in.Close())
	end := <-ended
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, errHangs) {
		return cause // the user ended it
	} else if cause != nil {
		end = cause
	}
	if end == nil || err != nil {
		return err
	}
	if last == nil {
		return fmt.Errorf("a child ended before its first mutation: %w\n%s", end, words.String())
	}
	last.Verdict, last.Faults = "died", []string{fmt.Sprintf("%v: %s", end, words.String())}
	return d.note(*last)
}

var errHangs = fmt.Errorf("no end within %v", hangs)

// follow records a child's messages until it ends. It returns the mutation that was begun and has
// no verdict.
func (d damaging) follow(in io.Reader, hung func()) (begun *line, err error) {
	watchdog := time.AfterFunc(hangs, hung)
	defer watchdog.Stop()
	for lines := bufio.NewReader(in); ; {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return begun, nil // the child's end
		}
		watchdog.Reset(hangs)
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("cannot read what the child says: %w: %s", err, text)
		}
		if l.Verdict == "" {
			begun = &l
			continue
		}
		l.What, begun = begun.What, nil
		if info, err := os.Stat(d.path); err == nil && l.Peak > 10*info.Size()+allowed {
			l.Faults = append(l.Faults, fmt.Sprintf("%d MiB of memory", l.Peak>>20))
		}
		if err := d.note(l); err != nil {
			return nil, err
		}
	}
}

func (d damaging) note(l line) error {
	o := outcome{d.name, l}
	d.done[l.Number] = o
	return d.notes.add(o)
}

// whole gives some of the mutations to `tuner convert`. Their notes have negative numbers.
func (d damaging) whole(ctx context.Context) error {
	data, err := os.ReadFile(d.path)
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	for n := 0; n < d.o.mutations; n += eachWhole {
		if _, isDone := d.done[-1-n]; isDone {
			continue
		}
		l, err := d.convert(ctx, data, n)
		if err != nil {
			return err
		}
		if err := d.note(l); err != nil {
			return err
		}
	}
	return nil
}

// convert runs `tuner convert` on a mutation. Allowed exit codes are 0 or, with the name of the
// file, 1 or 2. All models in its output folder must be readable.
func (d damaging) convert(ctx context.Context, data []byte, n int) (l line, err error) {
	dir, err := os.MkdirTemp("", "faults-*")
	if err != nil {
		return l, fmt.Errorf("cannot make a folder to work in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := mutation.Of(data, d.o.seed, n)
	path := filepath.Join(dir, "damaged.onnx")
	if err := os.WriteFile(path, m.Data, 0o644); err != nil {
		return l, fmt.Errorf("cannot write the model: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	cmd := children.Command(limited, d.o.tuner, "convert", path, "--precision", "fp16,int8", "--rows", "4", "-o", filepath.Join(dir, "out"))
	cmd.Env = append(os.Environ(), "TUNER_ORT_LIBRARY="+d.o.library, "TUNER_CACHE="+filepath.Join(dir, "cache"), "TMPDIR="+dir)
	output, err := children.Output(cmd)
	if ctx.Err() != nil {
		return l, ctx.Err()
	}
	l = line{Number: -1 - n, What: m.What, Verdict: "convert"}
	switch code := cmd.ProcessState.ExitCode(); {
	case limited.Err() != nil:
		l.Faults = append(l.Faults, errHangs.Error())
	case code != 0 && code != 1 && code != 2 || bytes.Contains(output, []byte("goroutine ")):
		l.Faults = append(l.Faults, fmt.Sprintf("convert: %v: %s", err, output))
	case code == 2 && !bytes.Contains(output, []byte("damaged")):
		l.Faults = append(l.Faults, fmt.Sprintf("convert does not name the file: %s", output))
	}
	for _, pattern := range []string{"out/.*", "cache/precision/.new-*", "cache/precision/.serving-*", "tuner-*"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 { // no pattern is malformed
			l.Faults = append(l.Faults, fmt.Sprintf("convert leaves %v", left))
		}
	}
	return l, nil
}

// report prints the results of the model's mutations, and counts the faulty ones.
func (d damaging) report() (faults int) {
	verdicts, peak := map[string]int{}, int64(0)
	for n, o := range d.done {
		if n >= d.o.mutations || -1-n >= d.o.mutations {
			continue
		}
		verdicts[o.Verdict]++
		peak = max(peak, o.Peak)
		for _, f := range o.Faults {
			fmt.Fprintf(d.out, "FAULT %s %d (%s): %s\n", d.name, n, o.What, f)
		}
		if len(o.Faults) > 0 {
			faults++
		}
	}
	fmt.Fprintf(d.out, "%-24s %v, at most %d MiB; %d faults\n", d.name, verdicts, peak>>20, faults)
	return faults
}

// tail keeps the end of a text.
type tail struct{ text []byte }

// tailSize is the number of kept bytes at the end of a child's output.
const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if n := len(t.text) - tailSize; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.text) }
