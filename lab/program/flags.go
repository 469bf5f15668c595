package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Flags are a program's flags, and the checks of their values.
type Flags struct {
	*flag.FlagSet
	checks []func() error
}

// Parse reads the options of a program that takes flags alone. It prints help and mistakes to
// messages.
func Parse[O any](define func(*Flags, *O), args []string, messages io.Writer) (O, error) {
	var o, none O
	f := &Flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)}
	f.SetOutput(messages)
	define(f, &o)
	if err := f.FlagSet.Parse(args); err != nil {
		return none, err
	}
	if f.NArg() > 0 {
		return none, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	for _, check := range f.checks {
		if err := check(); err != nil {
			return none, err
		}
	}
	return o, nil
}

// Check adds a check of the values. Checks run in the order in which they were added, after all
// flags were read.
func (f *Flags) Check(check func() error) { f.checks = append(f.checks, check) }

// Choice defines a flag that takes one of the allowed values.
func (f *Flags) Choice(p *string, name, value string, allowed []string, usage string) {
	f.StringVar(p, name, value, usage+": "+strings.Join(allowed, ", "))
	f.Check(func() error {
		if !slices.Contains(allowed, *p) {
			return fmt.Errorf("-%s %q: allowed are %s", name, *p, strings.Join(allowed, ", "))
		}
		return nil
	})
}

// List defines a flag of values that are separated by commas.
func (f *Flags) List(p *[]string, name string, value []string, usage string) {
	*p = value
	if value != nil {
		usage += " (default " + strings.Join(value, ",") + ")"
	}
	f.Func(name, usage, func(text string) error {
		*p = strings.Split(text, ",")
		return nil
	})
}

// Path defines a flag for a file or a folder. Its value becomes an absolute path; an empty one
// stays empty.
func (f *Flags) Path(p *string, name, value, usage string) {
	f.StringVar(p, name, value, usage)
	f.Check(func() error {
		if *p == "" {
			return nil
		}
		absolute, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("-%s: cannot resolve %q: %w", name, *p, err)
		}
		*p = absolute
		return nil
	})
}

// Existing defines a flag like Path, for a file or a folder that must exist.
func (f *Flags) Existing(p *string, name, value, usage string) {
	f.Check(func() error {
		if _, err := os.Stat(*p); err != nil {
			return fmt.Errorf("-%s: cannot find %q: %w", name, *p, err)
		}
		return nil
	})
	f.Path(p, name, value, usage)
}

// Tuner defines -tuner, the tuner program.
func (f *Flags) Tuner(p *string) { f.Existing(p, "tuner", "bin/tuner", "the tuner program") }

// Library defines -ort-library, which is required.
func (f *Flags) Library(p *string) {
	f.StringVar(p, "ort-library", os.Getenv("TUNER_ORT_LIBRARY"), "ONNX Runtime library")
	f.Check(func() error {
		if *p == "" {
			return errors.New("no ONNX Runtime library: give -ort-library, or set TUNER_ORT_LIBRARY")
		}
		return nil
	})
}
