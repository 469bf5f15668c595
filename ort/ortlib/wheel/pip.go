package wheel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"tuner/internal/children"
)

// pipDownload lets pip download the wheel into dir. progress is pip's standard output: pip draws a
// bar on a terminal.
func pipDownload(ctx context.Context, python string, spec Spec, dir string, progress io.Writer) error {
	if err := checkPip(ctx, python); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(progress, "%s: downloading with %s -m pip download\n", spec.Requirement, python); err != nil {
		return err
	}
	cmd := children.Command(ctx, python, append([]string{"-m", "pip"}, pipArguments(spec, dir)...)...)
	var complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = progress, &complaints
	if err := children.Run(cmd); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("pip failed (%w):\n%s", err, children.LastLines(complaints.String(), 8))
	}
	return nil
}

func pipArguments(spec Spec, dir string) []string {
	args := []string{"download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--dest", dir}
	for _, option := range [][2]string{{"--platform", spec.Platform}, {"--python-version", spec.PythonVersion}, {"--abi", spec.ABI}} {
		if option[1] != "" {
			args = append(args, option[0], option[1])
		}
	}
	if spec.ABI != "" {
		args = append(args, "--implementation", "cp")
	}
	return append(args, "--", spec.Requirement)
}

// Check reports whether Fetch can download at all: whether python3 with pip is there. The error
// says what to install.
func Check(ctx context.Context) error { return checkPip(ctx, "python3") }

// checkPip distinguishes a missing python3 and a missing pip from a failing download.
func checkPip(ctx context.Context, python string) error {
	if _, err := exec.LookPath(python); err != nil {
		return fmt.Errorf("%s is not on the PATH; install Python 3 with pip: it fetches packages with your own index and proxy settings", python)
	}
	output, err := children.Output(children.Command(ctx, python, "-m", "pip", "--version"))
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit):
		return fmt.Errorf("%s has no working pip; install it (Debian: apt-get install python3-pip; elsewhere: %s -m ensurepip):\n%s", python, python, children.LastLines(string(output), 3))
	}
	return err
}
