package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"tuner/internal/problems"
	"tuner/model/onnx/inputs"
)

// maxMemory is the default limit for the memory of all arrays, in bytes.
const maxMemory = 8 << 30

// An archive may unpack to freeArchive bytes, or to maxRatio times its own size. Deflate shrinks
// zeros to a thousandth, and usual data to a tenth.
const (
	freeArchive = 64 << 20
	maxRatio    = 100
)

// Options limit what is read.
type Options struct {
	// Check receives the outlines of all arrays before any data is read. Its error is returned
	// unchanged. nil accepts everything.
	Check func(outlines map[string]Outline) error
	// Memory is the limit for the memory of all arrays, in bytes; 0: 8 GiB.
	Memory int64
}

// ReadFiles reads .npy files under the given names. The error lists every array that cannot be
// read.
func ReadFiles(paths map[string]string, o Options) (map[string]inputs.Tensor, error) {
	var sources []source
	var wrong problems.List
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		path := paths[name]
		info, err := os.Stat(path)
		if err != nil {
			wrong.Addf("cannot read the array %q: %w", path, err)
			continue
		}
		sources = append(sources, source{name: name, size: info.Size(), open: func() (io.ReadCloser, error) { return os.Open(path) },
			fail: func(err error) error { return fmt.Errorf("cannot read the array %q: %w", path, err) }})
	}
	outlines, total := outlinesOf(sources, &wrong)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if err := o.check(outlines, total, noLimit); err != nil {
		return nil, err
	}
	return readAll(sources)
}

// noLimit is for plain files, which are as large as their arrays.
const noLimit = 1 << 62

// ReadArchive reads an .npz file: arrays by name. The error lists every array that cannot be read.
func ReadArchive(path string, o Options) (map[string]inputs.Tensor, error) {
	fail := func(err error) (map[string]inputs.Tensor, error) {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	archive, err := zip.OpenReader(path)
	switch {
	case errors.Is(err, zip.ErrFormat):
		return fail(errors.New("it is not an .npz archive (a zip file, as np.savez writes)"))
	case err != nil:
		return fail(err)
	}
	defer archive.Close()
	info, err := os.Stat(path)
	if err != nil {
		return fail(err)
	}
	var wrong problems.List
	sources := entries(&archive.Reader, &wrong)
	outlines, total := outlinesOf(sources, &wrong)
	if err := wrong.Err(); err != nil {
		return fail(err)
	}
	if err := o.check(outlines, total, max(freeArchive, maxRatio*info.Size())); err != nil {
		if errors.As(err, new(*tooLargeError)) {
			return fail(err)
		}
		return nil, err
	}
	arrays, err := readAll(sources)
	if err != nil {
		return fail(err)
	}
	return arrays, nil
}

// entries returns the arrays of an archive.
func entries(archive *zip.Reader, wrong *problems.List) []source {
	var sources []source
	seen := map[string]bool{}
	for _, entry := range archive.File {
		name, isArray := strings.CutSuffix(entry.Name, ".npy")
		switch {
		case !isArray:
			wrong.Addf("%q in it is not a .npy file: an .npz archive holds only those", entry.Name)
		case seen[name]:
			wrong.Addf("the array %q is in it twice", name)
		case entry.UncompressedSize64 > noLimit:
			wrong.Addf("the array %q of %d bytes is impossible", name, entry.UncompressedSize64)
		default:
			sources = append(sources, source{name: name, size: int64(entry.UncompressedSize64), open: entry.Open,
				fail: func(err error) error { return fmt.Errorf("array %q: %w", name, err) }})
		}
		seen[name] = true
	}
	return sources
}

// source is the place of an array.
type source struct {
	name string
	size int64 // bytes, from the file system or the archive
	open func() (io.ReadCloser, error)
	fail func(error) error // names the source
}

// outlinesOf reads the outlines of all arrays, and the memory that the arrays take.
func outlinesOf(sources []source, wrong *problems.List) (outlines map[string]Outline, total int64) {
	outlines = make(map[string]Outline, len(sources))
	for _, s := range sources {
		h, err := s.header()
		if err != nil {
			wrong.Add(s.fail(err))
			continue
		}
		outlines[s.name] = Outline{Type: h.element.kind, Shape: h.shape}
		total = min(total+min(h.memory(), noLimit), noLimit)
	}
	return outlines, total
}

func (s source) header() (header, error) {
	content, err := s.open()
	if err != nil {
		return header{}, err
	}
	defer content.Close()
	return readHeader(content, s.size)
}

func (s source) read() (inputs.Tensor, error) {
	content, err := s.open()
	if err != nil {
		return inputs.Tensor{}, err
	}
	defer content.Close()
	return read(content, s.size)
}

func readAll(sources []source) (map[string]inputs.Tensor, error) {
	arrays := make(map[string]inputs.Tensor, len(sources))
	var wrong problems.List
	for _, s := range sources {
		t, err := s.read()
		if err != nil {
			wrong.Add(s.fail(err))
			continue
		}
		arrays[s.name] = t
	}
	return arrays, wrong.Err()
}

// tooLargeError means that arrays take too much memory.
type tooLargeError struct {
	total, most int64
	remedy      string
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("its arrays would take %d bytes, more than the %d that are allowed; %s", e.total, e.most, e.remedy)
}

// check decides whether arrays of a total size in bytes may be read. unpacked is the limit for the
// unpacked size of their archive.
func (o Options) check(outlines map[string]Outline, total, unpacked int64) error {
	if o.Check != nil {
		if err := o.Check(outlines); err != nil {
			return err
		}
	}
	most := int64(maxMemory)
	if o.Memory > 0 {
		most = min(most, o.Memory)
	}
	switch {
	case total > most:
		return &tooLargeError{total, most, "save fewer rows"}
	case total > unpacked:
		return &tooLargeError{total, unpacked, fmt.Sprintf("that is more than %d times the file's size; save them uncompressed (np.savez)", maxRatio)}
	}
	return nil
}

// WriteArchive writes arrays by name as an .npz file. The same arrays give the same bytes.
func WriteArchive(w io.Writer, arrays map[string]inputs.Tensor) error {
	archive := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err == nil {
			err = Write(entry, arrays[name])
		}
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
	}
	return archive.Close()
}
