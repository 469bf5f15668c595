package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tuner/analyze"
	"tuner/hostinfo"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/spec"
)

// The names below stand for those of packages exit, words, inputs and hostinfo while files move out of this package.
const (
	exitOK           = exit.OK
	exitFailure      = exit.Failure
	exitUsage        = exit.Usage
	exitGateFailed   = exit.GateFailed
	exitInconclusive = exit.Inconclusive
	exitInfeasible   = exit.Infeasible
	exitInterrupted  = exit.Interrupted
)

func usageErrorf(format string, args ...any) error       { return exit.Usagef(format, args...) }
func withExit(code int, err error) error                 { return exit.With(code, err) }
func exitCode(err error) int                             { return exit.CodeOf(err) }
func leading(err, others error) error                    { return exit.Leading(err, others) }
func interruptedOr(ctx context.Context, err error) error { return exit.OrInterrupted(ctx, err) }
func clockText(d time.Duration) string                   { return words.Clock(d) }
func briefly(reason string) string                       { return words.Brief(reason) }
func isLocal(host string) bool                           { return hostinfo.IsLocal(host) }

func rankCampaign(a spec.Analyze) (analyze.Result, error) { return analyze.RankFile(a) }
func infeasible(r analyze.Result) error                   { return r.Unmet() }

// inputError gives exit code 2 to errors of files and folders that cannot be written.
func inputError(err error) error { return exit.OfFiles(err) }

// usageArgs makes wrong arguments end the program with exit code 2.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exit.Usagef("%v\nSee '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}

// fileByFlag refuses arguments, and says how a verb's file is given.
func fileByFlag(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: the file is given as -f %s", args[0], args[0])
	}
	return nil
}

// countText prints a number with its noun.
func countText(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
