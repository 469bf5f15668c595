package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tuner/internal/durable"
	"tuner/steps"
)

// receiptName is the file by which a run knows a folder of its own again, the chart or the optimized model: the record of the steps would
// not do, since it loses those that are of another run.
const receiptName = ".tuner.json"

// writeReceipt notes in a folder what was written into it.
func writeReceipt(dir string) error {
	files, err := steps.FilesOf(dir, dir)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(files, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, receiptName), durable.Bytes(append(text, '\n')))
}

// foreignIn says why a folder is not a run's to replace or remove: no run wrote it, or it was changed since. It is "" where it is, and where
// there is none. What is missing is no change.
func foreignIn(dir string) (why string, err error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(dir, receiptName))
	if err != nil {
		return "it was not written by tuner run", nil
	}
	var written []steps.File
	if err := json.Unmarshal(text, &written); err != nil {
		return receiptName + " in it is damaged", nil
	}
	found, err := steps.FilesOf(dir, dir)
	if err != nil {
		return "", err
	}
	for _, f := range found {
		if f.Path != receiptName && !slices.Contains(written, f) {
			return f.Path + " in it was changed since tuner wrote it", nil
		}
	}
	return "", nil
}

// removeFolder takes away a folder, if there is one. It leaves its place whole: a crash in between does not leave a part of it there, which
// its receipt may have left already.
func removeFolder(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".tuner-*")
	if err == nil {
		err = os.Rename(dir, filepath.Join(temp, filepath.Base(dir)))
		err = errors.Join(err, os.RemoveAll(temp))
	}
	if err != nil {
		return fmt.Errorf("cannot remove the outdated folder %q: %w", dir, durable.Cause(err))
	}
	return nil
}
