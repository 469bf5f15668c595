package precision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/children/childrentest"
	"tuner/model/dataset"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
)

func TestRunCommand(t *testing.T) {
	t.Parallel()
	for command, c := range map[string]struct {
		value   float64
		problem string
	}{
		`echo loading; echo ' 0.25 '; echo; echo "$0" >&2; true`:       {value: .25},
		`f() { test "$1" = 'a b' && test "$2" = c && echo -3e-1; }; f`: {value: -.3},
		`echo 1; false`: {problem: "exit status 1: "},
		`f() { echo first >&2; echo 'no such column' >&2; exit 3; }; f`: {problem: "exit status 3: no such column"},
		`echo good`:  {problem: `its last line is "good a b c", not a number`},
		`echo NaN;:`: {problem: `its last line is "NaN", not a number`},
		`true`:       {problem: `its last line is "", not a number`},
	} {
		value, err := runCommand(t.Context(), command, []string{"a b", "c"}, time.Minute)
		var failed *CommandError
		switch {
		case c.problem == "" && (err != nil || value != c.value):
			t.Errorf("%s: %v, %v; want %v", command, value, err, c.value)
		case c.problem != "" && (!errors.As(err, &failed) || !strings.Contains(failed.Problem, c.problem) || failed.Command != command):
			t.Errorf("%s: %v, %v lacks %q", command, value, err, c.problem)
		}
	}
}

