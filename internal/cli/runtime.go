package cli

import (
	"context"
	"fmt"
	"io"
	"os"
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

To use a library of your own instead, name it with --ort-library or TUNER_ORT_LIBRARY: what is called cpu, openvino or cuda,
with or without @VERSION, is a build; any other name, and what has a slash, is a library file.`,
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
		Use:   "install FLAVOUR[@VERSION]",
		Short: "Download and unpack a build",
		Long: `Downloads a build, verifies its digest and unpacks it. One that is installed already is left as it is, and nothing is
downloaded; a damaged one is replaced. 'tuner runtime list' shows what can be installed.`,
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
				return interruptedOr(cmd.Context(), inputError(err))
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
	Library   string       `json:"library,omitempty"` // "" unless installed; of a damaged build its folder
	Error     string       `json:"error,omitempty"`   // why it cannot be used, and the remedy
	build     ortlib.Build // zero unless it can be used
}

// knownBuilds lists the library named by TUNER_ORT_LIBRARY, the installed builds, those of them that are damaged, then those that
// can be installed.
func knownBuilds() ([]knownBuild, error) {
	store, err := ortlib.UserStore()
	if err != nil {
		return nil, err
	}
	installed, err := store.List()
	if err != nil {
		return nil, inputError(err)
	}
	damaged, err := store.Damaged()
	if err != nil {
		return nil, inputError(err)
	}
	known := []knownBuild{}
	selected, selectErr := ortlib.Resolve("")
	named := os.Getenv("TUNER_ORT_LIBRARY")
	switch {
	case selectErr != nil && named != "": // unset, there is just no build to select
		known = append(known, knownBuild{Name: ortlib.External, Library: named, Error: selectErr.Error()})
	case selectErr == nil && selected.Flavour == ortlib.External:
		installed = append([]ortlib.Build{selected}, installed...)
	}
	for _, build := range installed {
		known = append(known, knownBuild{Name: build.Name(), Installed: true, Selected: selectErr == nil && build == selected, Library: build.Library, build: build})
	}
	for _, d := range damaged {
		known = append(known, knownBuild{Name: d.Name, Installed: true, Library: d.Dir, Error: d.Err.Error()})
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
