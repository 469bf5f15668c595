package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"tuner/search"
)

// line is one line of a file. Exactly one of its fields is set: the header in the first line,
// others in all following lines.
type line struct {
	Header  *Header  `json:"header,omitempty"`
	Point   *Point   `json:"point,omitempty"`
	Service *Service `json:"service,omitempty"`
}

// Load reads a file, with or without gzip compression. Errors name file and line.
func Load(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("cannot open landscape: %w", err)
	}
	defer f.Close()
	file, err := Read(f)
	if err != nil {
		return File{}, fmt.Errorf("cannot read landscape %q: %w", path, err)
	}
	return file, nil
}

// Read reads a file's content, with or without gzip compression.
func Read(r io.Reader) (File, error) {
	lines := bufio.NewReader(r)
	if magic, _ := lines.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(lines)
		if err != nil {
			return File{}, fmt.Errorf("gzip: %w", err)
		}
		lines = bufio.NewReader(z)
	}
	var f File
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return File{}, fmt.Errorf("line %d: %w", number, err)
		}
		if err := f.add(text); err != nil {
			return File{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if f.Header.Version == 0 {
		return File{}, errors.New("it is empty: the first line must be the header")
	}
	return f, nil
}

// add adds a line.
func (f *File) add(text []byte) error {
	var l line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&l); err != nil {
		return fmt.Errorf("cannot decode %.60q: %w", text, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	isFirst := f.Header.Version == 0
	switch {
	case isFirst && l.Header == nil:
		return errors.New("the first line must be the header")
	case isFirst && l.Point == nil && l.Service == nil:
		f.Header = *l.Header
		return f.Header.check()
	case isFirst || l.Header != nil || (l.Point == nil) == (l.Service == nil):
		return errors.New("must be one point or one service trial")
	case l.Point != nil:
		f.Points = append(f.Points, *l.Point)
		return l.Point.check(f.Header.Space)
	}
	f.Services = append(f.Services, *l.Service)
	return l.Service.check()
}

func (h Header) check() error {
	levels := h.Space.Load.Levels
	switch {
	case h.Version != Version:
		return fmt.Errorf("header.version is %d; this program reads %d: record the landscape again", h.Version, Version)
	case h.Name == "":
		return errors.New("header.name is missing")
	case h.Window <= 0:
		return fmt.Errorf("header.window is %v; it must be above zero", h.Window)
	case h.Space.Load.Rate || h.Space.Load.Any || h.Space.Load.BatchSize < 1:
		return errors.New("header.space.Load must list concurrencies, and have a client batch of at least 1")
	case len(levels) == 0 || levels[0] < 1 || !slices.IsSorted(levels):
		return fmt.Errorf("header.space.Load.Levels are %v; allowed: one or more concurrencies, ascending", levels)
	}
	return nil
}

func (t Trial) check() error {
	switch {
	case t.Launch < 1 || t.Pass < 0 || t.At < 0:
		return fmt.Errorf("launch %d, pass %d, at %v: launches count from 1, passes and time from 0", t.Launch, t.Pass, t.At)
	case t.Times.Launch < 0 || t.Times.Reconfigure < 0 || t.Times.WarmUp < 0 || t.Times.Windows < 0 || t.Times.Drain < 0:
		return fmt.Errorf("times %+v: a time is negative", t.Times)
	}
	return nil
}

func (p Point) check(s search.Space) error {
	if err := p.Trial.check(); err != nil {
		return err
	}
	if !slices.Contains(s.Load.Levels, p.Level) {
		return fmt.Errorf("point.level is %g; the header's levels are %v", p.Level, s.Load.Levels)
	}
	if (len(p.Windows) == 0) != (p.Failure != nil) {
		return errors.New("point: must have either windows or a failure")
	}
	for i, w := range p.Windows {
		if err := w.check(); err != nil {
			return fmt.Errorf("point.windows[%d]: %w", i, err)
		}
	}
	return nil
}

// longestWindow is an upper bound of plausible values, in seconds and in requests.
const longestWindow = 1e6

func (w Window) check() error {
	requests := 0
	for _, n := range w.Requests {
		if n < 0 || n > longestWindow {
			return fmt.Errorf("requests are %v", w.Requests)
		}
		requests += n
	}
	switch {
	case w.Duration <= 0 || w.Duration.Seconds() > longestWindow:
		return fmt.Errorf("duration is %v", w.Duration)
	case len(w.Requests) == 0 || len(w.Requests) > 1000:
		return fmt.Errorf("%d sub-windows; allowed: 1 to 1000", len(w.Requests))
	case requests == 0:
		return errors.New("no request was answered; record that as a failure")
	case w.Errors < 0 || w.Executions < 0 || min(w.Queue, w.Input, w.Infer, w.Output, w.CPU, w.ClientCPU) < 0:
		return errors.New("a count or time is negative")
	}
	return w.Latency.check()
}

func (s Sketch) check() error {
	if s[0] < 0 || !slices.IsSorted(s[:]) || float64(s[len(s)-1])/1e9 > longestWindow {
		return fmt.Errorf("latency is %v; quantiles must be ascending, in ns", s)
	}
	return nil
}

func (s Service) check() error {
	if err := s.Trial.check(); err != nil {
		return err
	}
	if s.Concurrency < 1 || (len(s.Batches) == 0) != (s.Failure != nil) {
		return errors.New("service: must have a concurrency from 1, and either batches or a failure")
	}
	size := 0
	for i, b := range s.Batches {
		switch {
		case b.Size <= size:
			return fmt.Errorf("service.batches[%d].size is %d after %d; sizes must ascend from 1", i, b.Size, size)
		case b.Requests < 1 || b.Executions < 1 || min(b.Queue, b.Input, b.Infer, b.Output) < 0:
			return fmt.Errorf("service.batches[%d]: nothing was answered, or a time is negative", i)
		}
		if err := b.Latency.check(); err != nil {
			return fmt.Errorf("service.batches[%d]: %w", i, err)
		}
		size = b.Size
	}
	return nil
}
