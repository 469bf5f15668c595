package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tuner/internal/buildfacts"
	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/terminal"
)

// run executes the command line and returns the exit code. Tests call it in the same way as the
// program.
func run(ctx context.Context, con console, args []string) int {
	root := newRoot(con)
	root.SetArgs(args)
	root.SetFlagErrorFunc(arguments.Mistake(args))
	arguments.PlainCompletion(root, args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(con.err, "tuner: %s\n", terminal.Plain(terminal.Bounded(err.Error())))
	}
	return exit.CodeOf(err)
}

// helpWidth is the largest width of a line of help, in columns.
const helpWidth = 100

const promise = `tuner finds the best way to serve an ONNX model on this machine. It measures configurations under load, within your
limits on latency, memory and accuracy. It reports every figure with a 95 % interval, and writes a Triton model repository that is
ready to deploy.

Begin with: tuner run model.onnx --p99 30ms`

// newRoot makes the root command with all verbs.
func newRoot(con console) *cobra.Command {
	root := &cobra.Command{
		Use:           "tuner",
		Short:         "Find the best way to serve an ONNX model on this machine",
		Long:          terminal.Fill(promise, helpWidth) + "\n\n" + exit.Help,
		Version:       toolVersion(),
		Args:          arguments.UnknownVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(con.in)
	root.SetVersionTemplate(buildfacts.Text())
	root.SetOut(con.out)
	root.SetErr(con.err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddGroup(groups()...)
	root.SetHelpCommandGroupID(setUp)
	root.AddCommand(verbs(con)...)
	refuseUnknownHelp(root)
	return root
}

// refuseUnknownHelp makes `tuner help` refuse unknown verbs. cobra's own ends with exit code 0.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it has just been added
	}
	help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil {
			return exit.Usagef("%w", err)
		}
		if err := arguments.UnknownVerb(about, rest); err != nil {
			return err
		}
		return about.Help()
	}
}

// verb folds the description of a command to the width of a terminal, and adds the exit codes to
// it.
func verb(cmd *cobra.Command) *cobra.Command {
	cmd.Long = terminal.Fill(cmd.Long, helpWidth) + "\n\n" + exit.Help
	return cmd
}
