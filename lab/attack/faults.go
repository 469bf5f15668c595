package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"tuner/lab/process"
)

// faults: the machine fails, or somebody kills tuner.
func faults() []attack {
	return []attack{
		{"A10", "kill -9 of convert while the user's metric runs", "the metric and what it has started end", orphanMetric},
		{"A10", "kill -9 of a campaign at 8 moments, then the same command", "no engine is left, no trial is lost, analyze is right", killed},
		{"A13", "the model replaced during a campaign", "the campaign ends with exit code 2", replaced},
		{"A15", "the terminal of a campaign closes (SIGHUP)", "exit code 130, the end is recorded, no engine is left", hungUp},
		{"§2", "a disk of 400 kB that fills up in a campaign", "exit code 2 and the remedy, the journal is whole, with space it goes on", fullDisk},
		{"§2", "an output folder that cannot be written", "refused with exit code 2 before anything is measured", readOnly},
		{"§2", "four campaigns at once in one folder", "one has it, the others end with exit code 2", together},
		{"§2", "SIGTERM to a server with an endless queue, twice", "the second signal ends it at once", impatient},
	}
}

// campaigner is a running tuner.
type campaigner struct {
	cmd    *exec.Cmd
	out    process.Output
	exited chan struct{}
}

// starts starts tuner in the background. It is killed with the scene, together with its process
// group.
func (s *scene) starts(args ...string) (*campaigner, error) {
	for _, dir := range []string{"home", "tmp"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			return nil, err
		}
	}
	p := &campaigner{cmd: s.command("", args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.WaitDelay = time.Second // its children may keep its output open
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // the exit code has the outcome
		close(p.exited)
	}()
	s.programs = append(s.programs, p)
	return p, nil
}

// ends waits for the program's end and returns its exit code.
func (p *campaigner) ends(ctx context.Context) (int, error) {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("tuner does not end: %s", last(p.out.String()))
	}
}

// until waits for a condition.
func until(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("there is no %s: %w", what, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// left lists the processes of the scene: its folder is in their environment.
func (s *scene) left() []process.Process { return process.Marked("TMPDIR=" + s.path("tmp")) }

// nobodyLeft checks that all processes of the scene end within five seconds.
func (s *scene) nobodyLeft(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := until(ctx, "end of the processes", func() bool { return len(s.left()) == 0 }); err != nil {
		return fmt.Errorf("left are %v: %w", s.left(), err)
	}
	return nil
}

func orphanMetric(ctx context.Context, s *scene) (string, error) {
	if err := errors.Join(s.write(sample(s, "mlp"), "m.onnx"), s.write([]byte("sleep 600 & touch "+s.path("begun")+"\nsleep 600\n"), "metric.sh")); err != nil {
		return "", err
	}
	p, err := s.starts("convert", "m.onnx", "--precision", "fp16", "-o", "work", "--metric", "command", "--metric-command", "sh "+s.path("metric.sh"), "--min", "0.5")
	if err != nil {
		return "", err
	}
	err = until(ctx, "metric", func() bool { _, err := os.Stat(s.path("begun")); return err == nil })
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, last(p.out.String()))
	}
	before := len(s.left())
	_ = p.cmd.Process.Kill()
	<-p.exited
	return fmt.Sprintf("%d processes before, none after", before), s.nobodyLeft(ctx)
}

const longProfile = "model: m.onnx\noutput: out\nsearch: {strategy: grid, budget: {time: 2m, trials: 12}, window: 100ms}\nspace: {intra_op_threads: [1, 2], instance_count: [1, 2, 3]}\nload: {concurrency: [1, 2]}\n"

// finished returns the number of trials of a campaign that has ended by itself. Its journal must
// begin with its earlier content, and lack no record. Six candidates and the default are measured
// once. The number of further trials within the budget of twelve depends on the measurements.
func (s *scene) finished(earlier string) (int, error) {
	text, err := os.ReadFile(s.path("out", "journal.jsonl"))
	if err != nil {
		return 0, err
	}
	if !strings.HasPrefix(string(text), earlier) {
		return 0, errors.New("records have changed")
	}
	trials, last := 0, ""
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var r struct {
			Seq  int
			Kind string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Seq != i+1 {
			return 0, errors.Join(fmt.Errorf("line %d has the number %d", i+1, r.Seq), err)
		}
		if last = r.Kind; last == "trial" {
			trials++
		}
	}
	if trials < 7 || trials > 12 || last != "end" {
		return trials, fmt.Errorf("%d trials, want 7 to 12, and %q at the end", trials, last)
	}
	return trials, nil
}

