package onnxruntime

import (
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tuner/model/modelconfig"
	"tuner/model/onnx/extent"
	"tuner/ort"
)

// foldingKey is the session entry that bounds the output of a node that ONNX Runtime computes while
// it loads a model, in bytes. A parameter of the configuration with this key replaces our bound, but
// not the one of the work.
const foldingKey = "optimization.constant_folding_max_output_size_in_bytes"

// disabledKey is the session entry that lists optimizers to leave out, and foldingName the one that
// computes constants.
const (
	disabledKey = "optimization.disable_specified_optimizers"
	foldingName = "ConstantFolding"
)

const (
	// foldingFactor is the largest factor between folded weights and a model's files. It is that of
	// weights of one byte that become float32. With twice the factor, a small file may take twice
	// the memory.
	foldingFactor = 4
	// minFolding is the least bound in bytes, for tables that a graph computes, such as masks and
	// position encodings. A mask of 4,096 positions in float32 has this size.
	minFolding = 64 << 20
	// maxFolding is ONNX Runtime's own bound in bytes, and ours for all constants of a small model.
	maxFolding = 1 << 30
	// leastFolding is the bound in bytes below which a constant takes no more than its node. So the
	// number of nodes does not matter.
	leastFolding = 4 << 10
	// maxFoldingWork bounds what all constants take to compute, in elements that are read, multiplied
	// or written. ONNX Runtime takes a minute for it at worst. Twice as much takes two.
	maxFoldingWork = 1 << 36
)

// boundFolding bounds folded constants by the size of the model's files. A file of a few bytes would
// otherwise take 1 GiB for each node, and hours. A node beyond the bound is computed in each run
// instead, and if they take too long, all are. A client may load a model with a configuration of its
// own, so the latter holds for a bound of the configuration too.
func boundFolding(o ort.SessionOptions, config *modelconfig.Config, path string, constants extent.Constants) ort.SessionOptions {
	o.Entries = maps.Clone(o.Entries)
	if o.Entries == nil {
		o.Entries = map[string]string{}
	}
	var bound uint64
	if p, given := config.GetParameters()[foldingKey]; given {
		o.Entries[foldingKey] = p.GetStringValue()
		bound = parseFolding(p.GetStringValue())
	} else {
		bound = fittingBound(sizeBeside(path), constants)
		o.Entries[foldingKey] = strconv.FormatUint(bound, 10)
	}
	if constants.Work(bound) > maxFoldingWork {
		o.Entries[disabledKey] = strings.TrimPrefix(o.Entries[disabledKey]+";"+foldingName, ";")
	}
	return o
}

// parseFolding reads a bound of the configuration. To ONNX Runtime 0 is no bound. A text that is not
// a number may be none either.
func parseFolding(text string) uint64 {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return n
	}
	return math.MaxUint64
}

// fittingBound returns the bound of one constant for which all constants together fit the model's
// files.
func fittingBound(files int64, constants extent.Constants) uint64 {
	bound := uint64(foldingOf(files))
	for bound > leastFolding && constants.Bytes(bound) > uint64(max(maxFolding, foldingFactor*files)) {
		bound /= 2
	}
	return bound
}

// foldingOf returns the bound of one constant for a size of the model's files.
func foldingOf(files int64) int64 {
	return max(minFolding, foldingFactor*min(files, maxFolding/foldingFactor))
}

// largestFiles is more than any model has in bytes, and small enough for sums.
const largestFiles = 1 << 50

// sizeBeside returns the size of the files in a model file's folder, since external data lies there.
// It leaves out what cannot be read, which ONNX Runtime will report.
func sizeBeside(path string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(filepath.Dir(path), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			total = min(total+min(info.Size(), largestFiles), largestFiles)
		}
		return nil
	})
	return total
}
