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

// ExistsError says that a file which is already there is not what would be written.
type ExistsError struct{ Path string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("cannot write %q: a file of other content is already there", e.Path)
}

// Export writes the variant's model to path, with external data beside it in path + ".data" where it has any, all or nothing. A
// file of the same content stays as it is; one of another is replaced only when that is asked for, else it is an *ExistsError. A model that is
// replaced takes the data in path + ".data" along, if it is its own.
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
	defer temp.Close() // whatever of it is left
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

// ownsData reports whether there is a model at path that keeps data in path + ".data".
func ownsData(path string) bool {
	m, err := onnx.Read(path)
	return err == nil && slices.ContainsFunc(m.ExternalFiles(), func(f onnx.ExternalFile) bool { return f.Location == filepath.Base(path)+".data" })
}

// renameData puts a model's external data into its place, before the model: a model never stands there without its data. Nor may one
// that was there stand beside data that is not its own, so it goes first, and comes back when the data stays away.
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

// sameModel reports whether the model at path, if there is one, is that of fresh.
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
		return false, nil // there is nothing, or no model
	}
	other, err := b.Digest()
	return err == nil && digest == other, nil
}