// profiles writes a profile of at most twelve trials, and its model.
func (s *scene) profiles() error {
	return errors.Join(s.write(sample(s, "mlp"), "m.onnx"), s.write([]byte(longProfile), "profile.yaml"))
}

// awaitTrials waits until a campaign has n trials.
func (s *scene) awaitTrials(ctx context.Context, p *campaigner, n int) error {
	return until(ctx, "trial", func() bool {
		got, _ := s.trials("out", "journal.jsonl") // it may not exist yet
		select {
		case <-p.exited:
			return true
		default:
			return got >= n
		}
	})
}

func killed(ctx context.Context, s *scene) (string, error) {
	if err := s.profiles(); err != nil {
		return "", err
	}
	kills, before := 0, 0
	for i := range 8 {
		p, err := s.starts("profile", "-f", "profile.yaml")
		if err != nil {
			return "", err
		}
		if err := s.awaitTrials(ctx, p, before+1); err != nil {
			return "", err
		}
		time.Sleep(time.Duration(i*37) * time.Millisecond)
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.exited
		if err := s.nobodyLeft(ctx); err != nil {
			return "", err
		}
		now, err := s.trials("out", "journal.jsonl")
		if err != nil || now < before {
			return "", errors.Join(fmt.Errorf("%d trials after a kill, %d before", now, before), err)
		}
		kills, before = kills+1, now
	}
	o, err := s.tunes(ctx, "profile", "-f", "profile.yaml")
	if err != nil || o.code != 0 {
		return "", errors.Join(fmt.Errorf("the last run ended with %d: %s", o.code, last(o.out)), err)
	}
	n, err := s.finished("")
	if err != nil {
		return "", err
	}
	if o, err = s.tunes(ctx, "analyze", "--input", "out"); err != nil || o.code != 0 {
		return "", errors.Join(fmt.Errorf("tuner analyze ended with %d: %s", o.code, last(o.out)), err)
	}
	return fmt.Sprintf("%d kills, %d trials", kills, n), s.nobodyLeft(ctx)
}

func replaced(ctx context.Context, s *scene) (string, error) {
	if err := s.profiles(); err != nil {
		return "", err
	}
	p, err := s.starts("profile", "-f", "profile.yaml")
	if err != nil {
		return "", err
	}
	if err := s.awaitTrials(ctx, p, 2); err != nil {
		return "", err
	}
	if err := s.write(sample(s, "cnn"), "m.onnx"); err != nil {
		return "", err
	}
	code, err := p.ends(ctx)
	if err != nil {
		return "", err
	}
	seen, err := outcome{code: code, out: p.out.String()}.refused(2, "m.onnx")
	return seen, errors.Join(err, s.nobodyLeft(ctx))
}

func hungUp(ctx context.Context, s *scene) (string, error) {
	if err := s.profiles(); err != nil {
		return "", err
	}
	p, err := s.starts("profile", "-f", "profile.yaml")
	if err != nil {
		return "", err
	}
	if err := s.awaitTrials(ctx, p, 2); err != nil {
		return "", err
	}
	_ = p.cmd.Process.Signal(syscall.SIGHUP) // it may have ended
	code, err := p.ends(ctx)
	if err != nil || code != 130 {
		return "", errors.Join(fmt.Errorf("exit code %d: %s", code, last(p.out.String())), err)
	}
	lines, err := s.lines("out", "journal.jsonl")
	if err != nil || !strings.Contains(lines[len(lines)-1], `"kind":"end"`) {
		return "", errors.Join(errors.New("the end is not recorded"), err)
	}
	return "exit code 130, the end is recorded", s.nobodyLeft(ctx)
}

