package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/model/framework"
)

// usageArgs makes wrong arguments end the program with exit code 2.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exit.Usagef("%v\nSee '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}

// fileByFlag refuses arguments of a verb that reads a file, and says what to write instead.
// forModel and forFolder are the advice for a model file and for a folder, with %[1]s for the
// argument; "" is the advice for a file.
func fileByFlag(forModel, forFolder string) cobra.PositionalArgs {
	return usageArgs(func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		advice := "give the file as -f %[1]s"
		info, err := os.Stat(args[0])
		switch {
		case forFolder != "" && err == nil && info.IsDir():
			advice = forFolder
		case forModel != "" && (filepath.Ext(args[0]) == ".onnx" || isForeign(args[0])):
			advice = forModel
		}
		return fmt.Errorf("unexpected argument %q: "+advice, args[0])
	})
}

// isForeign reports whether a path is a framework's model.
func isForeign(path string) bool {
	_, is := framework.Of(path)
	return is
}

// flagMistake explains a wrong flag. If args begin with a word that is not a verb, that word is the
// mistake: the flags of an unknown verb are unknown, too.
func flagMistake(args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			return unknownVerb(cmd, args)
		}
		return exit.Usagef("%v%s\nSee '%s --help'", err, flagHint(cmd.Flags(), err), cmd.CommandPath())
	}
}

// flagHint returns the remedy for a wrong flag; "" without one.
func flagHint(flags *pflag.FlagSet, err error) string {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		var names []string
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := words.Nearest(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
			return fmt.Sprintf("; did you mean --%s?", near)
		}
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration":
		return "; write a number with a unit, such as 30s or 5m"
	}
	return ""
}
