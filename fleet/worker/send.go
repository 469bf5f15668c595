package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// unsent returns the whole lines of the journal that were not sent. An incomplete last line waits for
// its rest. Without a journal it returns nothing.
func (s *sender) unsent() ([]byte, error) {
	text, err := os.ReadFile(s.journal)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	if int64(len(whole)) < s.sent {
		return nil, fmt.Errorf("the journal %q has become shorter", s.journal)
	}
	return whole[s.sent:], nil
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
