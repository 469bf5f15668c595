package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"tuner/fleet/record"
)

// creator creates ConfigMaps. It may be asked from one goroutine at a time.
type creator interface {
	create(ctx context.Context, m record.ConfigMap) error
	exists(ctx context.Context, m record.ConfigMap) bool
}

// sender sends a journal as it grows. A segment that was sent stays as it is, also if the API server's
// answer was lost: its name and its content are the same when it is sent again.
type sender struct {
	to           creator
	run, machine string
	attempt      record.Attempt
	journal      string           // path
	mine         record.ConfigMap // the item's result, by its name

	sent     int64 // bytes
	segments int
	waiting  *record.ConfigMap // the segment that was not accepted yet
	length   int               // bytes of the journal in it
}

// longestTry is the number of bytes of a journal of which a segment is tried first. Journals of real campaigns become
// a quarter by gzip, so most segments fit at once. All that is left of a long journal would be compressed
// again for each of its segments.
const longestTry = 4 * record.MostBytes

// unsent returns the next whole lines of the journal that were not sent, longestTry at most. An incomplete
// last line waits for its rest, but a line that is longer is cut. Without a journal it returns nothing.
func (s *sender) unsent() ([]byte, error) {
	f, err := os.Open(s.journal)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	defer func() { _ = f.Close() }() // it was read only
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	case info.Size() < s.sent:
		return nil, fmt.Errorf("the journal %q has become shorter", s.journal)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, s.sent, longestTry))
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	if end := bytes.LastIndexByte(text, '\n'); end >= 0 || len(text) < longestTry {
		text = text[:end+1]
	}
	return text, nil
}

// step sends one segment, or nothing if all is sent. more is false if nothing was left.
func (s *sender) step(ctx context.Context) (more bool, err error) {
	if s.waiting == nil {
		text, err := s.unsent()
		if err != nil || len(text) == 0 {
			return false, err
		}
		if err := s.pack(text); err != nil {
			return false, err
		}
	}
	if err := s.to.create(ctx, *s.waiting); err != nil && !errors.Is(err, errExists) {
		return true, err
	}
	s.sent, s.segments, s.waiting = s.sent+int64(s.length), s.segments+1, nil
	return true, nil
}

// pack makes the next segment of text, of as many lines as fit. A line that does not fit is cut: the
// parts are joined by their bytes.
func (s *sender) pack(text []byte) error {
	for {
		segment := record.Segment{Attempt: s.attempt, Ordinal: s.segments, From: s.sent, Text: text}
		m, fits, err := segment.ConfigMap(s.run, s.machine)
		if err != nil {
			return fmt.Errorf("cannot pack the journal: %w", err)
		}
		if fits {
			s.waiting, s.length = &m, len(text)
			return nil
		}
		half := text[:len(text)/2]
		if end := bytes.LastIndexByte(half, '\n'); end >= 0 {
			half = half[:end+1]
		}
		text = half
	}
}

// finish sends the rest, for as long as the context lasts.
func (s *sender) finish(ctx context.Context) error {
	for more := true; more; {
		if err := insist(ctx, func() (err error) { more, err = s.step(ctx); return err }); err != nil {
			return fmt.Errorf("cannot deliver the journal: %w", err)
		}
	}
	return nil
}
