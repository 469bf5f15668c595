package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// notes are the progress of a part, one line of JSON for each item. A later run reads them and does
// the rest.
type notes[T any] struct{ file *os.File }

// openNotes returns the notes of earlier runs.
func openNotes[T any](path string) (*notes[T], []T, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, nil, fmt.Errorf("cannot make the folder of the notes: %w", err)
	}
	earlier, err := readNotes[T](path)
	if err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the notes: %w", err)
	}
	return &notes[T]{file}, earlier, nil
}

func readNotes[T any](path string) ([]T, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the notes: %w", err)
	}
	defer file.Close()
	var list []T
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("cannot read the notes %q, line %d: %w; remove the file to begin anew", path, len(list)+1, err)
		}
		list = append(list, one)
	}
	return list, nil
}

func (n *notes[T]) add(one T) error {
	line, err := json.Marshal(one)
	if err == nil {
		_, err = n.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot write the notes: %w", err)
	}
	return nil
}

func (n *notes[T]) close() error { return n.file.Close() }
