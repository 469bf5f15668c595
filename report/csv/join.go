package csv

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tuner/report"
	"tuner/spec/csvfiles"
)

// Join writes the CSV files of several models into one folder. Each file has the rows of each model in
// their order, and every column of any model with rows: what a model does not have is empty in its rows.
// It returns the paths that it wrote.
func Join(dir string, parts []string, names csvfiles.Files) ([]string, error) {
	var written []string
	names = names.Named()
	for _, name := range []string{names.Inference.Name, names.GPU.Name, names.Server.Name} {
		var joined [][]string // the header first
		for _, part := range parts {
			lines, err := read(filepath.Join(part, folder, name))
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return written, fmt.Errorf("cannot join the results: %w", err)
			case len(joined) <= 1 && len(lines) > len(joined): // without rows, the columns of the load are not known
				joined = lines
			case len(lines) > 1:
				joined = below(joined, lines)
			}
		}
		if joined == nil {
			continue
		}
		path := filepath.Join(dir, folder, name)
		if err := report.WriteFile(path, func(w io.Writer) error { return write(w, joined) }); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}

// read returns the lines of a file.
func read(path string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return lines, nil
}

// below returns the lines of a table with the rows of another one below, each cell under the head of its column.
func below(lines, others [][]string) [][]string {
	heads := slices.Clone(lines[0])
	places := make([]int, len(others[0])) // of the other's columns
	for i, head := range others[0] {
		at := 0
		for at < len(heads) && (heads[at] != head || slices.Contains(places[:i], at)) { // two columns may have one head
			at++
		}
		if at == len(heads) {
			heads = append(heads, head)
		}
		places[i] = at
	}
	joined := [][]string{heads}
	for _, row := range lines[1:] {
		joined = append(joined, append(row, make([]string, len(heads)-len(row))...))
	}
	for _, row := range others[1:] {
		cells := make([]string, len(heads))
		for i, cell := range row {
			cells[places[i]] = cell
		}
		joined = append(joined, cells)
	}
	return joined
}
