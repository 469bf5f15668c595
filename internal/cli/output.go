package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// checkOutputFormat accepts the values of --output: text, json, and those that a verb has beside them.
func checkOutputFormat(format string, more ...string) error {
	allowed := append([]string{"text", "json"}, more...)
	if slices.Contains(allowed, format) {
		return nil
	}
	last := len(allowed) - 1
	return usageErrorf("--output %q: allowed are %s and %s", format, strings.Join(allowed[:last], ", "), allowed[last])
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
