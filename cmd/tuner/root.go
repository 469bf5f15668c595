package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// run executes the command line and returns the exit code. Tests call exactly what the user runs.
func run(ctx context.Context, con console, args []string) int {
	root := newRoot(con)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(con.err, "tuner: %v\n", err)
	}
	return exitCode(err)
}

// newRoot wires the verbs.
func newRoot(con console) *cobra.Command {
	root := &cobra.Command{
		Use:           "tuner",
		Short:         "Find the best way to serve an ONNX model, prove it, and write a deployable Triton repository",
		Long:          "tuner finds the best way to serve an ONNX model on this machine, proves it with honest statistics,\nand writes a Triton model repository that is ready to deploy.\n\n" + exitCodesHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(con.in)
	root.SetOut(con.out)
	root.SetErr(con.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageErrorf("%v\nSee '%s --help'", err, cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(verbs(con)...)
	return root
}

// verb gives a command what every verb shares: the exit codes in its help.
func verb(cmd *cobra.Command) *cobra.Command {
	cmd.Long += "\n\n" + exitCodesHelp
	return cmd
}
