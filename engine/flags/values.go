package flags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"tuner/engine/logging"
)

// tritonBool is a flag value that accepts booleans as tritonserver does.
type tritonBool struct{ value *bool }

// String implements pflag.Value.
func (b tritonBool) String() string {
	if b.value == nil {
		return "false"
	}
	return strconv.FormatBool(*b.value)
}

// Type implements pflag.Value.
func (b tritonBool) Type() string { return "bool" }

// Set reads true, on, 1, false, off, 0.
func (b tritonBool) Set(text string) error {
	switch strings.ToLower(text) {
	case "true", "on", "1":
		*b.value = true
	case "false", "off", "0":
		*b.value = false
	default:
		return fmt.Errorf("%q is not a boolean: use true, on, 1, false, off or 0", text)
	}
	return nil
}

func boolFlag(flags *pflag.FlagSet, value *bool, name string, byDefault bool, usage string) {
	*value = byDefault
	flags.Var(tritonBool{value}, name, usage)
}

// verbosity is a flag value: a number, or a boolean for 0 or 1.
type verbosity struct{ level *int }

// String implements pflag.Value.
func (v verbosity) String() string {
	if v.level == nil {
		return "0"
	}
	return strconv.Itoa(*v.level)
}

// Type implements pflag.Value.
func (v verbosity) Type() string { return "int" }

// Set reads a number, true or false.
func (v verbosity) Set(text string) error {
	switch strings.ToLower(text) {
	case "true":
		*v.level = 1
	case "false":
		*v.level = 0
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > logging.MaxVerbose {
			return fmt.Errorf("%q is not a level: use 0 or more, true or false", text)
		}
		*v.level = n
	}
	return nil
}
