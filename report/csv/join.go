package csv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tuner/report"
	"tuner/spec/csvfiles"
)

// Join writes the CSV files of several models into one folder. Each file has one header, and the
// rows of each model in their order. Join leaves out files whose columns differ from those of the
// first. It returns the paths that it wrote.
func Join(dir string, parts []string, names csvfiles.Files) ([]string, error) {
	var written []string
	names = names.Named()
	for _, name := range []string{names.Inference.Name, names.GPU.Name, names.Server.Name} {
		var joined, header []byte
		for _, part := range parts {
			text, err := os.ReadFile(filepath.Join(part, folder, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return written, fmt.Errorf("cannot join the results: %w", err)
			}
			own, rows, _ := bytes.Cut(text, []byte("\n"))
			if joined == nil {
				header = own
				joined = append(append(joined, own...), '\n')
			}
			if bytes.Equal(own, header) {
				joined = append(joined, rows...)
			}
		}
		if joined == nil {
			continue
		}
		path := filepath.Join(dir, folder, name)
		if err := report.WriteFile(path, func(w io.Writer) error { _, err := w.Write(joined); return err }); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}
