package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tuner/internal/exit"
	"tuner/internal/golden"
	pages "tuner/spec/reference"
)

// reference returns the path of a generated page.
func reference(name string) string { return filepath.Join("..", "..", "docs", "reference", name) }

// The committed page of commands is generated from their definitions.
func TestCommandsPageIsGenerated(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(pages.Generated + "# Commands\n\n" +
		"Every command and flag, as `tuner COMMAND --help` prints them. [Exit codes](exit-codes.md) are the\n" +
		"same for all. [The index](../README.md) lists the pages that explain commands.\n")
	visible(newRoot(console{}), func(cmd *cobra.Command) { describe(&b, cmd) })
	golden.Check(t, reference("commands.md"), b.String())
}

// The committed page of exit codes is generated from package exit.
func TestExitCodesPageIsGenerated(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(pages.Generated + "# Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, c := range exit.Codes() {
		fmt.Fprintf(&b, "| %d | %s |\n", c.Number, c.Meaning)
		if !strings.Contains(exit.Help, fmt.Sprintf("%d ", c.Number)) {
			t.Errorf("the help of commands does not mention exit code %d", c.Number)
		}
	}
	golden.Check(t, reference("exit-codes.md"), b.String())
}

// Every example in a help text names a command and flags that exist.
func TestExamplesNameFlags(t *testing.T) {
	t.Parallel()
	found := 0
	visible(newRoot(console{}), func(cmd *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "tuner" {
				t.Errorf("the example %q of %s does not begin with tuner", line, cmd.CommandPath())
				continue
			}
			found++
			named, _, err := newRoot(console{}).Find(words[1:])
			if err != nil || named.CommandPath() == "tuner" {
				t.Errorf("the example %q names no command: %v", line, err)
				continue
			}
			for _, word := range words {
				name, isLong := strings.CutPrefix(word, "--")
				name, _, _ = strings.Cut(name, "=")
				short, isShort := strings.CutPrefix(word, "-")
				switch {
				case isLong && named.Flags().Lookup(name) == nil:
					t.Errorf("the example %q has no flag --%s", line, name)
				case !isLong && isShort && len(short) == 1 && named.Flags().ShorthandLookup(short) == nil:
					t.Errorf("the example %q has no flag -%s", line, short)
				}
			}
		}
	})
	if found == 0 {
		t.Error("no command has an example")
	}
}

// visible visits a command's subcommands, as its help lists them.
func visible(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			visit(sub)
			visible(sub, visit)
		}
	}
}

// describe writes the section of a command.
func describe(b *strings.Builder, cmd *cobra.Command) {
	level := strings.Repeat("#", strings.Count(cmd.CommandPath(), " ")+1)
	fmt.Fprintf(b, "\n%s %s\n%s.\n\n", level, cmd.CommandPath(), cmd.Short)
	if long := strings.TrimSpace(strings.TrimSuffix(cmd.Long, exit.Help)); long != "" {
		fmt.Fprintf(b, "%s\n\n", long)
	}
	parent := strings.TrimSuffix(cmd.CommandPath(), cmd.Name())
	fmt.Fprintf(b, "```\n%s%s\n```\n", parent, cmd.Use)
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	if !cmd.LocalFlags().HasAvailableFlags() {
		return
	}
	b.WriteString("\n| flag | value | default | meaning |\n|---|---|---|---|\n")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			describeFlag(b, f)
		}
	})
}

// describeFlag writes the row of a flag. It omits a default that the meaning already has.
func describeFlag(b *strings.Builder, f *pflag.Flag) {
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	byDefault := ""
	switch f.DefValue {
	case "", "[]", "false", "0", "0s":
	default:
		byDefault = "`" + strings.Trim(f.DefValue, "[]") + "`"
	}
	escaped := strings.NewReplacer("|", "\\|", "*", "\\*", "[[", "\\[\\[", "<", "&lt;").Replace(usage)
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(value), byDefault, escaped)
}
