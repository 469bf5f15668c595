package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tuner/internal/durable"
	"tuner/pipeline/steps"
)

// receiptName is the file by which a run recognizes a folder that it wrote: the chart or the
// optimized model. The record of the steps is not enough, since it forgets the steps of other runs.
const receiptName = ".tuner.json"

// writeReceipt lists the files of a folder in its receipt.
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

// foreignIn returns the reason why a run must not replace or remove a folder: no run wrote it, or
// it was changed since. It returns "" if a run may, and if there is no folder. A missing file is no
// change.
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

// removeFolder removes a folder if it exists. It first renames the whole folder, so that a crash
// leaves no part of it in its place without its receipt.
func removeFolder(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	temp, err := durable.NewScratch(filepath.Dir(dir), durable.Hidden)
	if err == nil {
		err = os.Rename(dir, filepath.Join(temp.Dir, filepath.Base(dir)))
		err = errors.Join(err, temp.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot remove the outdated folder %q: %w", dir, durable.Cause(err))
	}
	return nil
}
