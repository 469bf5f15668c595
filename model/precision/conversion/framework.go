package conversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"tuner/internal/exit"
	"tuner/model/framework"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
	"tuner/ort/provider"
)

// ExportPath returns the ONNX file for a framework's model in a folder.
func ExportPath(path, dir string) string { return filepath.Join(dir, framework.ExportName(path)) }

// exportTarget returns the ONNX file for a framework's model, NAME.onnx in dir. It refuses an existing
// file unless force is set.
func exportTarget(path, dir string, force bool) (string, error) {
	out := ExportPath(path, dir)
	if _, err := os.Lstat(out); !force && err == nil {
		return "", exit.Usagef("cannot export %q to %q, which exists; replace it with --force, or convert it with 'tuner convert %s'", path, out, out)
	}
	return out, nil
}

// Export converts a framework's model to ONNX with a Python ("" is python3 of the PATH). It compares
// the result with the framework on the cpu provider of open. It reports its progress in messages.
func Export(ctx context.Context, messages io.Writer, source framework.Source, python, out string, open precision.Opener) error {
	name := source.Framework.Name
	fmt.Fprintf(messages, "%s: exporting with %s\n", source.Path, name)
	report, err := framework.Export(ctx, source, python, out, cpuRunner{open})
	switch {
	case ctx.Err() != nil:
		return exit.OrInterrupted(ctx, err)
	case errors.Is(err, framework.ErrPermission):
		return exit.Usagef("%w\ngive the permission with --allow-pickle", err)
	case errors.As(err, new(*framework.WriteError)):
		return exit.Usagef("%w\nchoose another folder with -o", err)
	case err != nil:
		return exit.With(exit.Usage, err)
	}
	fmt.Fprintf(messages, "%s: %s, exported by %s with %s %s; %s\n", out, report.Kind, report.Exporter, name, report.Version, agreementText(name, report))
	return nil
}

// agreementText describes the agreement of an exported model with its framework. Whole numbers are
// either equal or not.
func agreementText(name string, r framework.Report) string {
	if math.IsNaN(r.MaxAbs) {
		return fmt.Sprintf("outputs equal those of %s on %d random inputs", name, r.Examples)
	}
	return fmt.Sprintf("greatest difference from the outputs of %s on %d random inputs: %.2g", name, r.Examples, r.MaxAbs)
}

// cpuRunner runs ONNX files on the execution provider cpu.
type cpuRunner struct{ open precision.Opener }

// Run implements framework.Runner.
func (r cpuRunner) Run(ctx context.Context, model string, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	m, err := onnx.Read(model)
	if err != nil {
		return nil, err
	}
	session, err := r.open.Open(ctx, m, provider.CPU)
	if err != nil {
		return nil, err
	}
	defer session.Close(ctx)
	return session.Infer(ctx, in)
}
