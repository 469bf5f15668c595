package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/cli/runtimes"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/ort/ortlib"
)

func newRuntime(con console) *cobra.Command {
	cmd := verb(&cobra.Command{
		Use:   "runtime",
		Short: "Install and list ONNX Runtime builds",
		Long: `Installs official builds of ONNX Runtime, several versions side by side, into your cache folder (TUNER_CACHE, else ~/.cache/tuner on
Linux). Version and digest of each build are fixed. Your own pip fetches it, with your index and proxy settings. Nothing is installed
into a Python environment.

To use a library of your own, name it with --ort-library or TUNER_ORT_LIBRARY. The values cpu, openvino and cuda, with or without
@VERSION, are builds. Any other name, and any value with a slash, is a library file.`,
		Example: "  tuner runtime install cpu\n  tuner runtime install cpu@1.24.4\n  tuner runtime list",
		Args:    arguments.UnknownVerb,
		RunE: func(*cobra.Command, []string) error {
			return exit.Usagef("cannot run 'tuner runtime' alone: use 'tuner runtime install FLAVOUR' or 'tuner runtime list'")
		},
	})
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newRuntimeInstall(con), newRuntimeList(con))
	return cmd
}

func newRuntimeInstall(con console) *cobra.Command {
	return verb(&cobra.Command{
		Use:   "install FLAVOUR[@VERSION]",
		Short: "Download and unpack a build",
		Long: `Downloads a build, verifies its digest and unpacks it. An installed build stays as it is, and nothing is downloaded.
A damaged build is replaced. 'tuner runtime list' shows what can be installed.

On a machine without a network, pip takes the wheel from a folder that PIP_FIND_LINKS names, with PIP_NO_INDEX=1.`,
		Example: "  tuner runtime install openvino",
		Args: arguments.Usage(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one build, such as cpu, openvino or cuda (%d given); 'tuner runtime list' shows all", len(args))
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runtimes.Install(cmd.Context(), con.out, con.err, args[0])
		},
	})
}

func newRuntimeList(con console) *cobra.Command {
	var output string
	cmd := verb(&cobra.Command{
		Use:   "list",
		Short: "Show the builds that are installed and those that can be",
		Args:  arguments.Usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if err := arguments.CheckFormat(output); err != nil {
				return err
			}
			builds, err := ortlib.Known()
			if err != nil {
				return exit.OfFiles(err)
			}
			if output == "json" {
				return writeJSON(con.out, builds)
			}
			return runtimes.Print(con.out, builds)
		},
	})
	terminal.AddFormat(cmd.Flags(), &output, "`format` on stdout: text or json")
	return cmd
}
