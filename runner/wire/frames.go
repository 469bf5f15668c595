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

// Bounds that this side sets for the server, in bytes.
const (
	mostFrame = 1 << 20 // per frame
	// in flight, on a stream and on the connection: flow control never delays an answer
	mostWindow = math.MaxInt32
	mostBlock  = 256 << 10 // in the header fields of an answer
)

// Bounds of the server until it sets others, in bytes. Source: RFC 9113, §6.5.2 and §6.9.2.
const (
	firstWindow = 1<<16 - 1
	firstFrame  = 1 << 14
)

const (
	frameHead = 9        // bytes in front of a frame
	copied    = 16 << 10 // smaller pieces of a message are copied, so that one write sends all
)

// fieldFlags are the flags for the layout of a frame of header fields. Known gRPC servers set only
// the one for the end.
const fieldFlags = http2.FlagHeadersEndHeaders | http2.FlagHeadersPadded | http2.FlagHeadersPriority

// channel is a connection of HTTP/2 with calls on it, one or several at a time. The word is gRPC's.
// Source: RFC 9113, and for the calls gRPC's doc/PROTOCOL-HTTP2.md.
//
// It needs neither scheduling nor a goroutine of its own. The goroutine that sends or receives
// reads the frames of all calls as they arrive. The replies that the protocol needs go out with the
// next write.
type channel struct {
	*link
	framer *http2.Framer
	out    bytes.Buffer // frames from framer, sent with the next request, or before the next wait
	fields *fieldWriter
	blocks blockReader

	// greeted: the server's settings have arrived; acknowledged: it has ours
	greeted, acknowledged bool
	farewell              string // the server's message when it announced its end

	// Bounds of the server, in bytes.
	frame   int    // per frame
	initial int64  // for a new stream
	window  int64  // left on the connection
	limit   uint32 // largest number of calls at a time

	consumed uint32 // bytes received since this side last extended the window

	id    uint32 // id of the latest stream
	calls []call // by slot
}

// call is a stream of the channel: a request and its answer.
type call struct {
	id       uint32 // 0: no call
	window   int64  // bytes that the server still allows
	consumed uint32 // bytes received since this side last extended the window
	answer   reply
}

// reply is the part of an answer that has arrived.
type reply struct {
	keep   bool   // the caller wants the data
	data   []byte // the data, if wanted
	size   int64  // bytes of data
	head   fields
	begun  bool // the head has arrived
	ended  bool
	failed error // reason of a failure, once the call has ended
}

// end marks the end of the call. failed is nil on success.
func (on *call) end(failed error) { on.answer.ended, on.answer.failed = true, failed }

// newChannel exchanges the first frames with the server, within ctx.
func newChannel(ctx context.Context, l *link, o Options) (*channel, error) {
	fields, err := newFieldWriter(o)
	if err != nil {
		return nil, err
	}
	c := &channel{link: l, fields: fields, frame: firstFrame, initial: firstWindow, window: firstWindow, limit: math.MaxUint32, calls: make([]call, 1)}
	if o.Protocol == GRPC && o.Share > 1 {
		c.calls = make([]call, o.Share)
	}
	for i := range c.calls {
		c.calls[i].answer.ended = true
	}
	c.framer = http2.NewFramer(&c.out, l.in)
	c.framer.SetMaxReadFrameSize(mostFrame)
	// a deadline in the past ends every wait
	stop := context.AfterFunc(ctx, func() { _ = l.raw.SetDeadline(time.Unix(1, 0)) })
	err = c.greet()
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the server at %s does not speak gRPC, or not on this port: %w", o.Address, err)
	}
	return c, nil
}

// greet exchanges settings. It waits until the server has acknowledged ours. From then on the
// server compresses no answer with a table, so that equal header blocks always have the same
// meaning.
func (c *channel) greet() error {
	c.out.WriteString(http2.ClientPreface)
	err := errors.Join(
		c.framer.WriteSettings(
			http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0},
			http2.Setting{ID: http2.SettingEnablePush, Val: 0},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: mostWindow},
			http2.Setting{ID: http2.SettingMaxFrameSize, Val: mostFrame},
		),
		c.framer.WriteWindowUpdate(0, mostWindow-firstWindow),
		c.flush(),
	)
	if err != nil {
		return err
	}
	if first, err := c.in.Peek(len("HTTP/")); err == nil && string(first) == "HTTP/" {
		return errors.New("it answers in HTTP/1.1")
	}
	for !c.greeted || !c.acknowledged {
		if err := c.step(); err != nil {
			return err
		}
	}
	return c.flush()
}

// slots returns the largest number of calls at a time.
func (c *channel) slots() int { return int(min(uint32(len(c.calls)), max(1, c.limit))) }

