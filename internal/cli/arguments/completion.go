package arguments

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// PlainCompletion takes the marks around names of values out of the flags' texts, if args ask for a
// shell's completion. Help shows the names in place of the marks, but cobra's completion shows the texts
// as they are.
func PlainCompletion(root *cobra.Command, args []string) {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd {
		return
	}
	plain := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
	var all func(*cobra.Command)
	all = func(c *cobra.Command) {
		c.Flags().VisitAll(plain)
		c.PersistentFlags().VisitAll(plain)
		for _, verb := range c.Commands() {
			all(verb)
		}
	}
	all(root)
}
