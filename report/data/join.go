package data

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"

	"tuner/report"
)

// Join writes the tables of several models into one folder. Each has the rows of each model in their
// order, and every column of any model: what a model does not have is empty in its rows. Join returns
// the paths that it wrote. Folders without these tables have no rows.
func Join(dir string, parts []string) ([]string, error) {
	var written []string
	for _, name := range tables() {
		joined := table{name: name}
		for _, part := range parts {
			t, err := readParquet(name, filepath.Join(part, folder, name+parquetEnding))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				joined, err = joined.with(t)
			}
			if err != nil {
				return written, fmt.Errorf("cannot join the results: %w", err)
			}
		}
		if len(joined.columns) == 0 {
			continue
		}
		for _, form := range forms() {
			path := filepath.Join(dir, folder, name+form.ending)
			if err := report.WriteFile(path, func(w io.Writer) error { return form.write(w, joined) }); err != nil {
				return written, err
			}
			written = append(written, path)
		}
	}
	return written, nil
}

// readParquet reads a table that writeParquet has written.
func readParquet(name, path string) (table, error) {
	t := table{name: name}
	text, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range file.Schema().Fields() {
		k, err := kindOf(f)
		if err != nil {
			return t, fmt.Errorf("%s: column %s: %w", path, f.Name(), err)
		}
		t.columns = append(t.columns, column{name: f.Name(), kind: k})
	}
	reader := parquet.NewGenericReader[any](file)
	rows := make([]parquet.Row, file.NumRows())
	if n, err := reader.ReadRows(rows); n != len(rows) || err != nil && !errors.Is(err, io.EOF) {
		return t, fmt.Errorf("%s: %d of %d rows can be read: %w", path, n, len(rows), err)
	}
	for _, row := range rows {
		cells := make([]any, len(t.columns))
		for _, v := range row {
			cells[v.Column()] = cellOf(v)
		}
		t.rows = append(t.rows, cells)
	}
	return t, nil
}

// kindOf returns the kind of a column of a file, the opposite of nodeOf.
func kindOf(f parquet.Field) (kind, error) {
	switch f.Type().Kind() {
	case parquet.ByteArray:
		return text, nil
	case parquet.Int64:
		return whole, nil
	case parquet.Double:
		return number, nil
	case parquet.Boolean:
		return flag, nil
	}
	return text, fmt.Errorf("no table of tuner has the type %s", f.Type())
}

// cellOf is the opposite of valueOf.
func cellOf(v parquet.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.ByteArray:
		return string(v.ByteArray())
	case v.Kind() == parquet.Int64:
		return v.Int64()
	case v.Kind() == parquet.Double:
		return v.Double()
	}
	return v.Boolean()
}

// with returns the table with the columns and rows of another one below its own.
func (t table) with(other table) (table, error) {
	places := make([]int, len(other.columns)) // of the other's columns
	for i, c := range other.columns {
		at := slices.IndexFunc(t.columns, func(own column) bool { return own.name == c.name })
		switch {
		case at < 0:
			at, t.columns = len(t.columns), append(t.columns, c)
		case t.columns[at].kind != c.kind:
			return t, fmt.Errorf("column %s is %s in one table and %s in another", c.name, t.columns[at].kind, c.kind)
		}
		places[i] = at
	}
	for i, row := range t.rows { // of fewer columns, if the other table has brought some
		t.rows[i] = append(row, make([]any, len(t.columns)-len(row))...)
	}
	for _, row := range other.rows {
		cells := make([]any, len(t.columns))
		for i, cell := range row {
			cells[places[i]] = cell
		}
		t.rows = append(t.rows, cells)
	}
	return t, nil
}
