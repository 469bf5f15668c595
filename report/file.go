package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tuner/internal/durable"
)

// WriteFile writes a file with the content from fill, completely or not at all. It makes the folder
// if needed.
func WriteFile(path string, fill func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make folder %q: %w", dir, durable.Cause(err))
	}
	err := durable.WriteFile(path, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := fill(b); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, durable.Cause(err))
	}
	return nil
}
