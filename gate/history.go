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

// Record is one gate: a line of the history.
type Record struct {
	Schema   int            `json:"schema"`             // version of this format: 1
	Time     time.Time      `json:"time"`               // when the gate began
	Revision string         `json:"revision,omitempty"` // commit that was judged
	Name     string         `json:"name"`               // name of the gate
	Verdict  decide.Verdict `json:"verdict"`            // verdict of the gate
	Load     measure.Load   `json:"load"`               // the load of both sides
	// fingerprint of the machine; figures of machines with different fingerprints do not compare
	Fingerprint string                          `json:"machine_fingerprint"`
	Pairs       int                             `json:"pairs"`   // number of measured pairs
	Seconds     float64                         `json:"seconds"` // how long the gate took
	Metrics     map[measure.Metric]RecordFigure `json:"metrics"` // figures by metric
}

// RecordFigure is a metric in a line of the history: its figures, with its margin or limits. Lines
// of earlier versions end after hi.
type RecordFigure struct {
	// median of the candidate, in the metric's base unit
	Candidate float64 `json:"candidate"`
	// median of the baseline, in the metric's base unit; absent without a baseline
	Baseline *float64 `json:"baseline,omitempty"`
	Change   *float64 `json:"change,omitempty"` // candidate over baseline, minus 1
	// lower end of the interval of the change; absent if unknown
	Lo *float64 `json:"lo,omitempty"`
	Hi *float64 `json:"hi,omitempty"` // upper end of the interval of the change

	Verdict decide.Verdict `json:"verdict,omitempty"` // verdict on the metric, over all its criteria
	// allowed change for the worse, as a share of the baseline
	Margin *float64 `json:"margin,omitempty"`
	Min    *float64 `json:"min,omitempty"` // least allowed value, in the metric's base unit
	// largest allowed value, in the metric's base unit
	Max *float64 `json:"max,omitempty"`
	// lower end of the candidate's interval, if the metric has a limit
	CandidateLo *float64 `json:"candidate_lo,omitempty"`
	// upper end of the candidate's interval, if the metric has a limit
	CandidateHi *float64 `json:"candidate_hi,omitempty"`
}

// NewRecord makes the history's line for a result.
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

// VerdictOn returns the verdict on a metric. Lines without it have the gate's verdict.
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

// both returns the verdict of two criteria together. One that fails decides, and both must pass. ""
// means no criterion.
func both(a, b decide.Verdict) decide.Verdict {
	switch {
	case a == decide.Fail || b == decide.Fail:
		return decide.Fail
	case a == decide.Inconclusive || b == decide.Inconclusive:
		return decide.Inconclusive
	}
	return decide.Pass
}

// ReadHistory reads the lines of a history, the latest last; none if the file does not exist. It
// skips a last line without an end, since its writer never reported success. Any other invalid line
// is an InputError.
func ReadHistory(path string) ([]Record, error) {
	records, _, err := readHistory(path)
	return records, err
}

// readHistory also returns the size of the complete lines in bytes.
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
		return nil, 0, &profile.InputError{Err: fmt.Errorf("%s:%w; correct or remove the line, or name another file in the field history", path, err)}
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

// CheckHistory checks early whether a history can be read and written. It returns an InputError if
// not.
func CheckHistory(path string) error {
	if _, err := ReadHistory(path); err != nil {
		return err
	}
	if err := durable.CheckFile(path); err != nil {
		return &profile.InputError{Err: fmt.Errorf("cannot write the history %q: %w; name another file in the field history", path, durable.Cause(err))}
	}
	return nil
}

// AppendHistory adds a line to a history. It returns all lines, the new one last, after the line is
// on disk. It first removes an incomplete line that a crash left. It blocks while another gate adds
// a line.
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

// lock excludes other gates from a shared file until unlock. It makes the file's folder if needed.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return durable.Lock(path)
}

// appendLine writes after the first bytes of a file. These bytes stay unchanged even if writing
// fails.
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
