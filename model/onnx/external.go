package onnx

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"tuner/internal/checksum"
	"tuner/internal/inside"
	"tuner/internal/problems"
	"tuner/model/onnx/onnxpb"
)

// ExternalFile is a file beside the model that has tensor data.
type ExternalFile struct {
	Location string // as the model writes it: relative to the model's folder, with forward slashes
	Path     string
	Size     int64 // bytes
}

// ExternalFiles returns the files beside the model with tensor data, each once, ordered by
// location. Code that moves the model must move them too, to the same locations.
func (m *Model) ExternalFiles() []ExternalFile { return m.external }

// span is the position of a tensor in an external file.
type span struct {
	location       string
	offset, length int64 // length -1: to the end of the file
}

func isExternal(t *onnxpb.TensorProto) bool {
	return t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL
}

// externalSpan reads a tensor's external_data entries. The location must stay inside the model's
// folder. Models are untrusted, and must not choose which files of the machine are read.
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

// locateExternal finds every external file of the model at path, and checks that each tensor lies
// inside its file. It reports a missing file once, even if the file has several tensors.
func locateExternal(p *onnxpb.ModelProto, path string) ([]ExternalFile, error) {
	files := map[string]ExternalFile{}
	isMissing := map[string]bool{}
	var wrong problems.List
	eachTensor(p, func(t *onnxpb.TensorProto) {
		if !isExternal(t) {
			return
		}
		s, err := externalSpan(t)
		if err != nil {
			wrong.Addf("tensor %q: %w", t.GetName(), err)
			return
		}
		if isMissing[s.location] {
			return
		}
		f, known := files[s.location]
		if !known {
			if f, err = findExternal(path, s.location); err != nil {
				isMissing[s.location] = true
				wrong.Add(err)
				return
			}
			files[s.location] = f
		}
		if err := checkSpan(t, s, f); err != nil {
			wrong.Addf("tensor %q: %w", t.GetName(), err)
		}
	})
	list := make([]ExternalFile, 0, len(files))
	for _, f := range files {
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Location < list[j].Location })
	return list, wrong.Err()
}

// findExternal finds a file that the model at path names as external data.
func findExternal(path, location string) (ExternalFile, error) {
	named := filepath.Join(filepath.Dir(path), filepath.FromSlash(location))
	f, err := inside.Beside(path, filepath.FromSlash(location))
	var outside *inside.OutsideError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ExternalFile{}, fmt.Errorf("the external data file %q is missing; put it beside the model", named)
	case errors.Is(err, inside.ErrNotRegular):
		return ExternalFile{}, fmt.Errorf("the external data %q is not a regular file", named)
	case errors.As(err, &outside):
		return ExternalFile{}, fmt.Errorf("the external data %w", err)
	case err != nil:
		return ExternalFile{}, fmt.Errorf("the external data file is not readable: %v", err)
	}
	return ExternalFile{Location: location, Path: named, Size: f.Size}, nil
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
		return fmt.Errorf("it needs %d bytes from byte %d on in %q, which has only %d (truncated?)", want, s.offset, f.Path, f.Size)
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
	f, err := m.open(s.location)
	if err != nil {
		return nil, err
	}
	return sectionReadCloser{io.NewSectionReader(f, s.offset, want), f}, nil
}

// open opens a file of external data. It resolves the path again, so that a changed link cannot
// lead outside.
func (m *Model) open(location string) (*os.File, error) {
	f, err := inside.Beside(m.origin, filepath.FromSlash(location))
	if err != nil {
		return nil, err
	}
	return f.Open()
}

// digestExternal returns the sha256 of a file of external data.
func (m *Model) digestExternal(f ExternalFile) (string, error) {
	opened, err := m.open(f.Location)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	return checksum.Of(opened)
}

type sectionReadCloser struct {
	io.Reader
	io.Closer
}
