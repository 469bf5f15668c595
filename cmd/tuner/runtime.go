package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tuner/ortlib"
)

func newRuntime(con console) *cobra.Command {
	cmd := verb(&cobra.Command{
		Use:   "runtime",
		Short: "Install and list ONNX Runtime builds",
		Long: `Installs official builds of ONNX Runtime, several versions side by side, into your cache folder (TUNER_CACHE, else
~/.cache/tuner on Linux). They are pinned by version and digest and fetched with your own pip, whose index and proxy
settings apply; nothing is installed into a Python environment.

To use a library of your own instead, name it with --ort-library or TUNER_ORT_LIBRARY.`,
		Example: "  tuner runtime install cpu\n  tuner runtime install cpu@1.24.4\n  tuner runtime list",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return usageErrorf("say what to do: 'tuner runtime install FLAVOUR' or 'tuner runtime list'")
		},
	})
	cmd.AddCommand(newRuntimeInstall(con), newRuntimeList(con))
	return cmd
}

func newRuntimeInstall(con console) *cobra.Command {
	return verb(&cobra.Command{
		Use:     "install FLAVOUR[@VERSION]",
		Short:   "Download and unpack a build",
		Long:    "Downloads a build, verifies its digest and unpacks it. One that is installed already is left as it is; nothing is\ndownloaded then. 'tuner runtime list' shows what can be installed.",
		Example: "  tuner runtime install openvino",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := ortlib.UserStore()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(store.Offered(), func(name string) bool { return isBuild(name, args[0]) }) {
				return usageErrorf("cannot install runtime %q: on this platform there are: %s", args[0], orNone(store.Offered()))
			}
			start := time.Now()
			build, err := store.Install(cmd.Context(), args[0], con.err)
			if err != nil {
				return interruptedOr(cmd.Context(), err)
			}
			fmt.Fprintf(con.err, "%s is ready (%.1f s)\n", build.Name(), time.Since(start).Seconds())
			_, err = fmt.Fprintln(con.out, build.Library)
			return err
		},
	})
}

// isBuild tells whether a selector, cpu or cpu@1.31.1, names a build.
func isBuild(name, selector string) bool {
	return name == selector || strings.HasPrefix(name, selector+"@")
}

func newRuntimeList(con console) *cobra.Command {
	var output string
	cmd := verb(&cobra.Command{
		Use:   "list",
		Short: "Show the builds that are installed and those that can be",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutputFormat(output); err != nil {
				return err
			}
			builds, err := knownBuilds()
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(con.out, builds)
			}
			return printBuilds(con.out, builds)
		},
	})
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	return cmd
}

// knownBuild is a build that is installed or can be.
type knownBuild struct {
	Name      string       `json:"name"` // flavour@version
	Installed bool         `json:"installed"`
	Selected  bool         `json:"selected"`          // taken when nothing else is named
	Library   string       `json:"library,omitempty"` // "" unless installed
	build     ortlib.Build // zero unless installed
}

// knownBuilds lists the library named by TUNER_ORT_LIBRARY, the installed builds, then those that can be installed.
func knownBuilds() ([]knownBuild, error) {
	store, err := ortlib.UserStore()
	if err != nil {
		return nil, err
	}
	installed, err := store.List()
	if err != nil {
		return nil, err
	}
	selected, selectErr := ortlib.Resolve("") // without any build there is none to select
	if selectErr == nil && selected.Flavour == ortlib.External {
		installed = append([]ortlib.Build{selected}, installed...)
	}
	known := []knownBuild{}
	for _, build := range installed {
		known = append(known, knownBuild{build.Name(), true, selectErr == nil && build == selected, build.Library, build})
	}
	for _, name := range store.Offered() {
		if !slices.ContainsFunc(known, func(k knownBuild) bool { return k.Name == name }) {
			known = append(known, knownBuild{Name: name})
		}
	}
	return known, nil
}

func printBuilds(out io.Writer, builds []knownBuild) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUNTIME\tSTATE\tLIBRARY OR REMEDY") // errors show at Flush
	for _, b := range builds {
		state, where := "not installed", "tuner runtime install "+b.Name
		if b.Installed {
			state, where = "installed", b.Library
		}
		if b.Selected {
			state = "selected"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", b.Name, state, where)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot print the runtimes: %w", err)
	}
	return nil
}

// interruptedOr gives an error the exit code of an interruption when that is what it comes from.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return withExit(exitInterrupted, fmt.Errorf("interrupted: %w", err))
	}
	return err
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
