package precision

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tuner/internal/durable"
	"tuner/model/onnx"
)

// ExistsError means that an existing file has other content than the file to write.
type ExistsError struct{ Path string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("cannot write %q: a file of other content is already there", e.Path)
}

// Export writes the variant's model to path, and its external data, if any, to path + ".data",
// completely or not at all. An existing file with the same content does not change. One with other
// content is replaced only if replace is set; otherwise the error is an *ExistsError. A replaced
// model's own data in path + ".data" is replaced too.
func (v Variant) Export(path string, replace bool) error {
	err := v.export(path, replace)
	if err == nil || errors.As(err, new(*ExistsError)) {
		return err
	}
	return fmt.Errorf("cannot write %q: %w", path, durable.Cause(err))
}

func (v Variant) export(path string, replace bool) error {
	m, err := onnx.Read(v.Path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp, err := durable.NewScratch(dir, durable.Hidden)
	if err != nil {
		return err
	}
	defer temp.Close() // removes the rest
	staged := filepath.Join(temp.Dir, filepath.Base(path))
	if err := m.Write(staged, 0); err != nil {
		return err
	}
	same, err := sameModel(staged, path)
	switch {
	case err != nil || same:
		return err
	case !replace:
		for _, name := range []string{path, path + ".data"} {
			if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				return &ExistsError{name}
			}
		}
	}
	orphan := ""
	if _, err := os.Stat(staged + ".data"); err == nil {
		if err := renameData(staged, path); err != nil {
			return err
		}
	} else if ownsData(path) {
		orphan = path + ".data"
	}
	if err := os.Rename(staged, path); err != nil {
		return err
	}
	if orphan != "" {
		if err := os.Remove(orphan); err != nil {
			return err
		}
	}
	return durable.SyncDir(dir)
}

// ownsData reports whether the model at path has data in path + ".data".
func ownsData(path string) bool {
	m, err := onnx.Read(path)
	return err == nil && slices.ContainsFunc(m.ExternalFiles(), func(f onnx.ExternalFile) bool { return f.Location == filepath.Base(path)+".data" })
}

// renameData puts a model's external data in place before the model, so that a model never exists
// without its data. An earlier model must not stay beside foreign data, so it is moved away first,
// and restored if the data cannot be placed.
func renameData(staged, path string) error {
	before := staged + ".before"
	if err := os.Rename(path, before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(staged+".data", path+".data")
	if err != nil {
		_ = os.Rename(before, path) // if there was one
	}
	return err
}

// sameModel reports whether the model at path, if there is one, equals that of fresh.
func sameModel(fresh, path string) (bool, error) {
	a, err := onnx.Read(fresh)
	if err != nil {
		return false, err
	}
	digest, err := a.Digest()
	if err != nil {
		return false, err
	}
	b, err := onnx.Read(path)
	if err != nil {
		return false, nil // there is no file, or no model
	}
	other, err := b.Digest()
	return err == nil && digest == other, nil
}
