package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"tuner/internal/exit"
)

// checkOutputFormat accepts the values of --format that most verbs have.
func checkOutputFormat(format string) error { return checkOutputWord(format, []string{"text", "json"}) }

// checkOutputWord accepts the values of --format that are allowed.
func checkOutputWord(format string, allowed []string) error {
	if slices.Contains(allowed, format) {
		return nil
	}
	last := len(allowed) - 1
	return exit.Usagef("--format %q: allowed are %s and %s", format, strings.Join(allowed[:last], ", "), allowed[last])
}

// writeJSON prints a value for programs.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot write JSON: %w", err)
	}
	return nil
}
