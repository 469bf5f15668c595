package wire

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

// end is the end of the stream; failed is nil when the call went well.
func (s *stream) end(failed error) { s.answer.ended, s.answer.failed = true, failed }

// readData reads or skips the data of an unpadded frame.
func (s *stream) readData(head http2.FrameHeader) error {
	size := int64(head.Length)
	if head.StreamID != s.id || !s.answer.keep || s.answer.ended {
		if err := s.skip(size); err != nil {
			return err
		}
	} else {
		if err := s.answer.room(size); err != nil {
			return err
		}
		from := len(s.answer.data)
		s.answer.data = slices.Grow(s.answer.data, int(size))[:from+int(size)]
		if _, err := io.ReadFull(s.in, s.answer.data[from:]); err != nil {
			return bodyError(err)
		}
	}
	return s.dataRead(head)
}

// room refuses data that would make an answer too large to keep.
func (r *reply) room(size int64) error {
	if int64(len(r.data))+size > mostKept {
		return fmt.Errorf("cannot read an answer larger than %d bytes", mostKept)
	}
	return nil
}

// takeData is readData for a padded frame, which no known server of gRPC sends.
func (s *stream) takeData(f *http2.DataFrame) error {
	if f.StreamID == s.id && s.answer.keep && !s.answer.ended {
		if err := s.answer.room(int64(len(f.Data()))); err != nil {
			return err
		}
		s.answer.data = append(s.answer.data, f.Data()...)
	}
	return s.dataRead(f.FrameHeader)
}

// dataRead counts data, and allows the server as much again when half of what it may send is used up.
func (s *stream) dataRead(head http2.FrameHeader) error {
	const half = mostWindow / 2
	if s.consumed += head.Length; s.consumed > half {
		if err := s.framer.WriteWindowUpdate(0, s.consumed); err != nil {
			return err
		}
		s.consumed = 0
	}
	if head.StreamID != s.id || s.answer.ended {
		return nil // of a stream that was given up
	}
	s.answer.size += int64(head.Length)
	if head.Flags.Has(http2.FlagDataEndStream) {
		s.end(fields{}.failure(s.answer.head.http)) // without trailers
		return nil
	}
	if s.streamConsumed += head.Length; s.streamConsumed > half {
		if err := s.framer.WriteWindowUpdate(s.id, s.streamConsumed); err != nil {
			return err
		}
		s.streamConsumed = 0
	}
	return nil
}

// readWholeFields reads the header fields of a frame that holds nothing else.
func (s *stream) readWholeFields(head http2.FrameHeader) error {
	block, err := s.in.Peek(int(head.Length))
	if err != nil {
		return bodyError(err)
	}
	if err := s.takeFields(head.StreamID, block, head.Flags.Has(http2.FlagHeadersEndStream)); err != nil {
		return err
	}
	_, err = s.in.Discard(len(block))
	return err
}

// readFields is readWholeFields for any frame of header fields, and those that continue it.
func (s *stream) readFields(f *http2.HeadersFrame) error {
	block := f.HeaderBlockFragment()
	if !f.HeadersEnded() {
		rest, err := s.readContinuations(slices.Clone(block))
		if err != nil {
			return err
		}
		block = rest
	}
	return s.takeFields(f.StreamID, block, f.StreamEnded())
}

// takeFields takes a block of header fields: the answer's head, its trailers, or both in one.
func (s *stream) takeFields(id uint32, block []byte, ends bool) error {
	if id != s.id || s.answer.ended {
		return nil // of a stream that was given up; without a table, skipping a block changes nothing
	}
	kind := headBlock
	if s.answer.begun {
		kind = trailerBlock
	}
	found, err := s.blocks.read(kind, block)
	if err != nil {
		return err
	}
	if !s.answer.begun {
		s.answer.begun, s.answer.head = true, found
	}
	if ends {
		s.end(found.failure(s.answer.head.http))
	}
	return nil
}

// readContinuations reads the rest of a block that did not fit in one frame.
func (s *stream) readContinuations(block []byte) ([]byte, error) {
	for len(block) <= mostBlock {
		frame, err := s.framer.ReadFrame()
		if err != nil {
			return nil, s.frameError(err)
		}
		f, ok := frame.(*http2.ContinuationFrame)
		if !ok { // the framer sees to the order
			return nil, fmt.Errorf("cannot read an answer: %v amid its header fields", frame.Header())
		}
		if block = append(block, f.HeaderBlockFragment()...); f.HeadersEnded() {
			return block, nil
		}
	}
	return nil, fmt.Errorf("cannot read an answer with more than %d bytes of header fields", mostBlock)
}

// readSettings takes over what the server allows from now on.
func (s *stream) readSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		s.acknowledged = true
		return nil
	}
	s.greeted = true
	err := f.ForeachSetting(func(setting http2.Setting) error {
		if err := setting.Valid(); err != nil {
			return fmt.Errorf("cannot read the server's settings: %v: %w", setting, err)
		}
		switch setting.ID {
		case http2.SettingHeaderTableSize:
			s.fields.limit(setting.Val)
		case http2.SettingInitialWindowSize: // goes for the open stream, too: RFC 9113, §6.9.2
			s.streamWindow += int64(setting.Val) - s.initial
			s.initial = int64(setting.Val)
		case http2.SettingMaxFrameSize:
			s.frame = int(setting.Val)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.framer.WriteSettingsAck()
}

// readGoAway reads that the server ends the connection. It still answers what it has taken.
func (s *stream) readGoAway(f *http2.GoAwayFrame) error {
	s.broken.Store(true)
	s.farewell = fmt.Sprintf("GOAWAY %v %q", f.ErrCode, excerpt(f.DebugData()))
	if s.id > f.LastStreamID && !s.answer.ended {
		return fmt.Errorf("%w, saying %s", errNotTaken, s.farewell)
	}
	return nil
}

// errNotTaken says that the server will not look at the request.
var errNotTaken = errors.New("the server ended the connection before it took the request")

// readWindowUpdate reads that the server takes more data.
func (s *stream) readWindowUpdate(f *http2.WindowUpdateFrame) error {
	switch f.StreamID {
	case 0:
		s.window += int64(f.Increment)
	case s.id:
		s.streamWindow += int64(f.Increment)
	}
	if max(s.window, s.streamWindow) > mostWindow {
		return errors.New("cannot send: the server's windows of flow control are larger than the protocol allows")
	}
	return nil
}

// resetStatus is gRPC's code for a stream that the server reset. Source: gRPC's doc/PROTOCOL-HTTP2.md, Errors.
func resetStatus(code http2.ErrCode) int {
	switch code {
	case http2.ErrCodeRefusedStream:
		return int(codes.Unavailable)
	case http2.ErrCodeCancel:
		return int(codes.Canceled)
	case http2.ErrCodeEnhanceYourCalm:
		return int(codes.ResourceExhausted)
	case http2.ErrCodeInadequateSecurity:
		return int(codes.PermissionDenied)
	default:
		return int(codes.Internal)
	}
}
