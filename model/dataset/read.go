package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/hostinfo"
	"tuner/internal/problems"
	"tuner/model/dataset/npy"
	"tuner/model/dataset/perfdata"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// maxText is the largest JSON file that is read, in bytes. In memory such a file takes about ten
// times as much.
const maxText = 1 << 30

// Signature describes the inputs and outputs that data has to fit.
type Signature struct {
	// Inputs and Outputs are those of the model. If it batches, their first dimension is the batch.
	Inputs, Outputs []onnx.Value
	// Batches: a request may have several rows
	Batches bool
	// Optional has the names of the inputs that data may leave out.
	Optional []string
}

// Read reads a dataset for the model from one of these:
//
//   - an .npz archive with one array per input,
//   - a .npy file, if the model has one input,
//   - a folder of NAME.npy files,
//   - a folder of .npz archives, each with rows of one shape,
//   - the JSON of perf_analyzer, in which each step is a row.
//
// Rows of a JSON, or of several archives, may differ in their shapes (Dataset.Parts).
//
// Arrays named label or labels have the classes. The first dimension of an array has the rows. If
// the model does not batch, an array may also have the model's own dimensions with a multiple of
// the first size. For a model of one image, an array of 64 images has 64 rows.
//
// The error lists all mistakes in the arrays.
func Read(path string, m *onnx.Model) (Dataset, error) {
	if err := m.CheckServable(); err != nil {
		return Dataset{}, fmt.Errorf("cannot read a dataset for the model: %w", err)
	}
	return ReadFor(path, Signature{Inputs: m.Inputs(), Outputs: m.Outputs(), Batches: inputs.Batches(m)})
}

// ReadFor reads a dataset, as Read does, for a model of which only the signature is known.
func ReadFor(path string, s Signature) (Dataset, error) {
	sets, err := readSets(path, s)
	if err != nil {
		return Dataset{}, err
	}
	parts, row := make([]Dataset, len(sets)), 0
	for i, arrays := range sets {
		labels, err := takeLabels(arrays, s)
		if err == nil {
			parts[i], err = fit(arrays, labels, s, row)
		}
		if err == nil && (parts[i].Labels == nil) != (parts[0].Labels == nil) {
			err = errors.New("some rows have labels, others have none: give all, or leave them out")
		}
		if err != nil {
			return Dataset{}, readError(path, err)
		}
		for range parts[i].Rows {
			parts[i].Places = append(parts[i].Places, row)
			row++
		}
	}
	d := joinByShape(parts)
	if d.Parts == nil {
		d.Places = nil
	}
	d.Name = filepath.Base(path)
	return d, nil
}

// joinByShape joins parts, those of equal shapes to one. The parts of the result are in ascending
// order of a row's size.
func joinByShape(parts []Dataset) Dataset {
	var joined []Dataset
	for _, equal := range grouped(parts, func(part Dataset) string { return fmt.Sprint(part.Shapes()) }) {
		joined = append(joined, concat(equal))
	}
	slices.SortStableFunc(joined, func(a, b Dataset) int { return cmp.Compare(a.Bytes()/a.Rows, b.Bytes()/b.Rows) })
	return Join(joined)
}

// concat returns a dataset with the rows of all parts, which have the same shape. There is at least
// one part.
func concat(parts []Dataset) Dataset {
	d := parts[0]
	if len(parts) == 1 {
		return d
	}
	d.Inputs, d.Rows, d.Labels, d.Places = map[string]inputs.Tensor{}, 0, nil, nil
	for _, part := range parts {
		for name, t := range part.Inputs {
			sum, known := d.Inputs[name]
			if !known {
				sum = inputs.Tensor{Type: t.Type, Shape: append([]int64{0}, t.Shape[1:]...)}
			}
			sum.Shape[0] += t.Shape[0]
			sum.Data, sum.Strings = append(sum.Data, t.Data...), append(sum.Strings, t.Strings...)
			d.Inputs[name] = sum
		}
		d.Rows, d.Labels, d.Places = d.Rows+part.Rows, append(d.Labels, part.Labels...), append(d.Places, part.Places...)
	}
	return d
}

func readError(path string, err error) error {
	return fmt.Errorf("cannot read the dataset %q: %w", path, err)
}

// readSets reads the arrays without changes, in sets of rows of one shape that follow each other. Its
// errors name the file.
func readSets(path string, s Signature) ([]map[string]inputs.Tensor, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, readError(path, durable.Cause(err))
	}
	one := func(arrays map[string]inputs.Tensor, err error) ([]map[string]inputs.Tensor, error) {
		return []map[string]inputs.Tensor{arrays}, err
	}
	switch extension := strings.ToLower(filepath.Ext(path)); {
	case info.IsDir():
		return readFolder(path, s)
	case extension == ".npz":
		return one(npy.ReadArchive(path, options(path, s)))
	case extension == ".npy":
		return one(readOnly(path, s))
	case extension == ".json":
		return readJSON(path, info.Size(), s)
	default:
		return nil, readError(path, errors.New("its name has no known ending; use .npz, .npy, .json (perf_analyzer's), or a folder of NAME.npy files"))
	}
}

