package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// Root returns the root command with all verbs, for those who write pages about it. It has no
// input, and its output is lost.
func Root() *cobra.Command {
	return newRoot(console{out: io.Discard, err: io.Discard})
}
