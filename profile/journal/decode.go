package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	// jsonv1: encoding/json's behaviour in half the time, for the main content of large journals
	jsonv1 "github.com/go-json-experiment/json/v1"

	"tuner/internal/parallel"
)

// content is the decoded content of a journal.
type content struct {
	header  Header
	records []Record
	lines   lines
}

// size returns the size of the records in bytes.
func (c content) size() int64 { return int64(c.lines.end) }

// sum returns the checksum that the next record's seal continues.
func (c content) sum() string { return c.lines.previous(len(c.records)) }

// decode reads a journal's bytes. It skips an incomplete last line, since its writer never reported
// success. Errors name path and line, and a remedy.
func decode(path string, data []byte) (content, error) {
	l := newLines(data)
	if len(l.list) == 0 {
		return content{}, fmt.Errorf("%s:1: this is not a journal: it has no header", path)
	}
	records, damages := l.parse()
	var header Header
	for i, r := range records {
		if err := check(r, i, damages[i], &header); err != nil {
			return content{}, fmt.Errorf("%s:%d: %w%s", path, i+1, err, remedyOf(i, err))
		}
	}
	return content{header, records, l}, nil
}

// remedyOf returns the remedy for damage in the line with an index.
func remedyOf(i int, err error) string {
	switch {
	case errors.As(err, new(*formatError)):
		return ""
	case i == 0:
		return "; restore a copy of the file, or remove it to start over"
	}
	return fmt.Sprintf("; restore a copy of the file, or keep only its first %d lines, which are whole", i)
}

// lines are the lines of a journal, without an incomplete last one.
type lines struct {
	data  []byte
	list  [][]byte
	end   int // end of the last line
	first int // index of the first line with a seal; the number of lines if none has one
}

func newLines(data []byte) lines {
	l := lines{data: data, list: slices.Collect(bytes.Lines(data)), end: len(data)}
	if n := len(l.list); n > 0 && isTorn(l.list[n-1]) {
		l.end -= len(l.list[n-1])
		l.list = l.list[:n-1]
	}
	l.first = slices.IndexFunc(l.list, hasSeal)
	if l.first < 0 {
		l.first = len(l.list)
	}
	return l
}

// isTorn reports whether a last line is the rest of an interrupted write: the beginning of a
// record, or all of it except the newline. A record with other bytes after it was damaged.
func isTorn(line []byte) bool {
	if bytes.HasSuffix(line, []byte("\n")) {
		return false
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(line))
	if _, err := decoder.ReadValue(); err != nil {
		return true
	}
	return int(decoder.InputOffset()) == len(line)
}

// damage describes the defect of a line.
type damage struct {
	parsing error // it cannot be parsed
	seal    error // it does not match its checksum
}

// parse reads lines on all cores. Finding the end of a record reads each byte, and a large
// campaign's journal has tens of millions.
func (l lines) parse() ([]Record, []damage) {
	records, damages := make([]Record, len(l.list)), make([]damage, len(l.list))
	parallel.For(len(l.list), func(i int) {
		open, sum, isSealed := unseal(l.list[i])
		switch {
		case isSealed && sumOf(l.previous(i), open) != sum:
			damages[i].seal = errors.New("the record is damaged: its checksum is wrong. It was changed or moved, a line before it is missing, or it is from another journal")
		case !isSealed && i > l.first:
			damages[i].seal = errors.New("the record is damaged: it ends without its checksum")
		}
		isObject := isSealed
		if !isSealed {
			open, isObject = unbrace(l.list[i])
		}
		if !isObject {
			damages[i].parsing = errors.New("it is not a JSON object")
			return
		}
		records[i], damages[i].parsing = parseRecord(open)
		records[i].IsSealed = isSealed
	})
	return records, damages
}

// previous returns the checksum that a line's seal continues. It is read from the line before, so
// that each line is checked by itself. The first seal after unsealed lines covers all of these.
func (l lines) previous(i int) string {
	switch {
	case i > l.first:
		_, sum, _ := unseal(l.list[i-1])
		return sum
	case i == 0:
		return ""
	}
	begin := 0
	for _, line := range l.list[:i] {
		begin += len(line)
	}
	return sumOf("", l.data[:begin])
}

// strict accepts only the fields that this version writes, by their exact names.
func strict() json.Options {
	return json.JoinOptions(jsonv1.DefaultOptionsV1(), json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(false), jsontext.AllowDuplicateNames(false))
}

// parseRecord reads a record without its closing brace. It uses the fast path if possible.
func parseRecord(open []byte) (Record, error) {
	if r, ok := cutRecord(open); ok {
		return r, nil
	}
	var r Record
	err := json.Unmarshal(append(slices.Clip(open), '}'), &r, strict())
	return r, err
}

// cutRecord reads a record in encode's form, with the data last. It only validates the data, which
// is most of a journal and is decoded later. It returns false for a record in another form.
func cutRecord(open []byte) (r Record, ok bool) {
	head, data, found := bytes.Cut(open, []byte(`,"data":`))
	if !found || !jsonv1.Valid(data) { // true only for the value of the last field
		return Record{}, false
	}
	err := json.Unmarshal(append(slices.Clip(head), '}'), &r, strict())
	isSecond := r.Data != nil
	r.Data = bytes.TrimSpace(data)
	return r, err == nil && !isSecond
}

// check verifies that a record is complete and in its place. It reads the header from the first
// record.
func check(r Record, i int, d damage, header *Header) error {
	seq := i + 1
	switch {
	case seq == 1 && d.parsing != nil:
		return fmt.Errorf("this is not a journal, or its header is damaged: %w", d.parsing)
	case d.parsing != nil:
		return fmt.Errorf("the record is damaged: %w", d.parsing)
	case r.Seq != seq:
		return fmt.Errorf("record has the number %d, not %d: lines are missing or out of order", r.Seq, seq)
	case (r.Kind == KindHeader) != (seq == 1):
		return fmt.Errorf("unexpected record of kind %q: the first record is the header, and only that", r.Kind)
	case len(r.Data) == 0:
		return fmt.Errorf("record of kind %q has no data", r.Kind)
	case seq > 1:
		return d.seal
	}
	if err := checkFormat(r); err != nil {
		return err
	}
	if d.seal != nil {
		return d.seal
	}
	if err := r.Decode(header); err != nil {
		return err
	}
	return header.Spec.check()
}

// formatError means that another version of tuner wrote the journal in another format.
type formatError struct{ format int }

func (e *formatError) Error() string {
	return fmt.Sprintf("journal has format %d; this version of tuner reads the formats %d to %d", e.format, unsealedFormat, SeveralFormat)
}

// checkFormat checks a header's version before all else. The fields of another version may have
// other types.
func checkFormat(r Record) error {
	var h struct {
		Format int `json:"format"`
	}
	if err := jsonv1.Unmarshal(r.Data, &h); err != nil {
		return fmt.Errorf("cannot read the format of the journal: %w", err)
	}
	switch {
	case h.Format < unsealedFormat || h.Format > SeveralFormat:
		return &formatError{h.Format}
	case h.Format > unsealedFormat && !r.IsSealed:
		return errors.New("the header is damaged: it ends without its checksum")
	}
	return nil
}

// check compares a profile's text with its digest.
func (s SpecFile) check() error {
	if digest(s.Text) != s.SHA256 {
		return errors.New("the header is damaged: spec.sha256 is not the digest of spec.text")
	}
	return nil
}

// NewSpecFile makes a profile file from a path and a text.
func NewSpecFile(path string, text []byte) SpecFile {
	return SpecFile{Path: path, SHA256: digest(string(text)), Text: string(text)}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
