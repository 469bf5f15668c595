package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"golang.org/x/net/http2"

	"tuner/engine/api"
)

// What this side allows the server, in bytes.
const (
	mostFrame  = 1 << 20       // in one frame
	mostWindow = math.MaxInt32 // under way, on a stream and on the connection: flow control never holds an answer up
	mostBlock  = 256 << 10     // in the header fields of an answer
)

// What the server allows before it says otherwise, in bytes. Source: RFC 9113, §6.5.2 and §6.9.2.
const (
	firstWindow = 1<<16 - 1
	firstFrame  = 1 << 14
)

const (
	frameHead = 9        // bytes in front of a frame
	copied    = 16 << 10 // pieces of a message up to this size are copied, so that all goes out in one write
)

// fieldFlags are those that say how a frame of header fields is made up; but for the end, no known server of gRPC sets them.
const fieldFlags = http2.FlagHeadersEndHeaders | http2.FlagHeadersPadded | http2.FlagHeadersPriority

// stream is a call over HTTP/2, the request's part and the answer's. Source: RFC 9113, and for the calls gRPC's
// doc/PROTOCOL-HTTP2.md.
//
// The connection has one stream open at a time, so it needs no scheduling and no goroutine of its own: who sends or
// receives reads the frames as they come, and answers what the protocol wants answered with the next write.
type stream struct {
	*link
	framer *http2.Framer
	out    bytes.Buffer // what framer wrote: goes out with the next request, or before the next wait
	fields *fieldWriter
	blocks blockReader

	greeted, acknowledged bool   // its settings have come; it has ours
	farewell              string // what it said when it announced its end

	// What the server allows, in bytes.
	frame        int   // in one frame
	initial      int64 // on a new stream
	window       int64 // on the connection, from now on
	streamWindow int64 // on the latest stream, from now on

	// Bytes that have come since this side allowed more.
	consumed, streamConsumed uint32

	id     uint32 // the latest stream's
	answer reply
}

// reply is what has come on the latest stream.
type reply struct {
	keep   bool   // the data are wanted
	data   []byte // what was kept of them
	size   int64  // bytes of data
	head   fields
	begun  bool // the head is there
	ended  bool
	failed error // why the call failed, when it has ended
}

// newStream greets the server, within the context's time.
func newStream(ctx context.Context, l *link, o Options) (*stream, error) {
	fields, err := newFieldWriter(o)
	if err != nil {
		return nil, err
	}
	s := &stream{link: l, fields: fields, frame: firstFrame, initial: firstWindow, window: firstWindow}
	s.answer.ended = true
	s.framer = http2.NewFramer(&s.out, l.in)
	s.framer.SetMaxReadFrameSize(mostFrame)
	stop := context.AfterFunc(ctx, func() { _ = l.raw.SetDeadline(time.Unix(1, 0)) }) // a deadline in the past ends every wait
	err = s.greet()
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the server at %s does not speak gRPC, or not on this port: %w", o.Address, err)
	}
	return s, nil
}

// greet exchanges settings. It waits until the server has acknowledged ours: no answer is compressed with a table then, so
// that equal header blocks always mean the same.
func (s *stream) greet() error {
	s.out.WriteString(http2.ClientPreface)
	err := errors.Join(
		s.framer.WriteSettings(
			http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0},
			http2.Setting{ID: http2.SettingEnablePush, Val: 0},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: mostWindow},
			http2.Setting{ID: http2.SettingMaxFrameSize, Val: mostFrame},
		),
		s.framer.WriteWindowUpdate(0, mostWindow-firstWindow),
		s.flush(),
	)
	if err != nil {
		return err
	}
	if first, err := s.in.Peek(len("HTTP/")); err == nil && string(first) == "HTTP/" {
		return errors.New("it answers in HTTP/1.1")
	}
	for !s.greeted || !s.acknowledged {
		if err := s.step(); err != nil {
			return err
		}
	}
	return s.flush()
}

