package extent

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Protobuf's wire types.
const (
	varint  = 0
	fixed64 = 1
	message = 2 // or text, or packed numbers
	begins  = 3 // a group: obsolete, but protobuf still reads it
	ends    = 4
	fixed32 = 5
)

// errDamaged means that a file is no valid protobuf. ONNX Runtime does not read it either, and
// reports more details.
var errDamaged = errors.New("it is damaged")

// errName means that a name is too long to be read here. ONNX Runtime may still read it.
var errName = errors.New("one of its names is longer than 1 MiB")

// longestText is the largest length of a name in bytes.
const longestText = 1 << 20

// scanner reads the fields of protobuf messages in order. It skips fields that are not needed, such
// as a model's weights.
type scanner struct {
	file   io.ReadSeeker
	buffer *bufio.Reader
	at     int64
}

func newScanner(file io.ReadSeeker) *scanner {
	return &scanner{file: file, buffer: bufio.NewReaderSize(file, 64<<10)}
}

// ReadByte implements io.ByteReader.
func (s *scanner) ReadByte() (byte, error) {
	b, err := s.buffer.ReadByte()
	if err == nil {
		s.at++
	}
	return b, err
}

// seek sets the position.
func (s *scanner) seek(to int64) error {
	if ahead := to - s.at; ahead >= 0 && ahead <= int64(s.buffer.Buffered()) {
		s.at = to
		_, err := s.buffer.Discard(int(ahead))
		return err
	}
	s.at = to
	_, err := s.file.Seek(to, io.SeekStart)
	s.buffer.Reset(s.file)
	return err
}

// field is a field of a message.
type field struct {
	number int
	kind   int
	value  uint64 // value of a number
	end    int64  // end of a message, which begins at the scanner's position
}

// fields passes each field of the message that ends at a position to f. f may read a message or
// skip it.
func (s *scanner) fields(end int64, f func(field) error) error {
	open := 0 // open groups; readers do not know their fields
	for s.at < end {
		x, next, err := s.field(end)
		switch {
		case err != nil:
			return err
		case x.kind == begins:
			open++
		case x.kind == ends && open == 0:
			return errDamaged
		case x.kind == ends:
			open--
		case open == 0:
			err = f(x)
		}
		if err == nil {
			err = s.seek(next)
		}
		if err != nil {
			return err
		}
	}
	if open != 0 {
		return errDamaged
	}
	return nil
}

// field reads the head of a field. next is the start of the field after it.
func (s *scanner) field(end int64) (x field, next int64, err error) {
	tag, err := binary.ReadUvarint(s)
	x = field{number: int(tag >> 3), kind: int(tag & 7)}
	next = s.at
	switch x.kind {
	case varint:
		if err == nil {
			x.value, err = binary.ReadUvarint(s)
		}
		next = s.at
	case fixed64:
		next += 8
	case fixed32:
		next += 4
	case begins, ends:
	case message:
		var length uint64
		if err == nil {
			length, err = binary.ReadUvarint(s)
		}
		x.end = s.at + int64(min(length, 1<<62))
		next = x.end
	default:
		return x, next, errDamaged
	}
	if err != nil || next > end {
		return x, next, errDamaged
	}
	return x, next, nil
}

// text reads a text field. Readers do not know a field of another kind, so it counts as empty.
func (s *scanner) text(x field) (string, error) {
	switch {
	case x.kind != message:
		return "", nil
	case x.end-s.at > longestText:
		return "", errName
	}
	b := make([]byte, x.end-s.at)
	n, err := io.ReadFull(s.buffer, b)
	s.at += int64(n)
	return string(b), err
}

// packed passes the numbers of a packed field to f.
func (s *scanner) packed(end int64, f func(uint64)) error {
	for s.at < end {
		n, err := binary.ReadUvarint(s)
		if err != nil {
			return errDamaged
		}
		f(n)
	}
	return nil
}