// disk mounts a small disk at a folder of the scene, until the scene is closed.
func (s *scene) disk(folder, options string, flags uintptr) error {
	if err := os.MkdirAll(s.path(folder), 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", s.path(folder), "tmpfs", flags, options); err != nil {
		return notRun("no disk may be mounted here")
	}
	s.mounts = append(s.mounts, s.path(folder))
	return nil
}

func fullDisk(ctx context.Context, s *scene) (string, error) {
	if err := errors.Join(s.profiles(), s.disk("out", "size=400k", 0)); err != nil {
		return "", err
	}
	full := make([]byte, 1<<20)
	p, err := s.starts("profile", "-f", "profile.yaml")
	if err != nil {
		return "", err
	}
	if err := s.awaitTrials(ctx, p, 2); err != nil {
		return "", err
	}
	_ = os.WriteFile(s.path("out", "filler"), full, 0o644) // it fills the rest of the disk, and fails
	code, err := p.ends(ctx)
	if err != nil || code != 2 || !strings.Contains(flat(p.out.String()), "no space left") {
		return "", errors.Join(fmt.Errorf("exit code %d: %s", code, last(p.out.String())), err)
	}
	before, err := os.ReadFile(s.path("out", "journal.jsonl"))
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.Remove(s.path("out", "filler")), syscall.Mount("tmpfs", s.path("out"), "tmpfs", syscall.MS_REMOUNT, "size=16m")); err != nil {
		return "", err
	}
	o, err := s.tunes(ctx, "profile", "-f", "profile.yaml")
	if err != nil || o.code != 0 {
		return "", errors.Join(fmt.Errorf("with space: exit code %d: %s", o.code, last(o.out)), err)
	}
	// A line that was incomplete when the disk was full is removed. Every complete line stays.
	n, err := s.finished(string(before[:bytes.LastIndexByte(before, '\n')+1]))
	if err != nil {
		return "", fmt.Errorf("with space: %w", err)
	}
	return fmt.Sprintf("exit code 2, %d trials with space again", n), s.nobodyLeft(ctx)
}

func readOnly(ctx context.Context, s *scene) (string, error) {
	if err := errors.Join(s.profiles(), s.disk("out", "size=1m", syscall.MS_RDONLY)); err != nil {
		return "", err
	}
	o, err := s.tunes(ctx, "profile", "-f", "profile.yaml")
	if err != nil {
		return "", err
	}
	return o.refused(2, "read-only")
}

func together(ctx context.Context, s *scene) (string, error) {
	if err := s.profiles(); err != nil {
		return "", err
	}
	var all []*campaigner
	for range 4 {
		p, err := s.starts("profile", "-f", "profile.yaml")
		if err != nil {
			return "", err
		}
		all = append(all, p)
	}
	codes := map[int]int{}
	for _, p := range all {
		code, err := p.ends(ctx)
		if err != nil {
			return "", err
		}
		codes[code]++
	}
	n, err := s.finished("")
	if err != nil || codes[0] != 1 || codes[2] != 3 {
		return "", errors.Join(fmt.Errorf("exit codes %v", codes), err)
	}
	return fmt.Sprintf("one measured %d trials, three ended with exit code 2", n), s.nobodyLeft(ctx)
}

func impatient(ctx context.Context, s *scene) (string, error) {
	v, err := s.jammed(ctx, "")
	if err != nil {
		return "", err
	}
	cancel, _, err := v.queued(ctx, 5000, 0)
	if err != nil {
		return "", err
	}
	defer cancel()
	if err := v.fills(ctx, "slow", 4000); err != nil {
		return "", err
	}
	if err := v.signal(syscall.SIGTERM); err != nil {
		return "", err
	}
	time.Sleep(time.Second)
	begin := time.Now()
	_ = v.signal(syscall.SIGINT) // it may have ended
	select {
	case <-v.exited:
		return fmt.Sprintf("exit code %d, %v after the second signal", v.cmd.ProcessState.ExitCode(), time.Since(begin).Round(time.Millisecond)), nil
	case <-time.After(3 * time.Second):
		return "", errors.New("the server lives 3 s after the second signal")
	}
}
