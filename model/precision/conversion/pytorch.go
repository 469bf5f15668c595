package conversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
	"tuner/model/pytorch"
	"tuner/ort/provider"
)

// ExportPath returns the ONNX file for a PyTorch file in a folder.
func ExportPath(path, dir string) string {
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))+".onnx")
}

// exportTarget returns the ONNX file for a PyTorch file, NAME.onnx in dir. It refuses an existing
// file unless force is set.
func exportTarget(path, dir string, force bool) (string, error) {
	out := ExportPath(path, dir)
	if _, err := os.Lstat(out); !force && err == nil {
		return "", exit.Usagef("cannot export %q to %q, which exists; replace it with --force, or convert it with 'tuner convert %s'", path, out, out)
	}
	return out, nil
}

// Export converts a PyTorch file to ONNX with a Python ("" is python3 of the PATH). It compares the
// result with PyTorch on the cpu provider of open. It reports its progress in messages.
func Export(ctx context.Context, messages io.Writer, source pytorch.Source, python, out string, open precision.Opener) error {
	fmt.Fprintf(messages, "%s: exporting with PyTorch\n", source.Path)
	report, err := pytorch.Export(ctx, source, python, out, cpuRunner{open})
	switch {
	case ctx.Err() != nil:
		return exit.OrInterrupted(ctx, err)
	case errors.Is(err, pytorch.ErrPermission):
		return exit.Usagef("%w\ngive the permission with --allow-pickle", err)
	case errors.As(err, new(*pytorch.WriteError)):
		return exit.Usagef("%w\nchoose another folder with -o", err)
	case err != nil:
		return exit.With(exit.Usage, err)
	}
	fmt.Fprintf(messages, "%s: %s, exported by the %s of PyTorch %s; %s\n", out, report.Kind, report.Exporter, report.Torch, agreementText(report))
	return nil
}

// agreementText describes the agreement of an exported model with PyTorch. Whole numbers are either
// equal or not.
func agreementText(r pytorch.Report) string {
	if math.IsNaN(r.MaxAbs) {
		return fmt.Sprintf("outputs equal PyTorch's on %d random inputs", r.Examples)
	}
	return fmt.Sprintf("greatest difference from PyTorch's outputs on %d random inputs: %.2g", r.Examples, r.MaxAbs)
}

// cpuRunner runs ONNX files on the execution provider cpu.
type cpuRunner struct{ open precision.Opener }

// Run implements pytorch.Runner.
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
