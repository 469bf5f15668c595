// Adaptive compares `tuner serve --adaptive` with the best configuration that does not change, under the
// same day of requests. The day is compressed: its rates are true, and its hours last seconds. Each side has
// a fresh server, and the sides take turns.
//
// The table of configurations is what `tuner plan --format adaptive` makes of the campaign and the day. So
// the program also shows whether the plan was right. Where changing does not pay, the server must keep
// its configuration; the program fails if it changes it, or if a request is lost.
//
//	go -C lab run ./bench/adaptive -campaign out/cnn -traffic "{0h: 20, 8h: 150, 12h: 20, 24h: 20}" -length 2m
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tuner/adaptive"
	"tuner/analyze"
	"tuner/capacity/traffic"
	"tuner/internal/exit"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/program"
	"tuner/report"
	"tuner/report/formats"
)

// options are the flags.
type options struct {
	campaign string
	tuner    string
	library  string
	traffic  string
	length   time.Duration
	rounds   int
	slots    int
	plain    bool
	forced   bool
	threads  bool
}

func main() { program.Main("adaptive", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Path(&o.campaign, "campaign", "out/minilm", "output folder of a campaign that was analyzed")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.StringVar(&o.traffic, "traffic", "peak 400/s, office hours", "requests of the day, in the forms of `tuner plan --traffic`; its first day counts")
	f.DurationVar(&o.length, "length", 2*time.Minute, "length of the compressed day")
	f.IntVar(&o.rounds, "rounds", 1, "number of pairs")
	f.IntVar(&o.slots, "slots", 24, "number of parts of the day whose latencies are compared")
	f.BoolVar(&o.plain, "plan", false, "make the table and say whether changing pays, and measure nothing")
	f.BoolVar(&o.forced, "force", false, "change the configuration even where the plan says that it does not pay: was the plan right?")
	f.BoolVar(&o.threads, "threads", false, "simulate one instance with all cores against many with one each, and measure nothing")
	f.Check(func() error {
		if o.rounds < 1 || o.length < 10*time.Second || o.slots < 1 {
			return fmt.Errorf("-rounds %d -length %v -slots %d: at least 1 round, 10 s and 1 slot", o.rounds, o.length, o.slots)
		}
		return nil
	})
}

// seed is that of the first round's requests.
const seed = 1

func run(ctx context.Context, o options, out, messages io.Writer) error {
	if o.threads {
		return threads(out)
	}
	return program.InFolder("", "bench-adaptive", func(work string) error {
		t, file, err := table(ctx, o, work)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n\n%s\n\n", sidebyside.Machine(ctx), t.Summary)
		if o.plain {
			return nil
		}
		s, err := open(o, t, file, work)
		if err != nil {
			return err
		}
		return rounds(ctx, o, s, out, messages)
	})
}

// rounds measures pairs and prints their figures: static, adaptive; adaptive, static; and so on.
func rounds(ctx context.Context, o options, s served, out, messages io.Writer) error {
	day, err := traffic.Read(o.traffic, seed)
	if err != nil {
		return err
	}
	var pairs []pair
	var failed []error
	for i := range o.rounds {
		at := compressed(day.Days()[0], o.length, seed+uint64(i))
		p := pair{length: o.length, slots: o.slots}
		sides := []*side{&p.static, &p.adaptive}
		if i%2 == 1 {
			sides[0], sides[1] = sides[1], sides[0]
		}
		for _, x := range sides {
			if *x, err = s.replay(ctx, at, x == &p.adaptive); err != nil {
				return err
			}
			fmt.Fprintf(messages, "round %d, adaptive %v: %d requests, %d lost, p99 %.1f ms, %d changes\n",
				i+1, x == &p.adaptive, len(x.answers), x.lost, 1e3*x.p99(), x.changes)
			if x.lost > 0 {
				failed = append(failed, fmt.Errorf("round %d: %d requests were lost: %s", i+1, x.lost, x.reason))
			}
		}
		if !s.table.Pays && p.adaptive.changes > 0 || p.static.changes > 0 {
			failed = append(failed, fmt.Errorf("round %d: the server changed its configuration", i+1))
		}
		pairs = append(pairs, p)
	}
	return errors.Join(write(out, pairs), errors.Join(failed...))
}

// table lets tuner make the table of configurations.
func table(ctx context.Context, o options, work string) (adaptive.Table, string, error) {
	file := filepath.Join(work, "adaptive.json")
	cmd := exec.CommandContext(ctx, o.tuner, "plan", o.campaign, "--traffic", o.traffic, "--max-replicas", "1", "--format", "adaptive", "-o", file)
	text, err := cmd.CombinedOutput()
	// A day that one replica does not serve within the limit has a table too.
	if cmd.ProcessState == nil || err != nil && cmd.ProcessState.ExitCode() != exit.Infeasible {
		return adaptive.Table{}, "", fmt.Errorf("cannot make the table: %w: %s", err, strings.TrimSpace(string(text)))
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return adaptive.Table{}, "", err
	}
	t, err := adaptive.Parse(file, content)
	if err != nil || !o.forced {
		return t, file, err
	}
	t.Pays = true
	if content, err = json.Marshal(t); err != nil {
		return t, file, err
	}
	return t, file, os.WriteFile(file, content, 0o600)
}

// open writes the static configuration into a repository, and makes the campaign's requests for it.
func open(o options, t adaptive.Table, file, work string) (served, error) {
	ranked, err := analyze.RankFolder(o.campaign, formats.All().Words())
	if err != nil {
		return served{}, err
	}
	s := served{options: o, table: t, file: file, repository: filepath.Join(work, "repository")}
	if err := report.WriteConfiguration(s.repository, ranked, t.Static); err != nil {
		return served{}, err
	}
	s.requests, err = requests(o.campaign)
	return s, err
}
