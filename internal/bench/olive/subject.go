package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tuner/dataset"
	"tuner/dataset/npy"
	"tuner/onnx"
	"tuner/onnx/inputs"
)

// subject is a model with rows that it accepts.
type subject struct {
	name   string
	path   string   // absolute
	dir    string   // for what is made of it
	rows   string   // .npz file
	shapes []string // NAME:SIZES of its inputs, without the batch dimension
}

// programs are the Pythons that do the work.
type programs struct {
	olive string // Olive's environment
	judge string // Python with onnxruntime
}

// find returns the programs, or says how to get them.
func find() (programs, error) {
	dir := os.Getenv("TUNER_PEERS")
	if dir == "" {
		dir = ".peers"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return programs{}, fmt.Errorf("cannot find the peers: %w", err)
	}
	p := programs{filepath.Join(dir, "olive", "bin", "olive"), filepath.Join(dir, "triton", "bin", "python")}
	for path, script := range map[string]string{p.olive: "olive.sh", p.judge: "peers.sh"} {
		if _, err := os.Stat(path); err != nil {
			return programs{}, fmt.Errorf("cannot find a peer: %w; run scripts/%s %s", err, script, dir)
		}
	}
	return p, nil
}

// The rows of random inputs, and the size of what a model leaves open, such as the length of a sentence.
const (
	rowCount = 64
	openSize = 32
)

// prepare writes a model's rows.
func prepare(o options, dir, name string) (s subject, err error) {
	path, err := filepath.Abs(filepath.Join(o.models, name+".onnx"))
	if err != nil {
		return s, fmt.Errorf("cannot find the model: %w", err)
	}
	model, err := onnx.Read(path)
	if err != nil {
		return s, fmt.Errorf("%w; go run ./cmd/samplemodels -o %s %s makes it", err, o.models, name)
	}
	sizes := inputs.Options{Default: openSize}
	rows, err := dataset.Synthetic(model, sizes, rowCount, 1)
	if name == "minilm" && err == nil {
		rows, err = dataset.Read(o.sentences, model)
	}
	if err != nil {
		return s, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, fmt.Errorf("cannot make a folder for the rows: %w", err)
	}
	s = subject{name: name, path: path, dir: dir, rows: filepath.Join(dir, "rows.npz")}
	list, err := inputs.Derive(model, sizes)
	if err != nil {
		return s, err
	}
	for _, in := range list {
		s.shapes = append(s.shapes, in.Name+":"+sizesText(in.Dims))
	}
	file, err := os.Create(s.rows)
	if err != nil {
		return s, fmt.Errorf("cannot write the rows: %w", err)
	}
	return s, errors.Join(npy.WriteArchive(file, rows.Inputs), file.Close())
}

// sizesText is sizes as the verb's flag --shape takes them: 3,224,224.
func sizesText(dims []int64) string {
	texts := make([]string, len(dims))
	for i, d := range dims {
		texts[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(texts, ",")
}
