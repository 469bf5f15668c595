// Package worker is the part of a fleet in a pod: it runs one whole campaign on its machine, and
// delivers the journal. A file goes in, the record comes out; nothing is asked of others while a
// campaign measures.
//
// The campaign is a child process of the same program, so a campaign that crashes leaves a worker
// that still delivers what was measured.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/checksum"
	"tuner/internal/children"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/profile/journal"
)

// Options say what a worker does. Zero durations take the defaults.
type Options struct {
	Plan        string // path of the part of the plan
	Program     string // this program's own file
	Work        string // folder for the profile and the campaign; "": fleet.WorkDir
	Account     string // folder of the pod's token; "": where Kubernetes mounts it
	Environment func(string) string
	Output      io.Writer     // of the campaign
	Messages    io.Writer     // of the worker, and of the campaign
	Version     string        // program version
	Every       time.Duration // time between two segments; default 30 s
	Patience    time.Duration // limit for the delivery after the end; default 15 min
}

// The defaults of Options, and the time for the last segment after SIGTERM, which is less than the
// pod's grace (package objects).
const (
	defaultEvery    = 30 * time.Second
	defaultPatience = 15 * time.Minute
	hurriedPatience = 30 * time.Second
)

// Run runs the campaign of this pod's item and delivers it. An error with the code exit.Rejected means
// that the campaign cannot work on this machine, now or later.
func Run(ctx context.Context, o Options) error {
	began := time.Now()
	part, err := fleet.ReadPart(o.Plan)
	if err != nil {
		return exit.With(exit.Rejected, err)
	}
	index, err := strconv.Atoi(o.Environment("JOB_COMPLETION_INDEX"))
	if err != nil || index < 0 || index >= len(part.Items) {
		return exit.With(exit.Rejected, fmt.Errorf("cannot find this pod's item: JOB_COMPLETION_INDEX is %q, and the plan has %d", o.Environment("JOB_COMPLETION_INDEX"), len(part.Items)))
	}
	host := hostinfo.Read(ctx)
	if err := checkPlace(part, host); err != nil {
		return exit.With(exit.Rejected, err)
	}
	item := part.Items[index]
	campaign, _ := part.Of(item) // ReadPart has checked that it is there
	if err := checkModel(campaign); err != nil {
		return exit.With(exit.Rejected, err)
	}
	to, err := newClient(o.Environment, cmp.Or(o.Account, accountDir))
	if err != nil {
		return err
	}
	job := record.Item{Job: record.JobName(part.Run, part.Machine), Index: index}
	work := cmp.Or(o.Work, fleet.WorkDir)
	s := &sender{to: to, run: part.Run, machine: part.Machine, attempt: record.Attempt{Item: job, UID: o.Environment("POD_UID")},
		journal: filepath.Join(work, "out", journal.FileName)}
	result := record.Result{
		Job: job.Job, Index: index, Attempt: s.attempt.UID, Pod: o.Environment("POD_NAME"), Model: item.Model, Machine: part.Machine, Repeat: item.Repeat,
		Placement: hostinfo.ReadPlacement(host), Tool: o.Version,
	}
	if s.mine, err = result.ConfigMap(s.run); err != nil {
		return err
	}
	if result.Exit, err = o.campaign(ctx, work, campaign, s); err == nil {
		err = o.deliver(ctx, s, result, began)
	}
	if errors.Is(err, errSuperseded) {
		fmt.Fprintf(o.Messages, "fleet worker: %s: %v\n", job, err)
		return nil
	}
	return err
}

// errSuperseded means that the item has a result of another attempt, or of the user's. That is no failure
// of the item: its index is done.
var errSuperseded = errors.New("superseded: the item has a result already")

// checkPlace looks whether the pod has what the fleet needs for its figures. CPUs of its own show in
// the cpuset: with the kubelet's static CPU manager it has exactly those of the pod. A quota below
// them stops threads in every period, whatever the cpuset.
func checkPlace(p fleet.Part, host hostinfo.Host) error {
	allowed := len(host.CPU.Allowed)
	if p.Exclusive != fleet.ExclusiveCores || allowed == 0 {
		return nil
	}
	const remedy = "let the administrator set cpuManagerPolicy: static on these nodes (with full-pcpus-only, and topologyManagerPolicy: single-numa-node), or write cluster: {exclusive: shared}"
	if allowed != p.CPUs {
		return fmt.Errorf("this pod asks for %d cores of its own, and may run on %d; %s", p.CPUs, allowed, remedy)
	}
	if host.CPU.Quota > 0 && host.CPU.Quota < float64(allowed) {
		return fmt.Errorf("this pod has %d cores, and a quota of %g cores' time stops it in every period; %s", allowed, host.CPU.Quota, remedy)
	}
	return nil
}

