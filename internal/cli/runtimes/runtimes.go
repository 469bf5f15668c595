// Package runtimes is what `tuner runtime` does: it installs and lists builds of ONNX Runtime. Package
// ortlib knows the builds.
package runtimes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tuner/internal/exit"
	"tuner/ort/ortlib"
)

// Install installs the build of a name and prints its library on out. Messages go to messages. Errors carry
// their exit code.
func Install(ctx context.Context, out, messages io.Writer, name string) error {
	store, err := ortlib.UserStore()
	if err != nil {
		return err
	}
	isOffered := func(offered string) bool { return offered == name || strings.HasPrefix(offered, name+"@") }
	if !slices.ContainsFunc(store.Offered(), isOffered) {
		return exit.Usagef("cannot install runtime %q: allowed on this platform are %s", name, cmp.Or(strings.Join(store.Offered(), ", "), "none"))
	}
	start := time.Now()
	build, err := store.Install(ctx, name, messages)
	if err != nil {
		return exit.OrInterrupted(ctx, exit.OfFiles(err))
	}
	fmt.Fprintf(messages, "%s is ready (%.1f s)\n", build.Name(), time.Since(start).Seconds())
	_, err = fmt.Fprintln(out, build.Library)
	return err
}

// Print prints the builds that are installed and those that can be, as a table.
func Print(out io.Writer, builds []ortlib.KnownBuild) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUNTIME\tSTATE\tLIBRARY OR REMEDY") // Flush returns the errors
	for _, b := range builds {
		state, where := "not installed", "tuner runtime install "+b.Name
		switch {
		case b.Error != "":
			state, where = "not usable", b.Error
		case b.Selected:
			state, where = "selected", b.Library
		case b.Installed:
			state, where = "installed", b.Library
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", b.Name, state, where)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot print the runtimes: %w", err)
	}
	return nil
}
