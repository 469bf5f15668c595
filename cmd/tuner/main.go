// Command tuner finds the best way to serve an ONNX model on this machine and writes a Triton model repository that is
// ready to deploy. Package internal/cli has its verbs.
package main

import (
	"os"

	"tuner/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
