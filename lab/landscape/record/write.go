package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"tuner/internal/durable"
)

// Log is an unfinished recording: an uncompressed file to which lines are appended.
type Log struct {
	file *os.File
}

// Open starts a recording, or resumes the one in the file and returns its content. It removes a
// last line that was torn by a crash. The header of an existing file applies; the caller must
// compare it.
func Open(path string, h Header) (*Log, File, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, File{}, fmt.Errorf("cannot read recording: %w", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, File{}, fmt.Errorf("cannot open recording: %w", err)
	}
	if err = f.Truncate(int64(whole)); err == nil {
		_, err = f.Seek(int64(whole), io.SeekStart)
	}
	if err != nil {
		return nil, File{}, errors.Join(fmt.Errorf("cannot open recording: %w", err), f.Close())
	}
	log := &Log{f}
	if whole == 0 {
		return log, File{Header: h}, log.append(line{Header: &h})
	}
	known, err := Read(bytes.NewReader(text[:whole]))
	if err != nil {
		return nil, File{}, errors.Join(fmt.Errorf("cannot go on with recording %q: %w", path, err), f.Close())
	}
	return log, known, nil
}

// Point appends a trial. It returns when the trial is durable.
func (l *Log) Point(p Point) error { return l.append(line{Point: &p}) }

// Service appends a service trial. It returns when the trial is durable.
func (l *Log) Service(s Service) error { return l.append(line{Service: &s}) }

// Close ends the recording.
func (l *Log) Close() error { return l.file.Close() }

func (l *Log) append(v line) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("cannot write recording: %w", err)
	}
	return nil
}

// Save writes a whole file, compressed by gzip. Equal contents give equal bytes.
func Save(path string, f File) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(Write(z, f), z.Close())
	})
}

// Write writes a whole file, uncompressed.
func Write(w io.Writer, f File) error {
	encoder := json.NewEncoder(w)
	err := encoder.Encode(line{Header: &f.Header})
	for i := 0; i < len(f.Services) && err == nil; i++ {
		err = encoder.Encode(line{Service: &f.Services[i]})
	}
	for i := 0; i < len(f.Points) && err == nil; i++ {
		err = encoder.Encode(line{Point: &f.Points[i]})
	}
	if err != nil {
		return fmt.Errorf("cannot write landscape: %w", err)
	}
	return nil
}
