package terminal

import "github.com/spf13/pflag"

// AddFormat adds the flag for the form of what a verb prints: --format. Its older name, --output, is
// an alias. The default is text.
func AddFormat(flags *pflag.FlagSet, format *string, usage string) {
	flags.StringVar(format, "format", "text", usage)
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "output" {
			name = "format"
		}
		return pflag.NormalizedName(name)
	})
}
