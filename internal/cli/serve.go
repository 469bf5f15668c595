//go:build !noengine

package cli

import (
	"github.com/spf13/cobra"

	"tuner/engine/flags"
	"tuner/engine/serve"
	"tuner/internal/exit"
)

const serveLong = `Serve the models of a Triton model repository over HTTP and gRPC, with metrics, on ONNX Runtime.

The options are tritonserver's, with its names and defaults. Only the addresses have another default: this server listens on loopback.
Options for threads, pools and parts that this server does not have are accepted with a warning. Options that would change what is
served are refused.

Port 0 is any free port. The first SIGINT or SIGTERM ends the server when its requests are answered, and the second ends it at once.
After the first one the server is not ready. With --drain-delay it accepts connections for that time before it closes its ports. SIGHUP
reopens the log files and reads the certificates of gRPC again. A wrong option ends it with exit code 2 (tritonserver: 1).`

func newServe(con console) *cobra.Command {
	o := &flags.Options{}
	cmd := verb(&cobra.Command{
		Use:     "serve --model-repository DIR",
		Short:   "Serve a model repository with the bundled engine (tritonserver's options)",
		Long:    serveLong,
		Example: "  tuner serve --model-repository out/minilm/repository --http-port 8000",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("Unexpected argument: %s", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return serve.Run(cmd.Context(), con.err, o) },
	})
	o.Add(cmd.Flags())
	return cmd
}