// options limit reading to arrays that match the model and fit into memory. An untrusted file of
// some kilobytes may contain gigabytes of other arrays.
func options(path string, s Signature) npy.Options {
	check := func(outlines map[string]npy.Outline) error {
		if err := checkOutlines(outlines, s); err != nil {
			return readError(path, err)
		}
		return nil
	}
	return npy.Options{Check: check, Memory: hostinfo.UsableMemory() / 2}
}

// HasArrays reports whether a path has NumPy's arrays: an .npz or .npy file, or a folder with .npy
// or .npz files.
func HasArrays(path string) bool {
	isArray := func(path, extension string) bool { return strings.EqualFold(filepath.Ext(path), extension) }
	entries, err := os.ReadDir(path)
	if err != nil { // no folder
		return isArray(path, ".npz") || isArray(path, ".npy")
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isArray(e.Name(), ".npy") || isArray(e.Name(), ".npz") })
}

// mostArchives bounds the archives of a folder.
const mostArchives = 1000

// readFolder reads the .npy files of a folder as arrays, or its .npz files as sets of rows, and
// ignores others.
func readFolder(path string, s Signature) ([]map[string]inputs.Tensor, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, readError(path, durable.Cause(err))
	}
	paths := map[string]string{}
	var archives []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if name, isArray := strings.CutSuffix(entry.Name(), ".npy"); isArray {
			paths[name] = filepath.Join(path, entry.Name())
		} else if strings.HasSuffix(entry.Name(), ".npz") {
			archives = append(archives, filepath.Join(path, entry.Name()))
		}
	}
	switch {
	case len(paths) > 0 && len(archives) > 0:
		return nil, readError(path, errors.New("the folder has .npy and .npz files: keep either arrays (NAME.npy) or archives of rows"))
	case len(archives) > mostArchives:
		return nil, readError(path, fmt.Errorf("the folder has %d archives, more than %d: put rows of one shape into one", len(archives), mostArchives))
	case len(archives) > 0:
		return readArchives(path, archives, s)
	case len(paths) == 0:
		return nil, readError(path, errors.New("the folder has no .npy files; name them after the inputs: NAME.npy"))
	}
	arrays, err := npy.ReadFiles(paths, options(path, s))
	return []map[string]inputs.Tensor{arrays}, err
}

// readArchives reads the archives of a folder. All of them together fit into memory.
func readArchives(folder string, paths []string, s Signature) ([]map[string]inputs.Tensor, error) {
	var sets []map[string]inputs.Tensor
	left := options(folder, s).Memory
	for _, path := range paths {
		o := options(path, s)
		o.Memory = max(left, 1)
		arrays, err := npy.ReadArchive(path, o)
		if err != nil {
			return nil, err
		}
		for _, t := range arrays {
			left -= int64(bytesOf(t))
		}
		sets = append(sets, arrays)
	}
	return sets, nil
}

// readOnly reads a .npy file as the model's only input.
func readOnly(path string, s Signature) (map[string]inputs.Tensor, error) {
	if in := s.Inputs; len(in) != 1 {
		return nil, readError(path, fmt.Errorf("a .npy file is one array, but the model has the inputs %s; put all into one .npz: np.savez(path, NAME=array, …)",
			problems.Quote(names(in))))
	}
	return npy.ReadFiles(map[string]string{s.Inputs[0].Name: path}, options(path, s))
}

// readJSON reads perf_analyzer's data: all steps of all streams, in sets of steps of equal shapes.
// Expected outputs must match the model but are not used, since accuracy is the agreement with the
// original model.
func readJSON(path string, size int64, s Signature) ([]map[string]inputs.Tensor, error) {
	if size > maxText {
		return nil, readError(path, fmt.Errorf("its %d bytes exceed %d GiB; an .npz file is smaller and reads faster", size, maxText>>30))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, readError(path, durable.Cause(err))
	}
	file, err := perfdata.Parse(text, s.specs(s.Inputs), s.specs(s.Outputs))
	if err != nil {
		return nil, readError(path, err)
	}
	var steps []perfdata.Step
	for _, stream := range file.Streams {
		steps = append(steps, stream...)
	}
	if err := sameNames(steps); err != nil {
		return nil, readError(path, err)
	}
	var sets []map[string]inputs.Tensor
	for _, run := range runs(steps, shapesKey[perfdata.Step]) {
		arrays, err := stack(run)
		if err != nil {
			return nil, readError(path, err)
		}
		sets = append(sets, arrays)
	}
	return sets, nil
}

// specs describes one step: each value's shape, without the batch dimension if the model batches.
func (s Signature) specs(values []onnx.Value) []perfdata.Spec {
	list := make([]perfdata.Spec, len(values))
	for i, v := range values {
		list[i] = perfdata.Spec{Name: v.Name, Type: v.Type}
		if v.Ranked {
			list[i].Dims = v.Dims()
		}
		if s.Batches {
			list[i].Dims = list[i].Dims[1:]
		}
	}
	return list
}

func names(values []onnx.Value) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v.Name
	}
	return list
}
