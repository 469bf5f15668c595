// Recorder records what a campaign could measure of one model on this machine:
//
//   - every configuration of a profile's space at every load, in two passes in random order, each
//     on its own launches;
//   - the service times of every pool;
//   - a reference point every few minutes, which shows the machine's drift;
//   - the best points under each limit again, until their means are known to 1 %.
//
// The benchmark of the search replays campaigns on the file (package landscape). A recording takes
// an hour or more. It is appended to a file trial by trial. After an interruption, the same command
// resumes it. The program measures like `tuner profile`, and judges nothing.
//
//	TUNER_ORT_LIBRARY="$(bin/tuner runtime install cpu)" go -C lab run ./landscape/recorder \
//		-profile lab/testdata/landscapes/mlp.profile.yaml -o out/mlp.jsonl -save lab/testdata/landscapes/mlp.jsonl.gz
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"tuner/internal/hostinfo"
	"tuner/lab/landscape/record"
	"tuner/lab/program"
	"tuner/model/modelconfig"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/spec"
)

// options are the flags.
type options struct {
	profile   string
	recording string
	save      string
	tuner     string
	library   string
	passes    int
	windows   int           // of a trial
	window    time.Duration // of these
	reference time.Duration // longest time between two trials of the reference point, except during a pool's trials
	rounds    int           // most repetitions of the best points
	seed      uint64
	notes     string
}

