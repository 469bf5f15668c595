package profile

import (
	"fmt"
	"os"
	"strings"

	"tuner/internal/durable"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
)

// stamp identifies a file without reading it.
type stamp struct {
	path string
	info os.FileInfo
}

// newStamps makes the stamps of a model file and its external data.
func newStamps(path string, data []string) ([]stamp, error) {
	var stamps []stamp
	for _, p := range append([]string{path}, data...) {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("cannot open %q: %w", p, durable.Cause(err))
		}
		stamps = append(stamps, stamp{p, info})
	}
	return stamps, nil
}

// isSame reports whether the file is unchanged, by its inode, size and modification time.
func (s stamp) isSame() bool {
	now, err := os.Stat(s.path)
	return err == nil && os.SameFile(now, s.info) && now.Size() == s.info.Size() && now.ModTime().Equal(s.info.ModTime())
}

// CheckUnchanged checks whether a model still has the content that was opened, and returns an
// InputError if not. It reads the files only if a stamp changed.
func (f File) CheckUnchanged() error {
	var touched []string
	for _, s := range f.stamps {
		if !s.isSame() {
			touched = append(touched, s.path)
		}
	}
	if len(touched) == 0 {
		return nil
	}
	if f.Source.Path == "" {
		if same, err := modelrepo.Folder(f.Source.Folder); err == nil && same.Digest == f.Source.Digest {
			return nil
		}
		return &InputError{fmt.Errorf("files of the model %q were changed or replaced during the measurements, so they end; "+
			"put the old ones back and run the same command to resume, or measure the new ones into another output folder", f.Source.Folder)}
	}
	model, err := onnx.Read(f.Source.Path)
	if err == nil {
		var digest string
		if digest, err = model.Digest(); err == nil && digest == f.Source.Digest {
			return nil // only touched, or replaced by a copy
		}
	}
	return &InputError{fmt.Errorf("the model file %q was changed or replaced during the measurements, so they end; "+
		"put the old file back and run the same command to resume, or measure the new one into another output folder", strings.Join(touched, ", "))}
}
