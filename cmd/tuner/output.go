package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// checkOutputFormat accepts the values of --output.
func checkOutputFormat(format string) error {
	if format != "text" && format != "json" {
		return usageErrorf("--output %q: allowed are text and json", format)
	}
	return nil
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
