package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// file is a place for traces: a file with that path, and numbered ones beside it. The file is a list
// in JSON, whose end comes when the server ends.
type file struct {
	path      string
	index     int      // of the next numbered file
	parts     int      // that have been opened
	out       *os.File // nil: nothing has been written
	hasFailed bool
}

// open opens the file, as Triton does when the first traces come. What it had before goes.
func (f *file) open() error {
	if f.out != nil {
		_, err := f.out.WriteString(",")
		return err
	}
	var err error
	if f.out, err = os.Create(f.path); err != nil {
		return err
	}
	_, err = f.out.WriteString("[")
	return err
}

func (f *file) close() error {
	if f.out == nil {
		return nil
	}
	_, err := f.out.WriteString("]")
	return f.fault(errors.Join(err, f.out.Close()))
}

// fault makes the first error of the file one for people. Later ones are nil: a full disk is one
// line of the log, and not one for each request.
func (f *file) fault(err error) error {
	if err == nil || f.hasFailed {
		return nil
	}
	f.hasFailed = true
	return fmt.Errorf("cannot write the traces of requests to %q: %w", f.path, err)
}

// sink collects the traces of a setting. In Triton they wait in memory for their numbered file, or for
// the end of the server. Here they wait in a file whose name ends in .part.
type sink struct {
	part   *os.File // nil: none
	inPart uint32   // traces
	total  int64    // traces that have been written
}

// write writes a trace. text is its part of the list.
func (k *sink) write(f *file, s *setting, text []byte) error {
	k.total++
	if len(text) == 0 {
		return nil
	}
	if s.config.LogFrequency == 0 && s.config.Count < 0 { // it will not be a numbered file
		err := f.open()
		if err == nil {
			_, err = f.out.Write(text)
		}
		return f.fault(err)
	}
	if err := k.add(f, text); err != nil {
		return f.fault(err)
	}
	if s.isFull(k.total) || s.config.LogFrequency != 0 && k.inPart >= s.config.LogFrequency {
		return k.number(f)
	}
	return nil
}

// add writes a trace to the part.
func (k *sink) add(f *file, text []byte) error {
	separator := ","
	if k.part == nil {
		name := fmt.Sprintf("%s.%d.part", f.path, f.parts)
		f.parts++
		var err error
		if k.part, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
			return err
		}
		separator = "["
	}
	k.inPart++
	_, err := k.part.WriteString(separator)
	if err == nil {
		_, err = k.part.Write(text)
	}
	return err
}

// number makes the part the next numbered file.
func (k *sink) number(f *file) error {
	name := fmt.Sprintf("%s.%d", f.path, f.index)
	f.index++
	part := k.part
	k.part, k.inPart = nil, 0
	_, err := part.WriteString("]")
	return f.fault(errors.Join(err, part.Close(), os.Rename(part.Name(), name)))
}

// end writes the traces of a setting that still wait: to a numbered file, if it has them.
func (k *sink) end(f *file, s *setting) error {
	if s.config.LogFrequency != 0 {
		return k.number(f)
	}
	part := k.part
	k.part, k.inPart = nil, 0
	_, err := part.Seek(1, io.SeekStart) // without the bracket
	if err == nil {
		err = f.open()
	}
	if err == nil {
		_, err = io.Copy(f.out, part)
	}
	return f.fault(errors.Join(err, part.Close(), os.Remove(part.Name())))
}
