package gate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tuner/gate/decide"
	"tuner/internal/durable"
	"tuner/measure"
	"tuner/profile"
)

// historySchema is the version of a history's lines that this package writes and reads.
const historySchema = 1

// Record is a line of the history: one gate.
type Record struct {
	Schema      int                             `json:"schema"`
	Time        time.Time                       `json:"time"`
	Revision    string                          `json:"revision,omitempty"`
	Name        string                          `json:"name"`
	Verdict     decide.Verdict                  `json:"verdict"`
	Load        measure.Load                    `json:"load"`
	Fingerprint string                          `json:"machine_fingerprint"`
	Pairs       int                             `json:"pairs"`
	Seconds     float64                         `json:"seconds"`
	Metrics     map[measure.Metric]RecordFigure `json:"metrics"`
}

// RecordFigure is a metric in a line of the history: its figures, and what it was held against. Lines of earlier versions have nothing behind Hi.
type RecordFigure struct {
	Candidate float64  `json:"candidate"`          // in its base unit
	Baseline  *float64 `json:"baseline,omitempty"` // nil without one
	Change    *float64 `json:"change,omitempty"`   // candidate over baseline, less 1
	Lo        *float64 `json:"lo,omitempty"`       // of the change; nil where it is not known
	Hi        *float64 `json:"hi,omitempty"`

	Verdict     decide.Verdict `json:"verdict,omitempty"` // of the metric's criteria together
	Margin      *float64       `json:"margin,omitempty"`  // share of the baseline that was tolerated
	Min         *float64       `json:"min,omitempty"`     // limits, in the metric's base unit
	Max         *float64       `json:"max,omitempty"`
	CandidateLo *float64       `json:"candidate_lo,omitempty"` // of the candidate, where it was held against a limit
	CandidateHi *float64       `json:"candidate_hi,omitempty"`
}

// NewRecord makes the history's line of a result.
func NewRecord(r Result) Record {
	record := Record{Schema: historySchema, Time: r.Time.UTC(), Revision: r.Revision, Name: r.Setup.Spec.Name, Verdict: r.Outcome.Verdict, Load: r.Setup.Load,
		Fingerprint: r.Setup.Fingerprint, Pairs: len(r.Outcome.Pairs), Seconds: six(r.Outcome.Elapsed.Seconds()), Metrics: map[measure.Metric]RecordFigure{}}
	for _, row := range r.Rows {
		if row.HasCandidate {
			record.Metrics[row.Metric] = record.Metrics[row.Metric].with(row)
		}
	}
	return record
}

// VerdictOn is the verdict on a metric; the gate's where the line does not tell it.
func (r Record) VerdictOn(m measure.Metric) decide.Verdict {
	return cmp.Or(r.Metrics[m].Verdict, r.Verdict)
}

// with adds one of the metric's criteria.
func (f RecordFigure) with(row Row) RecordFigure {
	f.Candidate, f.Verdict = six(row.Candidate), both(f.Verdict, row.Verdict)
	switch {
	case !row.IsLimit():
		f.Margin = Number(row.Margin)
		if row.HasBaseline {
			f.Baseline = Number(row.Baseline)
			if row.IsKnown() {
				f.Change, f.Lo, f.Hi = Number(row.Change.Value), Number(row.Change.Lo), Number(row.Change.Hi)
			}
		}
		return f
	case row.Min:
		f.Min = Number(row.Bound)
	default:
		f.Max = Number(row.Bound)
	}
	if row.IsKnown() {
		f.CandidateLo, f.CandidateHi = Number(row.of(row.Change.Lo)), Number(row.of(row.Change.Hi))
	}
	return f
}

// both is the verdict of two criteria together: one that fails decides, and both must pass. "" is no criterion.
func both(a, b decide.Verdict) decide.Verdict {
	switch {
	case a == decide.Fail || b == decide.Fail:
		return decide.Fail
	case a == decide.Inconclusive || b == decide.Inconclusive:
		return decide.Inconclusive
	}
	return decide.Pass
}

// ReadHistory reads the lines of a history, the latest last; none of a file that is not there. A last line without an end is left out: nobody
// was told that it was written. Any other line that is none is an InputError.
func ReadHistory(path string) ([]Record, error) {
	records, _, err := readHistory(path)
	return records, err
}

// readHistory returns the size of the whole lines, too.
func readHistory(path string) ([]Record, int64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, &profile.InputError{Err: fmt.Errorf("cannot read the history %q: %w", path, durable.Cause(err))}
	}
	records, size, err := parseHistory(text)
	if err != nil {
		return nil, 0, &profile.InputError{Err: fmt.Errorf("%s:%w; mend or remove the line, or name another file by history", path, err)}
	}
	return records, size, nil
}

func parseHistory(text []byte) ([]Record, int64, error) {
	var records []Record
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	number := 0
	for line := range bytes.Lines(whole) {
		number++
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, 0, fmt.Errorf("%d: it is not a line of a history: %w", number, err)
		}
		if r.Schema != historySchema {
			return nil, 0, fmt.Errorf("%d: it has schema %d; this version of tuner reads %d", number, r.Schema, historySchema)
		}
		records = append(records, r)
	}
	return records, int64(len(whole)), nil
}

// CheckHistory finds out, before there is anything to tell, whether a history can be read and written; an InputError if not.
func CheckHistory(path string) error {
	if _, err := ReadHistory(path); err != nil {
		return err
	}
	if err := durable.CheckFile(path); err != nil {
		return &profile.InputError{Err: fmt.Errorf("cannot write the history %q: %w; name another file by history", path, durable.Cause(err))}
	}
	return nil
}

// AppendHistory adds a line to a history and returns all of them, the new one last, when it is on disk. What a crash left of a line is cut off
// first. It blocks while another gate adds one.
func AppendHistory(path string, r Record) ([]Record, error) {
	fail := func(err error) ([]Record, error) {
		return nil, &profile.InputError{Err: fmt.Errorf("cannot write the history %q: %w", path, durable.Cause(err))}
	}
	unlock, err := lock(path)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	records, size, err := readHistory(path)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("cannot write the history %q: %w", path, err)
	}
	if err := appendLine(path, size, append(line, '\n')); err != nil {
		return fail(err)
	}
	return append(records, r), nil
}

// lock keeps other gates from a file that several may share, until unlock. Its folder is made where there is none.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return durable.Lock(path)
}

// appendLine writes behind the first bytes of a file, which stay as they are also where writing fails.
func appendLine(path string, size int64, line []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		if _, err = f.WriteAt(line, size); err != nil {
			err = errors.Join(err, f.Truncate(size))
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}
