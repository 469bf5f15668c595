package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"tuner/internal/durable"
)

// turns sums up all turns of a target.
type turns struct {
	Time       time.Duration // of the wall clock, with one worker process
	Executions int64
	Corpus     int64 // inputs of the last turn, each of which reaches code that no other reaches
	Failed     int64 // turns that ended with a failing input
	Last       time.Time
}

// plus returns the sum of earlier turns and a later one.
func (t turns) plus(later turns) turns {
	later.Time += t.Time
	later.Executions += t.Executions
	later.Failed += t.Failed
	return later
}

func (t turns) String() string {
	return fmt.Sprintf("%s, %d executions, %d failed turns", t.Time.Round(time.Second), t.Executions, t.Failed)
}

var columns = []string{"target", "seconds", "executions", "corpus", "failed", "last"}

// readLedger reads a ledger; none is an empty one.
func readLedger(path string) (map[string]turns, error) {
	had := map[string]turns{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return had, nil
	}
	if err != nil {
		return nil, err
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err == nil && (len(lines) == 0 || !slices.Equal(lines[0], columns)) {
		err = fmt.Errorf("its first line is not %q", columns)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	for _, line := range lines[1:] {
		var numbers [4]int64
		for i := range numbers {
			n, err := strconv.ParseInt(line[i+1], 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("%s: %s of %s: %q is not a number of zero or more", path, columns[i+1], line[0], line[i+1])
			}
			numbers[i] = n
		}
		last, err := time.Parse(time.DateOnly, line[5])
		if err != nil {
			return nil, fmt.Errorf("%s: last of %s: %w", path, line[0], err)
		}
		had[line[0]] = turns{time.Duration(numbers[0]) * time.Second, numbers[1], numbers[2], numbers[3], last}
	}
	return had, nil
}

// writeLedger writes a ledger, targets in order of their names.
func writeLedger(path string, had map[string]turns) error {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	lines := [][]string{columns}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		t := had[name]
		lines = append(lines, []string{name, fmt.Sprint(int64(t.Time / time.Second)), fmt.Sprint(t.Executions),
			fmt.Sprint(t.Corpus), fmt.Sprint(t.Failed), t.Last.Format(time.DateOnly)})
	}
	if err := w.WriteAll(lines); err != nil {
		return err
	}
	return durable.WriteFile(path, durable.Bytes(text.Bytes()))
}
