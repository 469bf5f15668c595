package onnxruntime

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"tuner/model/modelconfig"
	"tuner/ort"
)

// foldingKey is the session entry that bounds the output of a node that ONNX Runtime computes while
// it loads a model, in bytes. A parameter of the configuration with this key replaces our bound.
const foldingKey = "optimization.constant_folding_max_output_size_in_bytes"

const (
	// foldingFactor is the largest factor between folded weights and a model's files. It is that of
	// weights of one byte that become float32. With twice the factor, a small file may take twice
	// the memory.
	foldingFactor = 4
	// minFolding is the least bound in bytes, for tables that a graph computes, such as masks and
	// position encodings. A mask of 4,096 positions in float32 has this size.
	minFolding = 64 << 20
	// maxFolding is ONNX Runtime's own bound in bytes.
	maxFolding = 1 << 30
)

// boundFolding bounds folded constants by the size of the model's files. A file of a few bytes would
// otherwise take 1 GiB for each node. A node beyond the bound is computed in each run instead.
func boundFolding(o ort.SessionOptions, config *modelconfig.Config, path string) ort.SessionOptions {
	value := strconv.FormatInt(foldingOf(sizeBeside(path)), 10)
	if p, given := config.GetParameters()[foldingKey]; given {
		value = p.GetStringValue()
	}
	o.Entries = maps.Clone(o.Entries)
	if o.Entries == nil {
		o.Entries = map[string]string{}
	}
	o.Entries[foldingKey] = value
	return o
}

// foldingOf returns the bound for a size of the model's files.
func foldingOf(files int64) int64 {
	return max(minFolding, foldingFactor*min(files, maxFolding/foldingFactor))
}

// sizeBeside returns the size of the files in a model file's folder, since external data lies there.
// It leaves out what cannot be read, which ONNX Runtime will report.
func sizeBeside(path string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(filepath.Dir(path), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && total < maxFolding {
			total += min(info.Size(), maxFolding)
		}
		return nil
	})
	return total
}
