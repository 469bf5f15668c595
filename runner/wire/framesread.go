package wire

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

// readData reads or skips the data of a frame without padding.
func (c *channel) readData(head http2.FrameHeader) error {
	size, on := int64(head.Length), c.find(head.StreamID)
	if on == nil || !on.answer.keep {
		if err := c.skip(size); err != nil {
			return err
		}
	} else {
		if err := on.answer.room(size); err != nil {
			return err
		}
		from := len(on.answer.data)
		on.answer.data = slices.Grow(on.answer.data, int(size))[:from+int(size)]
		if _, err := io.ReadFull(c.in, on.answer.data[from:]); err != nil {
			return bodyError(err)
		}
	}
	return c.dataRead(on, head)
}

// room refuses data that would make an answer too large to keep.
func (r *reply) room(size int64) error {
	if int64(len(r.data))+size > mostKept {
		return fmt.Errorf("cannot read an answer larger than %d bytes", mostKept)
	}
	return nil
}

// takeData is readData for a padded frame. No known gRPC server sends one.
func (c *channel) takeData(f *http2.DataFrame) error {
	on := c.find(f.StreamID)
	if on != nil && on.answer.keep {
		if err := on.answer.room(int64(len(f.Data()))); err != nil {
			return err
		}
		on.answer.data = append(on.answer.data, f.Data()...)
	}
	return c.dataRead(on, f.FrameHeader)
}

// dataRead counts data. When half of the window is used up, it extends the window again. on is nil
// for data of a stream that was given up.
func (c *channel) dataRead(on *call, head http2.FrameHeader) error {
	const half = mostWindow / 2
	if c.consumed += head.Length; c.consumed > half {
		if err := c.framer.WriteWindowUpdate(0, c.consumed); err != nil {
			return err
		}
		c.consumed = 0
	}
	if on == nil {
		return nil
	}
	on.answer.size += int64(head.Length)
	if head.Flags.Has(http2.FlagDataEndStream) {
		on.end(fields{}.failure(on.answer.head.http)) // the answer has no trailers
		return nil
	}
	if on.consumed += head.Length; on.consumed > half {
		if err := c.framer.WriteWindowUpdate(on.id, on.consumed); err != nil {
			return err
		}
		on.consumed = 0
	}
	return nil
}

// readWholeFields reads the header fields of a frame that holds only these.
func (c *channel) readWholeFields(head http2.FrameHeader) error {
	block, err := c.in.Peek(int(head.Length))
	if err != nil {
		return bodyError(err)
	}
	if err := c.takeFields(head.StreamID, block, head.Flags.Has(http2.FlagHeadersEndStream)); err != nil {
		return err
	}
	_, err = c.in.Discard(len(block))
	return err
}

// readFields reads header fields from any frame and its continuations.
func (c *channel) readFields(f *http2.HeadersFrame) error {
	block := f.HeaderBlockFragment()
	if !f.HeadersEnded() {
		rest, err := c.readContinuations(slices.Clone(block))
		if err != nil {
			return err
		}
		block = rest
	}
	return c.takeFields(f.StreamID, block, f.StreamEnded())
}

// takeFields handles a block of header fields: the answer's head, its trailers, or both in one.
func (c *channel) takeFields(id uint32, block []byte, ends bool) error {
	on := c.find(id)
	if on == nil {
		return nil // a stream that was given up; without a table, skipping a block has no effect
	}
	kind := headBlock
	if on.answer.begun {
		kind = trailerBlock
	}
	found, err := c.blocks.read(kind, block)
	if err != nil {
		return err
	}
	if !on.answer.begun {
		on.answer.begun, on.answer.head = true, found
	}
	if ends {
		on.end(found.failure(on.answer.head.http))
	}
	return nil
}

// readContinuations reads the rest of a block that did not fit in one frame.
func (c *channel) readContinuations(block []byte) ([]byte, error) {
	for len(block) <= mostBlock {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return nil, c.frameError(err)
		}
		f, ok := frame.(*http2.ContinuationFrame)
		if !ok { // the framer checks the order
			return nil, fmt.Errorf("cannot read an answer: %v amid its header fields", frame.Header())
		}
		if block = append(block, f.HeaderBlockFragment()...); f.HeadersEnded() {
			return block, nil
		}
	}
	return nil, fmt.Errorf("cannot read an answer with more than %d bytes of header fields", mostBlock)
}

// readSettings applies the server's new bounds.
func (c *channel) readSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		c.acknowledged = true
		return nil
	}
	c.greeted = true
	err := f.ForeachSetting(func(setting http2.Setting) error {
		if err := setting.Valid(); err != nil {
			return fmt.Errorf("cannot read the server's settings: %v: %w", setting, err)
		}
		switch setting.ID {
		case http2.SettingHeaderTableSize:
			c.fields.limit(setting.Val)
		case http2.SettingInitialWindowSize: // applies to open streams too: RFC 9113, §6.9.2
			for i := range c.calls {
				c.calls[i].window += int64(setting.Val) - c.initial
			}
			c.initial = int64(setting.Val)
		case http2.SettingMaxFrameSize:
			c.frame = int(setting.Val)
		case http2.SettingMaxConcurrentStreams:
			c.limit = setting.Val
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.framer.WriteSettingsAck()
}

// readGoAway handles the announcement that the server ends the connection. The server still answers
// the requests that it has taken.
func (c *channel) readGoAway(f *http2.GoAwayFrame) {
	c.broken.Store(true)
	c.farewell = fmt.Sprintf("GOAWAY %v %q", f.ErrCode, excerpt(f.DebugData()))
	for i := range c.calls {
		if on := &c.calls[i]; on.id > f.LastStreamID && !on.answer.ended {
			on.end(fmt.Errorf("%w, saying %s", errNotTaken, c.farewell))
		}
	}
}

// errNotTaken means that the server will not process the request.
var errNotTaken = errors.New("the server ended the connection before it took the request")

// readWindowUpdate handles a larger window of the server.
func (c *channel) readWindowUpdate(f *http2.WindowUpdateFrame) error {
	window := &c.window
	if f.StreamID != 0 {
		on := c.find(f.StreamID)
		if on == nil {
			return nil
		}
		window = &on.window
	}
	if *window += int64(f.Increment); *window > mostWindow {
		return errors.New("cannot send: the server's windows of flow control are larger than the protocol allows")
	}
	return nil
}

// resetStatus returns gRPC's status code for a stream that the server reset. Source: gRPC's
// doc/PROTOCOL-HTTP2.md, Errors.
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
