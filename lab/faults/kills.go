package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tuner/lab/process"
	"tuner/lab/program"
	"tuner/profile/journal"
	"tuner/search"
)

// trials is the budget of the campaigns, which take a few seconds.
const trials = 6

// orphans is the longest life of processes after the kill. The kernel ends them at once, but the
// machine is busy.
const orphans = 10 * time.Second

// killed is the note of a campaign: the number of kills, and the faults.
type killed struct {
	Kills  int
	After  []time.Duration // after each start
	Faults []string
}

// killCampaigns is part kills.
func killCampaigns(ctx context.Context, o options, out io.Writer) (faults int, err error) {
	notes, earlier, err := openNotes[killed](o.notesOf(kills))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, notes.close()) }()
	n, campaigns := 0, 0
	add := func(k killed) {
		n, campaigns, faults = n+k.Kills, campaigns+1, faults+len(k.Faults)
		for _, f := range k.Faults {
			fmt.Fprintf(out, "FAULT campaign %d, killed after %v: %s\n", campaigns-1, k.After, f)
		}
	}
	for _, k := range earlier {
		add(k)
	}
	whole := time.Duration(0) // a campaign without kills
	for n < o.kills {
		var k killed
		err := program.InFolder("", "faults", func(dir string) error {
			c := campaign{o: o, dir: dir, mark: fmt.Sprintf("TUNER_FAULTS=%d.%d", os.Getpid(), campaigns)}
			if whole == 0 {
				begin := time.Now()
				if err := c.finish(ctx); err != nil {
					return err
				}
				whole = time.Since(begin)
				if err := os.RemoveAll(c.output()); err != nil {
					return err
				}
			}
			var err error
			k, err = c.torment(ctx, rand.New(rand.NewPCG(o.seed, uint64(campaigns))), whole, o.kills-n)
			return err
		})
		if err != nil {
			return faults, err
		}
		add(k)
		if err := notes.add(k); err != nil {
			return faults, err
		}
	}
	fmt.Fprintf(out, "%d kills of %d campaigns of %.1f s; %d faults\n", n, campaigns, whole.Seconds(), faults)
	return faults, nil
}

// campaign has its own folder, with a folder for temporary files and a cache.
type campaign struct {
	o    options
	dir  string
	mark string // in the environment of all its processes
}

func (c campaign) output() string { return filepath.Join(c.dir, "out") }

// command runs tuner in the campaign's folder.
func (c campaign) command(ctx context.Context, words *tail, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.o.tuner, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, words, words
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), c.mark, "TUNER_ORT_LIBRARY="+c.o.library, "TMPDIR="+filepath.Join(c.dir, "tmp"), "TUNER_CACHE="+filepath.Join(c.dir, "cache"), "HOME="+c.dir)
	return cmd
}

// prepare writes the profile.
func (c campaign) prepare() error {
	profile := fmt.Sprintf("model: %q\noutput: out\nsearch: {strategy: grid, budget: {time: 2m, trials: %d}, window: 100ms}\n"+
		"space: {intra_op_threads: [1, 2], instance_count: [1, 2, 3]}\nload: {concurrency: [1, 2, 4]}\n", filepath.Join(c.o.models, "mlp.onnx"), trials)
	err := os.MkdirAll(filepath.Join(c.dir, "tmp"), 0o755)
	for name, text := range map[string]string{"profile.yaml": profile, "analyze.yaml": "input: out\nformats: [table, csv, config, repository]\n"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644))
	}
	if err != nil {
		return fmt.Errorf("cannot write the profile: %w", err)
	}
	return nil
}

// finish runs the campaign to its end.
func (c campaign) finish(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	var words tail
	if err := c.command(ctx, &words, "profile", "-f", "profile.yaml").Run(); err != nil {
		return fmt.Errorf("a campaign that nobody killed: %w\n%s", err, words.String())
	}
	return nil
}

// torment starts the campaign and kills it, until it ends or has had all kills. Then it is finished
// and analyzed.
func (c campaign) torment(ctx context.Context, random *rand.Rand, whole time.Duration, kills int) (k killed, err error) {
	if err := c.prepare(); err != nil {
		return k, err
	}
	var safe []byte // complete lines of the journal
	for k.Kills < kills {
		after := time.Duration(random.Int64N(int64(whole / 2))) // a campaign that ends before its kill is not killed
		wasKilled, fault, err := c.kill(ctx, after)
		if err != nil {
			return k, err
		}
		k.After = append(k.After, after)
		k.Faults = append(k.Faults, fault...)
		now, fault := c.journal()
		k.Faults = append(k.Faults, fault...)
		if !bytes.HasPrefix(now, safe) {
			k.Faults = append(k.Faults, "the journal lost what it had")
		}
		safe = now
		if !wasKilled {
			break
		}
		k.Kills++
	}
	k.Faults = append(k.Faults, c.end(ctx, safe)...)
	return k, ctx.Err()
}

