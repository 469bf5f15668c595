package precision

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/internal/children"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/model/dataset/npy"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
)

// commandTimeout limits the time of a user's metric.
const commandTimeout = 10 * time.Minute

// maxWords limits the stored output of a command, in bytes.
const maxWords = 64 << 10

// runMetric runs the user's command with the names of two .npz files after its own arguments: the
// outputs of the original and of the variant, with the rows in an order (dataset.Dataset.Order). It
// returns the number on the last line of the output.
func runMetric(ctx context.Context, command string, order []int, reference, variant accuracy.Outputs) (float64, error) {
	folder, err := durable.NewScratch("", metricFolder)
	if err != nil {
		return 0, fmt.Errorf("cannot make a folder for the outputs: %w", err)
	}
	defer folder.Close() // the next one removes what stays
	files := []string{filepath.Join(folder.Dir, "reference.npz"), filepath.Join(folder.Dir, "variant.npz")}
	for i, outputs := range []accuracy.Outputs{reference, variant} {
		arrays, err := joined(outputs, order)
		if err == nil {
			err = durable.WriteFile(files[i], func(w io.Writer) error { return npy.WriteArchive(w, arrays) })
		}
		if err != nil {
			return 0, fmt.Errorf("cannot write the outputs for the metric's command: %w", durable.Cause(err))
		}
	}
	return runCommand(ctx, command, files, commandTimeout)
}

// metricFolder begins the names of the folders with the outputs for a metric.
const metricFolder = "tuner-metric-"

// CommandError means that the command of the user's metric gave no number.
type CommandError struct{ Command, Problem string }

func (e *CommandError) Error() string {
	return fmt.Sprintf("cannot compute the metric with the command %q: %s", e.Command, e.Problem)
}

// ExitCode implements exit.Coded.
func (e *CommandError) ExitCode() int { return exit.Usage }

// runCommand runs a shell command line with additional arguments.
func runCommand(ctx context.Context, command string, files []string, timeout time.Duration) (float64, error) {
	whole, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := children.Command(whole, "/bin/sh", append([]string{"-c", command + ` "$@"`, "sh"}, files...)...)
	var stdout, stderr lastBytes
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := children.Run(cmd)
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case whole.Err() != nil:
		return 0, &CommandError{command, fmt.Sprintf("it took more than %v", timeout)}
	case err != nil:
		return 0, &CommandError{command, fmt.Sprintf("%v: %s", err, stderr.lastLine())}
	}
	line := stdout.lastLine()
	value, err := strconv.ParseFloat(line, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, &CommandError{command, fmt.Sprintf("its last line is %q, not a number; "+
			"it gets the names of two .npz files, the outputs of original and variant, and prints the metric last", line)}
	}
	return value, nil
}

// lastBytes keeps the last maxWords written bytes.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	l.kept = l.kept[max(0, len(l.kept)-maxWords):]
	return len(p), nil
}

// lastLine returns the last non-empty line; "" without one.
func (l *lastBytes) lastLine() string {
	lines := bytes.Split(bytes.TrimSpace(l.kept), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}

// joined concatenates the rows of each output's batches into one array, and puts them in an order. An
// output without dimensions becomes a row of numbers, one per batch.
func joined(outputs accuracy.Outputs, order []int) (map[string]inputs.Tensor, error) {
	arrays := map[string]inputs.Tensor{}
	for _, batch := range outputs {
		for _, name := range slices.Sorted(maps.Keys(batch)) {
			t := batch[name]
			if len(t.Shape) == 0 {
				t.Shape = []int64{1}
			}
			all, known := arrays[name]
			if !known {
				all = inputs.Tensor{Type: t.Type, Shape: append([]int64{0}, t.Shape[1:]...)}
			}
			if !slices.Equal(all.Shape[1:], t.Shape[1:]) {
				return nil, fmt.Errorf("the output %q has rows of shape %v and of %v, which do not fit into one array", name, all.Shape[1:], t.Shape[1:])
			}
			all.Shape[0] += t.Shape[0]
			all.Data, all.Strings = append(all.Data, t.Data...), append(all.Strings, t.Strings...)
			arrays[name] = all
		}
	}
	if !slices.IsSorted(order) {
		for name, t := range arrays {
			arrays[name] = inOrder(t, order)
		}
	}
	return arrays, nil
}

// inOrder puts the rows of the data in an order; each may have several rows of the output. An output
// without the rows of the data, such as one number per batch, stays as it is.
func inOrder(t inputs.Tensor, order []int) inputs.Tensor {
	if int(t.Shape[0])%len(order) != 0 {
		return t
	}
	bytes, texts := len(t.Data)/len(order), len(t.Strings)/len(order)
	ordered := inputs.Tensor{Type: t.Type, Shape: t.Shape}
	for _, i := range order {
		ordered.Data = append(ordered.Data, t.Data[i*bytes:(i+1)*bytes]...)
		ordered.Strings = append(ordered.Strings, t.Strings[i*texts:(i+1)*texts]...)
	}
	return ordered
}
