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

	"tuner/onnx/inputs"
)

// maxArchive is the most bytes that an archive may hold when unpacked: some hundred bytes can unpack to a thousand times as
// many.
const maxArchive = 8 << 30

// ReadFile reads a .npy file.
func ReadFile(path string) (inputs.Tensor, error) {
	t, err := readFile(path)
	if err != nil {
		return inputs.Tensor{}, fmt.Errorf("cannot read the array %q: %w", path, err)
	}
	return t, nil
}

func readFile(path string) (inputs.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return inputs.Tensor{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return inputs.Tensor{}, err
	}
	return read(f, info.Size())
}

// ReadArchive reads a .npz file: arrays by name. Every array that cannot be read is told.
func ReadArchive(path string) (map[string]inputs.Tensor, error) {
	archive, err := zip.OpenReader(path)
	switch {
	case errors.Is(err, zip.ErrFormat):
		return nil, fmt.Errorf("cannot read %q: it is no .npz archive (a zip file, as np.savez writes)", path)
	case err != nil:
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	defer archive.Close()
	arrays, err := readEntries(&archive.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	return arrays, nil
}

func readEntries(archive *zip.Reader) (map[string]inputs.Tensor, error) {
	arrays := make(map[string]inputs.Tensor, len(archive.File))
	var errs []error
	left := uint64(maxArchive)
	for _, entry := range archive.File {
		name, isArray := strings.CutSuffix(entry.Name, ".npy")
		_, twice := arrays[name]
		switch {
		case !isArray:
			errs = append(errs, fmt.Errorf("%q in it is no .npy file: only those belong into a .npz archive", entry.Name))
			continue
		case twice:
			errs = append(errs, fmt.Errorf("the array %q is in it twice", name))
			continue
		case entry.UncompressedSize64 > left:
			return nil, fmt.Errorf("its arrays take more than %d GiB; save fewer rows", maxArchive>>30)
		}
		left -= entry.UncompressedSize64
		t, err := readEntry(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("array %q: %w", name, err))
			continue
		}
		arrays[name] = t
	}
	return arrays, errors.Join(errs...)
}

func readEntry(entry *zip.File) (inputs.Tensor, error) {
	content, err := entry.Open()
	if err != nil {
		return inputs.Tensor{}, err
	}
	defer content.Close()
	return read(content, int64(entry.UncompressedSize64))
}

// WriteArchive writes arrays by name as a .npz file, the same bytes for the same arrays.
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