// open begins a stream with the request's header fields.
func (s *stream) open(keep bool) error {
	if s.id == 0 {
		s.id = 1
	} else {
		s.id += 2
	}
	if s.id+2 > math.MaxInt32 { // ids are used up with this one
		s.broken.Store(true)
	}
	s.answer = reply{keep: keep, data: s.answer.data[:0]}
	s.streamWindow, s.streamConsumed = s.initial, 0
	return s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: s.fields.block(), EndHeaders: true})
}

// transmit sends a message on the stream as the server's windows permit; last: nothing follows it. An answer may come
// before the server has seen all of the message, which then stops.
func (s *stream) transmit(message []byte, last bool) error {
	for len(message) > 0 {
		size := int(min(int64(min(len(message), s.frame)), s.window, s.streamWindow))
		switch {
		case s.answer.ended:
			return errors.Join(s.framer.WriteRSTStream(s.id, http2.ErrCodeCancel), s.flush())
		case size <= 0:
			if err := s.step(); err != nil {
				return err
			}
			continue
		}
		s.window, s.streamWindow = s.window-int64(size), s.streamWindow-int64(size)
		piece := message[:size]
		message = message[size:]
		if err := s.writeData(piece, last && len(message) == 0); err != nil {
			return err
		}
	}
	return s.flush()
}

// writeData sends a frame of data, or appends it to what waits to be sent.
func (s *stream) writeData(piece []byte, end bool) error {
	var flags http2.Flags
	if end {
		flags = http2.FlagDataEndStream
	}
	size := len(piece)
	head := [frameHead]byte{byte(size >> 16), byte(size >> 8), byte(size), byte(http2.FrameData), byte(flags)}
	binary.BigEndian.PutUint32(head[5:], s.id)
	s.out.Write(head[:])
	if size <= copied {
		s.out.Write(piece)
		if s.out.Len() < 4*copied {
			return nil
		}
		return s.flush()
	}
	pieces := net.Buffers{s.out.Bytes(), piece}
	_, err := pieces.WriteTo(s.conn)
	s.out.Reset()
	if err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	return nil
}

// flush sends what waits to be sent.
func (s *stream) flush() error {
	if s.out.Len() == 0 {
		return nil
	}
	defer s.out.Reset()
	return s.write(s.out.Bytes())
}

// step reads one frame.
func (s *stream) step() error {
	if s.in.Buffered() < frameHead { // it may have to wait
		if err := s.flush(); err != nil {
			return err
		}
	}
	head, err := s.framer.ReadFrameHeader()
	if err != nil {
		return s.frameError(err)
	}
	switch { // the frames of every answer, without the framer's allocations
	case head.Type == http2.FrameData && !head.Flags.Has(http2.FlagDataPadded):
		return s.readData(head)
	case head.Type == http2.FrameHeaders && head.Flags&fieldFlags == http2.FlagHeadersEndHeaders && head.Length <= inputBuffer:
		return s.readWholeFields(head)
	}
	frame, err := s.framer.ReadFrameForHeader(head)
	if err != nil {
		return s.frameError(err)
	}
	switch f := frame.(type) {
	case *http2.HeadersFrame:
		return s.readFields(f)
	case *http2.DataFrame:
		return s.takeData(f)
	case *http2.RSTStreamFrame:
		if f.StreamID == s.id && !s.answer.ended {
			s.end(&api.StatusError{Status: resetStatus(f.ErrCode), Text: "the server reset the stream: " + f.ErrCode.String()})
		}
	case *http2.SettingsFrame:
		return s.readSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return s.framer.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		return s.readGoAway(f)
	case *http2.WindowUpdateFrame:
		return s.readWindowUpdate(f)
	case *http2.PushPromiseFrame:
		return errors.New("cannot read an answer: the server pushes, which it was told not to")
	}
	return nil // PRIORITY and kinds that came later: to be ignored
}

// frameError is readError with what the server said before it closed the connection.
func (s *stream) frameError(err error) error {
	if s.farewell != "" && errors.Is(err, io.EOF) {
		return fmt.Errorf("the server closed the connection, saying %s: %w", s.farewell, err)
	}
	return readError(err)
}
