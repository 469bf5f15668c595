package onnx

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"tuner/onnx/onnxpb"
)

// ExternalFile is a file beside the model that holds tensor data.
type ExternalFile struct {
	Location string // as the model names it: relative to the model's folder, with forward slashes
	Path     string
	Size     int64 // bytes
}

// ExternalFiles returns the files beside the model that hold tensor data, each once, ordered by location. Whoever moves the
// model moves them too, to the same locations.
func (m *Model) ExternalFiles() []ExternalFile { return m.external }

// span is where a tensor lies in an external file.
type span struct {
	location       string
	offset, length int64 // length -1: to the end of the file
}

func isExternal(t *onnxpb.TensorProto) bool {
	return t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL
}

// externalSpan reads a tensor's external_data entries. The location must stay inside the model's folder: a model is foreign
// data and must not choose which files of the machine are read.
func externalSpan(t *onnxpb.TensorProto) (span, error) {
	s := span{length: -1}
	var err error
	for _, e := range t.GetExternalData() {
		switch e.GetKey() {
		case "location":
			s.location = e.GetValue()
		case "offset":
			s.offset, err = parseSize(e.GetKey(), e.GetValue())
		case "length":
			s.length, err = parseSize(e.GetKey(), e.GetValue())
		}
		if err != nil {
			return span{}, err
		}
	}
	if s.location == "" {
		return span{}, errors.New("its external data has no location")
	}
	if !filepath.IsLocal(filepath.FromSlash(s.location)) {
		return span{}, fmt.Errorf("the location %q of its external data leaves the model's folder", s.location)
	}
	return s, nil
}

func parseSize(key, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the %s %q of its external data is not a size in bytes", key, text)
	}
	return n, nil
}

// locateExternal finds every external file of the model, whose folder is dir, and checks that each tensor lies inside its
// file. A missing file is reported once, however many tensors it holds.
func locateExternal(p *onnxpb.ModelProto, dir string) ([]ExternalFile, error) {
	files := map[string]ExternalFile{}
	missing := map[string]bool{}
	var problems []error
	eachTensor(p, func(t *onnxpb.TensorProto) {
		if !isExternal(t) {
			return
		}
		s, err := externalSpan(t)
		if err != nil {
			problems = append(problems, fmt.Errorf("tensor %q: %w", t.GetName(), err))
			return
		}
		if missing[s.location] {
			return
		}
		f, known := files[s.location]
		if !known {
			if f, err = statExternal(dir, s.location); err != nil {
				missing[s.location] = true
				problems = append(problems, err)
				return
			}
			files[s.location] = f
		}
		if err := checkSpan(t, s, f); err != nil {
			problems = append(problems, fmt.Errorf("tensor %q: %w", t.GetName(), err))
		}
	})
	list := make([]ExternalFile, 0, len(files))
	for _, f := range files {
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Location < list[j].Location })
	return list, errors.Join(problems...)
}

// statExternal follows a symbolic link: download caches keep models and their data as links into a store.
func statExternal(dir, location string) (ExternalFile, error) {
	path := filepath.Join(dir, filepath.FromSlash(location))
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ExternalFile{}, fmt.Errorf("the external data file %q is missing; put it beside the model", path)
	case err != nil:
		return ExternalFile{}, fmt.Errorf("the external data file is not readable: %v", err)
	case !info.Mode().IsRegular():
		return ExternalFile{}, fmt.Errorf("the external data %q is not a regular file", path)
	}
	return ExternalFile{Location: location, Path: path, Size: info.Size()}, nil
}

func checkSpan(t *onnxpb.TensorProto, s span, f ExternalFile) error {
	want, err := tensorSize(t)
	if err != nil {
		return err
	}
	if s.length >= 0 && s.length != want {
		return fmt.Errorf("%s%v needs %d bytes, its external data has %d", DataType(t.GetDataType()), t.GetDims(), want, s.length)
	}
	if s.offset > f.Size || want > f.Size-s.offset {
		return fmt.Errorf("its %d bytes from byte %d on are not in %q, which has only %d (truncated?)", want, s.offset, f.Path, f.Size)
	}
	return nil
}

// readExternal reads the want bytes of a tensor.
func (m *Model) readExternal(t *onnxpb.TensorProto, want int64) ([]byte, error) {
	r, err := m.openExternal(t, want)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, want)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("cannot read its external data: %w", err)
	}
	return data, nil
}

// openExternal opens the want bytes of a tensor for reading. The caller closes it.
func (m *Model) openExternal(t *onnxpb.TensorProto, want int64) (io.ReadCloser, error) {
	s, err := externalSpan(t)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(m.dir, filepath.FromSlash(s.location)))
	if err != nil {
		return nil, err
	}
	return sectionReadCloser{io.NewSectionReader(f, s.offset, want), f}, nil
}

type sectionReadCloser struct {
	io.Reader
	io.Closer
}