func main() { program.Main("recorder", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.StringVar(&o.profile, "profile", "", "the profile whose space is recorded; precisions are files, load.concurrency is a list")
	f.StringVar(&o.recording, "o", "", "the recording under way (JSON lines), which is gone on with if it is there")
	f.StringVar(&o.save, "save", "", "where the finished landscape goes (.jsonl.gz)")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.IntVar(&o.passes, "passes", 2, "passes over the space, each on launches of its own")
	f.IntVar(&o.windows, "windows", 2, "windows of a trial of the passes")
	f.DurationVar(&o.window, "window", time.Second, "length of these windows")
	f.DurationVar(&o.reference, "reference", 2*time.Minute, "time after which the reference point is measured again")
	f.IntVar(&o.rounds, "rounds", 40, "most rounds over the best points, a window each")
	f.Uint64Var(&o.seed, "seed", 1, "of the order")
	f.StringVar(&o.notes, "notes", "", "what is to be known of this recording")
	f.Check(func() error {
		switch {
		case o.profile == "" || o.recording == "" || o.save == "":
			return errors.New("-profile, -o and -save are needed")
		case o.passes < 1 || o.windows < 1 || o.window <= 0 || o.reference <= 0 || o.rounds < 0:
			return errors.New("-passes, -windows, -window and -reference must be above zero, -rounds not below")
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) (err error) {
	setup, header, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	requests, err := profile.Requests(setup.Profile, setup.Subject)
	if err != nil {
		return err
	}
	log, known, err := record.Open(o.recording, header)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := sameRecording(known.Header, header); err != nil {
		return fmt.Errorf("cannot go on with %q: %w; choose another -o, or remove the file", o.recording, err)
	}
	engine := runner.New(runner.Options{Launcher: target.Bundled{Binary: o.tuner}, Dial: runner.GRPC, Wire: runner.Over(runner.OverGRPC), Log: slog.New(slog.DiscardHandler),
		Epoch: time.Now(), Launches: launches(known)})
	defer engine.Close(context.WithoutCancel(ctx))
	r := newRecorder(o, known, log, profile.NewEngines(setup, engine, nil, requests), messages)
	if err := r.record(ctx); err != nil {
		return err
	}
	if err := record.Save(o.save, r.file); err != nil {
		return err
	}
	return r.summarize(out)
}

// prepare reads the profile and the model, and makes the recording's header.
func prepare(ctx context.Context, o options) (profile.Setup, record.Header, error) {
	text, err := os.ReadFile(o.profile)
	if err != nil {
		return profile.Setup{}, record.Header{}, fmt.Errorf("cannot read profile: %w", err)
	}
	p, err := spec.ParseProfile(filepath.Clean(o.profile), text)
	if err != nil {
		return profile.Setup{}, record.Header{}, err
	}
	if len(p.Model.Convert) > 0 {
		return profile.Setup{}, record.Header{}, fmt.Errorf("%s: space.precision: %v are to be made of the model; make them with `tuner convert`, and name the files", o.profile, p.Model.Convert)
	}
	host := hostinfo.Read(ctx)
	subject, err := profile.OpenSubject(p, profile.Place{GPUs: len(host.GPUs)})
	if err != nil {
		return profile.Setup{}, record.Header{}, err
	}
	facts := profile.FactsOf(subject, host)
	if err := profile.CheckSpace(p, subject, facts); err != nil {
		return profile.Setup{}, record.Header{}, err
	}
	space := p.Space(facts)
	if space.Load.Any || space.Load.Rate {
		return profile.Setup{}, record.Header{}, fmt.Errorf("%s: load.concurrency: must be a list, each of which is measured", o.profile)
	}
	config, err := modelconfig.Format(subject.Config)
	if err != nil {
		return profile.Setup{}, record.Header{}, fmt.Errorf("cannot print the default configuration: %w", err)
	}
	header := record.Header{
		Version: record.Version, Name: p.Name, Created: time.Now().UTC().Truncate(time.Second), Machine: host.Fingerprint(),
		Host: fmt.Sprintf("%s, %d cores", host.CPU.Model, host.UsableCores()), Runtime: filepath.Base(o.library), Models: map[string]string{},
		Config: string(config), Space: space, Window: o.window, Seed: o.seed, Notes: o.notes,
	}
	for _, f := range subject.Files {
		header.Models[f.Precision] = f.Source.Digest
	}
	return profile.Setup{Profile: p, Subject: subject, Facts: facts, Runtime: journal.RuntimeInfo{Flavour: "measured", Library: o.library}}, header, nil
}

// sameRecording returns an error that names the difference between a recording and the requested
// one.
func sameRecording(old, now record.Header) error {
	for _, f := range []struct{ what, old, now string }{
		{"name", old.Name, now.Name}, {"machine", old.Machine, now.Machine}, {"ONNX Runtime", old.Runtime, now.Runtime},
		{"models", fmt.Sprint(old.Models), fmt.Sprint(now.Models)}, {"default configuration", old.Config, now.Config},
		{"space", fmt.Sprintf("%+v", old.Space), fmt.Sprintf("%+v", now.Space)}, {"window", old.Window.String(), now.Window.String()},
		{"seed", fmt.Sprint(old.Seed), fmt.Sprint(now.Seed)},
	} {
		if f.old != f.now {
			return fmt.Errorf("its %s is another one", f.what)
		}
	}
	return nil
}

// launches returns the number of engine launches of a recording so far.
func launches(f record.File) int {
	n := 0
	for _, p := range f.Points {
		n = max(n, p.Launch)
	}
	for _, s := range f.Services {
		n = max(n, s.Launch)
	}
	return n
}

// summarize prints the precision of the landscape.
func (r *recorder) summarize(out io.Writer) error {
	course := record.NewCourse(r.file)
	truths := record.Truths(r.file, course)
	failed := 0
	for _, t := range truths {
		if t.Failure != nil {
			failed++
		}
	}
	fmt.Fprintf(out, "%s: %d points, %d of them failed; %d trials on %d launches in %v; drift %.1f %%\n", r.file.Header.Name, len(truths), failed,
		len(r.file.Points)+len(r.file.Services), launches(r.file), r.elapsed().Round(time.Second), 100*course.Deviation())
	for _, limit := range limits(truths) {
		best := record.Best(truths, limit, bestPoints)
		worst, vague := 0.0, 0
		for _, t := range best {
			worst = max(worst, t.Error)
			if t.Error > precise {
				vague++
			}
		}
		text := "no limit"
		if !math.IsInf(limit, 1) {
			text = fmt.Sprintf("p99 ≤ %.2f ms", limit*1e3)
		}
		if len(best) > 0 {
			text += fmt.Sprintf(": %.1f infer/s with %s at %g; standard error of the best %d at most %.1f %%, above 1 %% in %d", best[0].Throughput,
				best[0].Candidate.Describe(), best[0].Level, len(best), 100*worst, vague)
		}
		fmt.Fprintln(out, text)
	}
	return nil
}