// find returns the call of a stream. It is nil for an unknown stream, and after its end.
func (c *channel) find(id uint32) *call {
	for i := range c.calls {
		if on := &c.calls[i]; on.id == id && !on.answer.ended {
			return on
		}
	}
	return nil
}

// open begins a call with the request's header fields. It gives up a call in the same slot that has
// not ended.
func (c *channel) open(on *call, keep bool) error {
	if !on.answer.ended {
		if err := c.framer.WriteRSTStream(on.id, http2.ErrCodeCancel); err != nil {
			return err
		}
	}
	if c.id == 0 {
		c.id = 1
	} else {
		c.id += 2
	}
	if c.id+2 > math.MaxInt32 { // no id is left after this one
		c.broken.Store(true)
	}
	*on = call{id: c.id, window: c.initial, answer: reply{keep: keep, data: on.answer.data[:0]}}
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: on.id, BlockFragment: c.fields.block(), EndHeaders: true})
}

// transmit sends a message on a call as the server's windows permit. last: no message follows. If
// the answer ends before the server has the whole message, transmit stops.
func (c *channel) transmit(on *call, message []byte, last bool) error {
	for len(message) > 0 {
		size := int(min(int64(min(len(message), c.frame)), c.window, on.window))
		switch {
		case on.answer.ended:
			return errors.Join(c.framer.WriteRSTStream(on.id, http2.ErrCodeCancel), c.flush())
		case size <= 0:
			if err := c.step(); err != nil {
				return err
			}
			continue
		}
		c.window, on.window = c.window-int64(size), on.window-int64(size)
		piece := message[:size]
		message = message[size:]
		if err := c.writeData(on, piece, last && len(message) == 0); err != nil {
			return err
		}
	}
	if len(c.calls) > 1 { // requests that follow at once go out in the same write, before the next wait
		return nil
	}
	return c.flush()
}

// writeData sends a frame of data, or appends it to the bytes that wait in out.
func (c *channel) writeData(on *call, piece []byte, end bool) error {
	var flags http2.Flags
	if end {
		flags = http2.FlagDataEndStream
	}
	size := len(piece)
	head := [frameHead]byte{byte(size >> 16), byte(size >> 8), byte(size), byte(http2.FrameData), byte(flags)}
	binary.BigEndian.PutUint32(head[5:], on.id)
	c.out.Write(head[:])
	if size <= copied {
		c.out.Write(piece)
		if c.out.Len() < 4*copied {
			return nil
		}
		return c.flush()
	}
	pieces := net.Buffers{c.out.Bytes(), piece}
	_, err := pieces.WriteTo(c.conn)
	c.out.Reset()
	if err != nil {
		return fmt.Errorf("cannot send a request: %w", err)
	}
	return nil
}

// flush sends the bytes that wait in out.
func (c *channel) flush() error {
	if c.out.Len() == 0 {
		return nil
	}
	defer c.out.Reset()
	return c.write(c.out.Bytes())
}

// step reads one frame. If it has to wait for bytes, it first flushes.
func (c *channel) step() error {
	if c.in.Buffered() < frameHead {
		if err := c.flush(); err != nil {
			return err
		}
	}
	head, err := c.framer.ReadFrameHeader()
	if err != nil {
		return c.frameError(err)
	}
	if c.in.Buffered() < int(head.Length) {
		if err := c.flush(); err != nil {
			return err
		}
	}
	switch { // the frames of usual answers, without the framer's allocations
	case head.Type == http2.FrameData && !head.Flags.Has(http2.FlagDataPadded):
		return c.readData(head)
	case head.Type == http2.FrameHeaders && head.Flags&fieldFlags == http2.FlagHeadersEndHeaders && head.Length <= inputBuffer:
		return c.readWholeFields(head)
	}
	frame, err := c.framer.ReadFrameForHeader(head)
	if err != nil {
		return c.frameError(err)
	}
	switch f := frame.(type) {
	case *http2.HeadersFrame:
		return c.readFields(f)
	case *http2.DataFrame:
		return c.takeData(f)
	case *http2.RSTStreamFrame:
		if on := c.find(f.StreamID); on != nil {
			on.end(&api.StatusError{Status: resetStatus(f.ErrCode), Text: "the server reset the stream: " + f.ErrCode.String()})
		}
	case *http2.SettingsFrame:
		return c.readSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.framer.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		c.readGoAway(f)
	case *http2.WindowUpdateFrame:
		return c.readWindowUpdate(f)
	case *http2.PushPromiseFrame:
		return errors.New("cannot read an answer: the server pushes, which the settings forbid")
	}
	return nil // PRIORITY and unknown types must be ignored
}

// frameError is readError with the server's message from before it closed the connection.
func (c *channel) frameError(err error) error {
	if c.farewell != "" && errors.Is(err, io.EOF) {
		return fmt.Errorf("the server closed the connection, saying %s: %w", c.farewell, err)
	}
	return readError(err)
}