// A command that takes too long is killed with all its children. So is one whose context ends.
func TestRunCommandEnds(t *testing.T) {
	t.Parallel()
	const sleeping = `sleep 1000 & wait; :`
	var failed *CommandError
	if _, err := runCommand(t.Context(), sleeping, nil, 10*time.Millisecond); !errors.As(err, &failed) || failed.Problem != "it took more than 10ms" {
		t.Errorf("too long: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := runCommand(ctx, sleeping, nil, time.Minute); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) {
		t.Errorf("interrupted: %v", err)
	}
}

// The command reads both sides' outputs, with concatenated batches.
func TestMetric(t *testing.T) {
	t.Parallel()
	kept := t.TempDir()
	reference := accuracy.Outputs{{"y": floats([]float32{1, 2}, 2), "n": floats([]float32{5})}, {"y": floats([]float32{3}, 1), "n": floats([]float32{6})}}
	variant := accuracy.Outputs{{"y": floats([]float32{7, 8}, 2)}, {"y": floats([]float32{9}, 1)}}
	value, err := runMetric(t.Context(), `f() { cp "$1" "$2" `+kept+`; echo 42; }; f`, nil, reference, variant)
	if err != nil || value != 42 {
		t.Fatalf("%v, %v", value, err)
	}
	for name, want := range map[string]map[string]inputs.Tensor{
		"reference.npz": {"y": floats([]float32{1, 2, 3}, 3), "n": floats([]float32{5, 6}, 2)},
		"variant.npz":   {"y": floats([]float32{7, 8, 9}, 3)},
	} {
		arrays, err := npy.ReadArchive(filepath.Join(kept, name), npy.Options{})
		if err != nil || len(arrays) != len(want) {
			t.Errorf("%s: %v, %v", name, arrays, err)
		}
		for output, a := range want {
			if b := arrays[output]; string(a.Data) != string(b.Data) || len(b.Shape) != 1 || b.Shape[0] != a.Shape[0] || b.Type != onnx.Float {
				t.Errorf("%s: %s is %+v, want %+v", name, output, b, a)
			}
		}
	}
	ragged := accuracy.Outputs{{"y": floats([]float32{1, 2}, 1, 2)}, {"y": floats([]float32{3}, 1, 1)}}
	if _, err := runMetric(t.Context(), "echo 1;:", nil, ragged, variant); err == nil || !strings.Contains(err.Error(), "rows of shape [2] and of [1]") {
		t.Errorf("rows of different shapes: %v", err)
	}
}

// The command reads the rows of several shapes in the order of the file. Here its first row is the one of a
// large shape, which is run last; the other three have a batch of their own.
func TestMetricInTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	kept, least := t.TempDir(), 0.0
	part := func(places []int, values ...float32) dataset.Dataset {
		n := len(places)
		return dataset.Dataset{Name: "rows", Rows: n, Places: places, Batched: true, Inputs: map[string]inputs.Tensor{"x": floats(values, int64(n), 2)}}
	}
	data := dataset.Join([]dataset.Dataset{part([]int{1, 2, 3}, 1, 10, 2, 20, 3, 30), part([]int{0}, 0, 5)})
	l := newLab(t, map[string]float64{"a": .25})
	k := l.maker(0, func(o *Options) {
		o.Data = data
		o.Limit = &accuracy.Limit{Metric: "command", Min: &least, Command: `f() { cp "$1" "$2" ` + kept + `; echo 1; }; f`}
	})
	l.make(k, recipe.Int8, "cpu")
	for name, want := range map[string][]float32{
		"reference.npz": {0, 5, 1, 10, 2, 20, 3, 30},
		"variant.npz":   {.25, 5.25, 1.25, 10.25, 2.25, 20.25, 3.25, 30.25},
	} {
		arrays, err := npy.ReadArchive(filepath.Join(kept, name), npy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(floats(want, 4, 2), arrays["y"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The user's metric decides. It runs again each time, since its dependencies are unknown.
func TestMetricAsLimit(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "metric.sh")
	write := func(value string) {
		if err := os.WriteFile(script, []byte("echo "+value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("0.5")
	l := newLab(t, eight())
	least := .6
	k := l.maker(0, func(o *Options) {
		o.Limit = &accuracy.Limit{Metric: "command", Min: &least, Command: "sh " + script}
		o.MaxKept = 0
	})
	if v := l.make(k, recipe.Int8, "cpu"); !strings.HasPrefix(v.Rejected["cpu"], "command is 0.5, less than 0.6") || *v.Accuracy["cpu"].Command != .5 {
		t.Errorf("%+v", v)
	}
	write("0.7")
	if v := l.make(k, recipe.Int8, "cpu"); len(v.Rejected) != 0 || v.FromCache || *v.Accuracy["cpu"].Command != .7 {
		t.Errorf("with another script: %+v", v)
	}
	mine := read(t, l.make(k, recipe.Int8, "cpu").Path)
	for _, value := range []float64{.8, .5} {
		write(fmt.Sprint(value))
		v, err := k.Check(t.Context(), "mine", mine, []string{"cpu"})
		if err != nil || *v.Accuracy["cpu"].Command != value || (v.Rejected["cpu"] != "") != (value < least) {
			t.Errorf("a file of the user's own, %v: %+v, %v", value, v, err)
		}
	}
	write("good")
	if _, err := k.Make(t.Context(), recipe.Int8, []string{"cpu"}); !errors.As(err, new(*CommandError)) {
		t.Errorf("a script without a number: %v", err)
	}
}

// A variant that yields NaN is rejected because of that. The command is not run, since it might
// fail.
func TestMetricOfNoNumbers(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]float64{"a": math.NaN()})
	least := .5
	v := l.make(l.maker(0, func(o *Options) { o.Limit = &accuracy.Limit{Metric: "command", Min: &least, Command: "false"} }), "fp16", "cpu")
	want := `output "y" has 40 elements that are NaN or infinite where the original's are not`
	if v.Rejected["cpu"] != want || v.Accuracy["cpu"].Command != nil {
		t.Errorf("%+v, want %q", v, want)
	}
}

// A metric ends with a killed tuner, and so do its children.
func TestCommandEndsWithTuner(t *testing.T) {
	childrentest.CheckKilled(t, func(script string) {
		_, _ = runCommand(context.Background(), script, nil, time.Hour)
	})
}

// The next metric removes what a killed tuner left behind.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	left := filepath.Join(dir, metricFolder+"1234567")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "reference.npz"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := runMetric(t.Context(), "echo 1; #", nil, accuracy.Outputs{}, accuracy.Outputs{}); err != nil {
		t.Fatal(err)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 0 {
		t.Errorf("left are %v, %v; want nothing", found, err)
	}
}
