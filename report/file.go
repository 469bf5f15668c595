package report

import (
	"fmt"
	"os"
	"path/filepath"

	"tuner/internal/durable"
)

// writeFile puts a file in place whole or not at all, making its folder where needed.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make folder %q: %w", dir, durable.Cause(err))
	}
	if err := durable.WriteFile(path, durable.Bytes(data)); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, durable.Cause(err))
	}
	return nil
}
