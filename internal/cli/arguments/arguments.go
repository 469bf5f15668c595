// Package arguments reads what stands beside flags: files, folders and models as plain arguments, and
// environment variables for flags. It explains mistakes in them. Every error has exit code 2.
package arguments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/model/framework"
)

// Usage makes wrong arguments end the program with exit code 2.
func Usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exit.Usagef("%v\nSee '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}

// Plain takes a file in place of -f, and a folder in place of the flag for one. folder is nil
// if the verb reads no folder. forModel is the advice for a model in their place, with %[1]s for the
// argument; "" without one.
func Plain(file, folder *string, forModel string) cobra.PositionalArgs {
	return Usage(func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if len(args) > 1 {
			return fmt.Errorf("%s takes one file or folder (%d given)", cmd.Name(), len(args))
		}
		info, err := os.Stat(args[0])
		isFolder := err == nil && info.IsDir()
		target := file
		switch isModel := filepath.Ext(args[0]) == ".onnx" || IsForeign(args[0]); {
		case isFolder && folder != nil:
			target = folder
		case forModel != "" && (isFolder || isModel):
			return fmt.Errorf("unexpected argument %q: "+forModel, args[0])
		}
		if *target != "" {
			return fmt.Errorf("unexpected argument %q beside %q: name one", args[0], *target)
		}
		*target = args[0]
		return nil
	})
}

// ModelOrFile takes a model or a file of YAML in place of the flags for them.
func ModelOrFile(model, file *string) cobra.PositionalArgs {
	return Usage(func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return nil
		case len(args) > 1:
			return fmt.Errorf("%s takes one model or file (%d given)", cmd.Name(), len(args))
		case *model != "" || *file != "":
			return fmt.Errorf("unexpected argument %q beside %q: name one", args[0], *model+*file)
		}
		if ext := filepath.Ext(args[0]); ext == ".yaml" || ext == ".yml" {
			*file = args[0]
		} else {
			*model = args[0]
		}
		return nil
	})
}

// First takes one of the allowed words, of a kind, as the first argument. It names the word that was
// probably meant. Others may follow it.
func First(kind string, allowed []string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		list := strings.Join(allowed, ", ")
		switch {
		case len(args) == 0:
			return fmt.Errorf("name a %s: %s", kind, list)
		case slices.Contains(allowed, args[0]):
			return nil
		}
		hint := ""
		if near := words.Nearest(args[0], allowed); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Errorf("unknown %s %q: allowed are %s%s", kind, args[0], list, hint)
	}
}

// IsForeign reports whether a path is a framework's model.
func IsForeign(path string) bool {
	_, is := framework.Of(path)
	return is
}

// Mistake explains a wrong flag. If args begin with a word that is not a verb, that word is the
// mistake: the flags of an unknown verb are unknown, too.
func Mistake(args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			return UnknownVerb(cmd, args)
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

// UnknownVerb refuses an unknown verb, and names the verb that was probably meant.
func UnknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", similar[0])
	}
	return exit.Usagef("unknown command %q for %q%s\nSee '%s --help'", args[0], cmd.CommandPath(), hint, cmd.CommandPath())
}

// CheckFormat accepts the values of --format that most verbs have.
func CheckFormat(format string) error { return CheckFormatOf(format, []string{"text", "json"}) }

// CheckFormatOf accepts the values of --format that are allowed.
func CheckFormatOf(format string, allowed []string) error {
	if slices.Contains(allowed, format) {
		return nil
	}
	last := len(allowed) - 1
	return exit.Usagef("--format %q: allowed are %s and %s", format, strings.Join(allowed[:last], ", "), allowed[last])
}
