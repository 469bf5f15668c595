package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/internal/words"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
	"tuner/ortsweep"
	"tuner/ortsweep/flags"
	"tuner/ortsweep/race"
	"tuner/runner"
	"tuner/runner/target"
	"tuner/search"
)

// installedFlavours names the newest installed build of each flavour, cpu's first. A sweep without
// a space compares them. A build for GPUs needs a GPU. A build named by flag or environment is the
// only one.
func installedFlavours(o *flags.Options, gpus int) []string {
	if ortlib.IsNamed(o.ORTLibrary) {
		return nil
	}
	store, err := ortlib.UserStore()
	if err != nil {
		return nil // the search for builds reports the error
	}
	builds, err := store.List()
	if err != nil {
		return nil
	}
	var flavours []string
	for _, b := range builds { // cpu first, the newest of a flavour first
		build, _ := provider.BuildOf(b.Flavour)
		if !slices.Contains(flavours, b.Flavour) && (!build.GPU || gpus > 0) {
			flavours = append(flavours, b.Flavour)
		}
	}
	return flavours
}

// engineShare is the divisor of the memory for a sweep's engines: they may use a quarter.
const engineShare = 4

// sweepEngines makes the bundled engines for a sweep.
func sweepEngines(con console, setup ortsweep.Setup, requests runner.Requests, host hostinfo.Host) (*ortsweep.Engines, error) {
	options, err := target.Engine("", con.err)
	if err != nil {
		return nil, err
	}
	options.Epoch, options.WarmUp = time.Now(), ortsweep.WarmUp
	open := func() ortsweep.Engine { return runner.New(options) }
	return ortsweep.NewEngines(setup, requests, open, host.Memory.Usable()/engineShare), nil
}

// mostCounted limits the counting of a sweep's candidates.
const mostCounted = 2000

// observeSweep returns the observer for the flags.
func observeSweep(con console, o *flags.Options, s ortsweep.Setup) ortsweep.Observer {
	if o.Quiet {
		return &sweepProgress{out: io.Discard}
	}
	list, whole := s.Candidates(mostCounted)
	more := ""
	if !whole {
		more = "more than "
	}
	fmt.Fprintf(con.err, "racing %s%s of %s for %s (budget %v), results in %s\n", more, words.Count(len(list), "setting"), s.Subject.Name,
		s.Sweep.Measure, s.Sweep.Search.Budget.Time, s.Sweep.Output)
	return &sweepProgress{out: con.err}
}

// sweepProgress prints when a heat begins, and which settings fail.
type sweepProgress struct {
	out     io.Writer
	heat    int
	windows int
}

// Measured implements ortsweep.Observer.
func (p *sweepProgress) Measured(t race.Trial, f ortsweep.Figure, elapsed time.Duration) {
	p.windows++
	if t.Heat != p.heat {
		p.heat = t.Heat
		fmt.Fprintf(p.out, "%6s  after %d windows, heat %d: %s\n", words.Clock(elapsed), p.windows-1, t.Heat, phaseText(t.Phase))
	}
	if f.Failure != "" {
		fmt.Fprintf(p.out, "%6s  %s failed: %s\n", words.Clock(elapsed), describeSweep(t.Candidate), words.Brief(f.Failure))
	}
}

func phaseText(p race.Phase) string {
	switch p {
	case race.PhaseScreen:
		return "screening settings around the best so far"
	case race.PhaseProduct:
		return "racing combinations"
	}
	return "finals on fresh launches"
}

func describeSweep(c search.Candidate) string {
	if c.IsDefault() {
		return "the default"
	}
	return c.Key()
}

// reportSweep writes the files, prints the answer, and returns the error with the exit code.
// "Nothing beats the default" is an answer too.
func reportSweep(con console, o *flags.Options, r ortsweep.Result) error {
	written, err := ortsweep.WriteAll(r.Setup.Sweep.Output, r)
	if err != nil {
		return exit.OfFiles(err)
	}
	if o.Output == "json" {
		err = ortsweep.WriteJSON(con.out, r)
	} else {
		err = ortsweep.WriteTable(con.out, r)
	}
	if err != nil {
		return err
	}
	if !o.Quiet {
		listFiles(con.err, r.Setup.Sweep.Output, written)
	}
	switch {
	case r.Outcome.Interrupted:
		return exit.With(exit.Interrupted, fmt.Errorf("interrupted after %d windows; their results are in %s", r.Outcome.Windows, r.Setup.Sweep.Output))
	case r.Race.Broken != "":
		return errors.New(r.Race.Why)
	}
	return nil
}