// checkModel compares the model's file with the plan's digest, before anything else is done with it.
func checkModel(c fleet.PodPlan) error {
	if _, err := os.Stat(c.File); err != nil {
		return fmt.Errorf("the model %s is not in this pod: cannot open %q: %w; check `from:` in fleet.yaml", c.Model, c.File, durable.Cause(err))
	}
	if c.SHA256 == "" {
		return nil
	}
	digest, err := checksum.File(c.File)
	if err != nil {
		return fmt.Errorf("cannot read the model %q: %w", c.File, err)
	}
	if digest != c.SHA256 {
		return fmt.Errorf("the model %q has the SHA-256 %s, and fleet.yaml says %s", c.File, digest, c.SHA256)
	}
	return nil
}

// campaign runs the campaign and sends its journal as it grows. It returns the campaign's exit code if
// that is a result: 0, or exit.Infeasible.
//
// A campaign whose item gets a result meanwhile ends: what it would measure does not count.
func (o Options) campaign(ctx context.Context, work string, c fleet.PodPlan, s *sender) (int, error) {
	if s.to.exists(ctx, s.mine) {
		return 0, errSuperseded
	}
	profile := filepath.Join(work, "profile.yaml")
	text := strings.Replace(c.Profile, fleet.OutDir, filepath.Join(work, "out"), 1)
	if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
		return 0, fmt.Errorf("cannot write the profile: %w", err)
	}
	cmd := exec.Command(o.Program, "profile", profile)
	cmd.Stdout, cmd.Stderr = o.Output, o.Messages
	ended, err := children.Start(cmd)
	if err != nil {
		return 0, fmt.Errorf("cannot start the campaign: %w", err)
	}
	tick := time.NewTicker(cmp.Or(o.Every, defaultEvery))
	defer tick.Stop()
	stop := ctx.Done()
	isLate := false
	for {
		select {
		case <-stop:
			_ = children.Signal(cmd, syscall.SIGTERM) // fails only if it has already ended
			stop = nil
		case <-tick.C:
			if _, err := s.step(ctx); err != nil { // the next one tries again, and the end insists
				fmt.Fprintf(o.Messages, "fleet worker: the journal is not sent yet: %v\n", err)
			}
			if !isLate && s.to.exists(ctx, s.mine) {
				isLate = true
				_ = children.Signal(cmd, syscall.SIGTERM) // fails only if it has already ended
			}
		case <-ended:
			if isLate {
				return 0, errSuperseded
			}
			return o.judge(ctx, cmd.ProcessState, s)
		}
	}
}

// judge says what the end of a campaign means. What was measured is delivered in any case.
func (o Options) judge(ctx context.Context, state *os.ProcessState, s *sender) (int, error) {
	code := state.ExitCode()
	if (code == exit.OK || code == exit.Infeasible) && ctx.Err() == nil {
		return code, nil
	}
	hurried, cancel := context.WithTimeout(context.WithoutCancel(ctx), hurriedPatience)
	defer cancel()
	failed := s.finish(hurried)
	switch {
	case ctx.Err() != nil:
		return 0, errors.Join(exit.With(exit.Interrupted, errors.New("the pod was asked to end; what was measured is delivered")), failed)
	case code == exit.Usage:
		return 0, errors.Join(exit.With(exit.Rejected, errors.New("the profile cannot work in this pod; the campaign's message says why")), failed)
	}
	return 0, errors.Join(fmt.Errorf("the campaign ended with %s", state), failed)
}

// deliver sends the rest of the journal, then the result. The first result of an item counts: if there
// is one, this attempt has come too late.
func (o Options) deliver(ctx context.Context, s *sender, r record.Result, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Patience, defaultPatience))
	defer cancel()
	if err := s.finish(ctx); err != nil {
		return err
	}
	text, err := os.ReadFile(s.journal)
	if err != nil {
		return fmt.Errorf("cannot read the journal: %w", err)
	}
	r.Bytes, r.Segments, r.SHA256 = s.sent, s.segments, record.Digest(text[:s.sent])
	r.Seconds, r.Ended = time.Since(began).Seconds(), time.Now().UTC()
	m, err := r.ConfigMap(s.run)
	if err != nil {
		return err
	}
	err = insist(ctx, func() error { return s.to.create(ctx, m) })
	switch {
	case errors.Is(err, errExists):
		return errSuperseded
	case err != nil:
		return fmt.Errorf("cannot deliver the result: %w", err)
	}
	fmt.Fprintf(o.Messages, "fleet worker: delivered %d bytes in %d segments as %s\n", r.Bytes, r.Segments, m.Metadata.Name)
	return nil
}
