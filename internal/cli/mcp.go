package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/mcp"
)

func newMCP(con console) *cobra.Command {
	o := mcp.Options{Version: toolVersion(), In: con.in, Out: con.out, Messages: con.err}
	cmd := verb(&cobra.Command{
		Use:   "mcp",
		Short: "Serve the verbs to an assistant, over the Model Context Protocol",
		Long: `Speaks the Model Context Protocol on standard input and output, for assistants and editors that start it. Its tools inspect a model, run and
watch a campaign, read and explain the answer, compare runs, and export a deployment.

Clients may name files below the folder of --root alone. They run no commands, and no servers but tuner's own engine. One campaign runs at a
time. It ends with this process, and keeps what it measured.`,
		Example: "  tuner mcp\n  tuner mcp --root ~/models --root ~/tuned",
		Args:    arguments.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = os.Executable(); err != nil {
				return fmt.Errorf("cannot find tuner's own program: %w", err)
			}
			return mcp.Serve(cmd.Context(), o)
		},
	})
	cmd.Flags().StringArrayVar(&o.Roots, "root", nil, "`folder` below which clients may name files; may be repeated (default: the working folder)")
	return cmd
}