// kill starts the campaign and kills it after a time. It reports whether the campaign was still
// running, and the faults afterwards.
func (c campaign) kill(ctx context.Context, after time.Duration) (wasKilled bool, faults []string, err error) {
	var words tail
	cmd := c.command(ctx, &words, "profile", "-f", "profile.yaml")
	if err := cmd.Start(); err != nil {
		return false, nil, fmt.Errorf("cannot start tuner: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(after):
		before, _ := c.journal()
		wasKilled = cmd.Process.Kill() == nil
		<-ended
		if now, _ := c.journal(); !bytes.HasPrefix(now, before) {
			faults = append(faults, "a record that was in the journal is not there after the kill")
		}
	}
	if ctx.Err() != nil {
		return false, nil, ctx.Err()
	}
	if !wasKilled && err != nil {
		faults = append(faults, fmt.Sprintf("the campaign failed: %v\n%s", err, words.String()))
	}
	if left := c.processes(orphans); len(left) > 0 {
		faults = append(faults, fmt.Sprintf("processes are left: %v", left))
	}
	return wasKilled, faults, nil
}

// journal returns the complete lines of the journal, and its faults. The journal may not exist yet.
func (c campaign) journal() (lines []byte, faults []string) {
	data, err := os.ReadFile(filepath.Join(c.output(), journal.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		_, _, err = journal.Read(c.output())
	}
	if err != nil {
		return nil, []string{"the journal cannot be read: " + err.Error()}
	}
	return data[:bytes.LastIndexByte(data, '\n')+1], nil
}

// processes returns the campaign's processes that still run after a time.
func (c campaign) processes(patience time.Duration) (left []process.Process) {
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left = process.Marked(c.mark)
		if len(left) == 0 || time.Since(begin) > patience {
			return left
		}
	}
}

// end finishes the campaign, analyzes it, and checks all remains.
func (c campaign) end(ctx context.Context, safe []byte) (faults []string) {
	for _, args := range [][]string{{"profile", "-f", "profile.yaml"}, {"analyze", "-f", "analyze.yaml"}} {
		var words tail
		if err := c.command(ctx, &words, args...).Run(); err != nil {
			faults = append(faults, fmt.Sprintf("%v: %v\n%s", args, err, words.String()))
		}
	}
	now, fault := c.journal()
	faults = append(faults, fault...)
	if !bytes.HasPrefix(now, safe) {
		faults = append(faults, "the end of the campaign changed earlier records")
	}
	faults = append(faults, c.judge()...)
	if left := c.processes(orphans); len(left) > 0 {
		faults = append(faults, fmt.Sprintf("processes are left at the end: %v", left))
	}
	return append(faults, c.leftovers()...)
}

// judge checks the trials: their number equals the budget, none of the search is repeated, and
// campaign time only grows.
func (c campaign) judge() (faults []string) {
	_, records, err := journal.Read(c.output())
	if err != nil {
		return []string{err.Error()}
	}
	var elapsed time.Duration
	seen, n := map[string]bool{}, 0
	for _, r := range records {
		if r.Kind != journal.KindTrial {
			continue
		}
		var e search.Event
		if err := r.Decode(&e); err != nil {
			return append(faults, err.Error())
		}
		n++
		if e.Elapsed <= elapsed {
			faults = append(faults, fmt.Sprintf("trial %d: campaign time went from %v to %v", n, elapsed, e.Elapsed))
		}
		elapsed = e.Elapsed
		name := e.Trial.Candidate.Key() + " at " + e.Trial.Load.String()
		if e.Trial.Phase == search.PhaseSearch && seen[name] {
			faults = append(faults, name+" was measured twice")
		}
		seen[name] = seen[name] || e.Trial.Phase == search.PhaseSearch
	}
	if n != trials {
		faults = append(faults, strconv.Itoa(n)+" trials, want "+strconv.Itoa(trials))
	}
	return faults
}

// receipt is the file in which `tuner analyze` records the files that it wrote into a repository.
const receipt = ".tuner.json"

// leftovers returns useless files: temporary ones, sockets, and hidden ones except locks and
// receipts.
func (c campaign) leftovers() (faults []string) {
	_ = filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(c.dir, path)
		switch {
		case err != nil || path == c.dir:
		case strings.HasPrefix(name, "tmp"+string(filepath.Separator)), entry.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0,
			strings.HasPrefix(entry.Name(), ".") && !strings.HasSuffix(entry.Name(), "lock") && entry.Name() != receipt:
			faults = append(faults, "left: "+name)
		}
		return nil
	})
	return faults
}
