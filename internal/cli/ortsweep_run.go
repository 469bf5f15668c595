package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/internal/webpage"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
	"tuner/ortsweep"
	"tuner/ortsweep/flags"
	"tuner/runner"
	"tuner/runner/target"
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
	options, err := target.Engine("", setup.Subject.Libraries, con.err)
	if err != nil {
		return nil, err
	}
	options.Epoch, options.WarmUp = time.Now(), ortsweep.WarmUp
	open := func() ortsweep.Engine { return runner.New(options) }
	return ortsweep.NewEngines(setup, requests, open, host.Memory.Usable()/engineShare), nil
}

// reportSweep writes the files, prints the answer, and returns the error with the exit code.
// "Nothing beats the default" is an answer too.
func reportSweep(con console, o *flags.Options, r ortsweep.Result) error {
	con.stage.Report(func(w io.Writer) error {
		var table strings.Builder
		if err := ortsweep.WriteTable(&table, r); err != nil {
			return err
		}
		return webpage.WriteText(w, fmt.Sprintf("ortsweep %s for %s", r.Setup.Subject.Name, r.Setup.Sweep.Measure), table.String())
	})
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
