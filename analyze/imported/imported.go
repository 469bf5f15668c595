// Package imported reads what other programs measured: the checkpoints of Triton Model Analyzer,
// and what perf_analyzer prints and writes as CSV. It makes values of analyze.Recording, which are ranked
// and reported like campaigns. It takes the place of the journal. It adds nothing: figures that a
// file does not have stay unknown.
package imported

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tuner/analyze"
	"tuner/internal/durable"
	"tuner/measure"
	"tuner/model/modelconfig"
)

// maxBytes limits the size of a file. A checkpoint of 500 measurements has about four megabytes.
const maxBytes = 256 << 20

// Read reads a file, or the newest checkpoint in a folder. It returns a recording for each model in
// it, and notes about what it left out. The error is fs.ErrNotExist if there is nothing to read.
// Other errors name the file and the place.
func Read(path string) (list []analyze.Recording, notes []string, err error) {
	if path, err = newest(path); err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxBytes {
		return nil, nil, fmt.Errorf("cannot read %q: the file has %d bytes, and the limit is %d", path, info.Size(), maxBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %q: %w", path, durable.Cause(err))
	}
	list, notes, err = parse(path, text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, notes, nil
}

// newest returns the path of the checkpoint with the highest number in a folder. For a file it
// returns the path.
func newest(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %q: %w", path, err)
	}
	if !info.IsDir() {
		return path, nil
	}
	files, err := filepath.Glob(filepath.Join(path, "*.ckpt"))
	if err != nil {
		return "", fmt.Errorf("cannot look for checkpoints in %q: %w", path, err)
	}
	best, highest := "", -1
	for _, file := range files {
		n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".ckpt"))
		if err == nil && n > highest {
			best, highest = file, n
		}
	}
	if best == "" {
		return "", fmt.Errorf("cannot find a checkpoint (0.ckpt, 1.ckpt …) in %q: %w", path, fs.ErrNotExist)
	}
	return best, nil
}

// parse finds the format of a file from its beginning, and reads it.
func parse(path string, text []byte) ([]analyze.Recording, []string, error) {
	first, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	switch {
	case len(first) == 0:
		return nil, nil, errors.New("the file is empty")
	case first[0] == '{':
		return parseCheckpoint(path, text)
	case bytes.Contains(first, []byte(columnThroughput)) && bytes.ContainsRune(first, ','):
		r, err := parseCSV(path, text)
		return []analyze.Recording{r}, nil, err
	}
	r, err := parseOutput(path, text)
	return []analyze.Recording{r}, nil, err
}

// single makes a recording of one configuration with figures only. The model gets the file's name.
func single(path string, points []analyze.RecordedPoint) analyze.Recording {
	model := filepath.Base(path)
	for _, end := range []string{".csv", ".txt", ".log", ".out", "-results"} {
		model = strings.TrimSuffix(model, end)
	}
	return analyze.Recording{Model: model, Source: path, Configs: []analyze.RecordedConfig{{
		Name: model + "_config_default", Default: true, Deployed: &modelconfig.Config{}, Points: points}}}
}

// number reads a finite number that is not negative; ok is false for anything else.
func number(text string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return x, err == nil && x >= 0 && !math.IsInf(x, 0)
}

// closedLoop and openLoop make loads. The client batch is 0 if it is unknown.
func closedLoop(concurrency, batch float64) measure.Load {
	return measure.Load{Concurrency: int(concurrency), BatchSize: int(batch)}
}

func openLoop(rate, batch float64) measure.Load {
	return measure.Load{RequestRate: rate, BatchSize: int(batch)}
}
