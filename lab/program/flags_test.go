package program_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tuner/lab/program"
)

// options are those of a program with a flag of every kind.
type options struct {
	rounds                            int
	what, results, model, ort, binary string
}

func define(f *program.Flags, o *options) {
	f.IntVar(&o.rounds, "rounds", 5, "how often")
	f.Choice(&o.what, "what", "all", []string{"fast", "all"}, "which part")
	f.Path(&o.results, "results", "", "folder that keeps the results")
	f.Existing(&o.model, "model", "flags_test.go", "model")
	f.Tuner(&o.binary)
	f.Library(&o.ort)
	f.Check(func() error {
		if o.rounds < 1 {
			return fmt.Errorf("-rounds %d: must be above zero", o.rounds)
		}
		return nil
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"-ort-library", "lib.so", "-tuner", "flags.go"}
	check := func(want options, wantErr string, args ...string) {
		t.Helper()
		var messages bytes.Buffer
		o, err := program.Parse(define, append(good, args...), &messages)
		if text := fmt.Sprint(err); !strings.Contains(text, wantErr) || o != want {
			t.Errorf("%q: %+v, %v; want %+v, %s", args, o, err, want, wantErr)
		}
	}
	binary, model := filepath.Join(here, "flags.go"), filepath.Join(here, "flags_test.go")
	check(options{5, "all", "", model, "lib.so", binary}, "<nil>")
	check(options{3, "fast", filepath.Join(here, "r"), binary, "lib.so", binary}, "<nil>",
		"-rounds", "3", "-what", "fast", "-results", "r", "-model", "flags.go")
	check(options{}, `unexpected argument "more"`, "-rounds", "3", "more")
	check(options{}, "flag provided but not defined: -laps", "-laps", "3")
	check(options{}, "-rounds 0: must be above zero", "-rounds", "0")
	check(options{}, `-what "slow": allowed are fast, all`, "-what", "slow")
	check(options{}, `-model: cannot find "none.onnx"`, "-model", "none.onnx")
	check(options{}, "no ONNX Runtime library", "-ort-library", "")
}
