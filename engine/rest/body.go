package rest

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"tuner/engine/budget"
	"tuner/engine/fault"
	"tuner/engine/logging"
)

// Limits on bodies and on the time that they may take.
const (
	prefetched  = 8 << 10  // bytes of a body that fasthttp reads before it calls the handler
	firstBuffer = 64 << 10 // bytes
	leastCharge = 16 << 10 // bytes
	// factor by which a buffer may exceed the bytes received, up to the announced length
	growth     = 4
	keptBuffer = 1 << 20 // bytes; larger buffers are not kept for the next request
	maxChunks  = 1 << 16 // chunks of a chunked body, in addition to one per chunkBytes
	// the number of chunks never refuses a body in chunks of this size
	chunkBytes = 1 << 10
	maxBody    = 1<<31 - 1 // bytes, as in Triton
	// bytes of a refused body that are read, so that the client sees the answer
	skipped  = 1 << 20
	stalled  = time.Minute     // without progress for this time, a body's connection ends
	skipTime = 5 * time.Second // time to read bytes that are skipped
)

// reader reads the body of one request.
type reader struct {
	frontend *Frontend
	ctx      *fasthttp.RequestCtx
	conn     *conn // nil: not from the front end's listener
	reserved int   // bytes charged to its account
	spare    int   // part of reserved that is not in use now
	buffer   int   // part of reserved for the body
	isHanded bool  // the connection has taken over the answer
	done     bool
	broken   bool             // no more can be read
	entry    *logging.Request // the request's line; nil: none
}

// read returns the body in buf, or in a larger buffer. It allocates memory as the body arrives, not
// by its announced length.
func (b *reader) read(buf []byte) ([]byte, error) {
	length := b.ctx.Request.Header.ContentLength()
	if err := countable(length); err != nil {
		return buf, err
	}
	stream := b.ctx.RequestBodyStream()
	if length == 0 || stream == nil {
		b.done = true
		return buf[:0], nil
	}
	buf = buf[:0]
	b.buffer = min(cap(buf), max(length, firstBuffer))
	if err := b.reserve(b.buffer); err != nil {
		return buf, err
	}
	body := arrival{ctx: b.ctx, stream: stream, length: length, stall: b.frontend.stall}
	for {
		if len(buf) == cap(buf) || length > 0 && cap(buf) < min(length, firstBuffer) {
			var err error
			if buf, err = b.grow(buf, length); err != nil {
				return buf, err
			}
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			b.done, b.broken = body.done, body.broken
			return buf, body.err
		}
	}
}

// arrival is a body that arrives.
type arrival struct {
	ctx    *fasthttp.RequestCtx
	stream io.Reader
	length int // announced; negative: unknown
	stall  time.Duration

	got, chunks int
	done        bool  // all of it has arrived
	broken      bool  // no more can be read
	err         error // why it ended before
}

// arrival returns the body of a request for a decompressor.
func (b *reader) arrival(stream io.Reader, length int) *arrival {
	return &arrival{ctx: b.ctx, stream: stream, length: length, stall: b.frontend.stall}
}

// Read reads what has arrived. It ends with io.EOF, or with a.err too.
func (a *arrival) Read(p []byte) (int, error) {
	if a.done || a.err != nil {
		return 0, io.EOF
	}
	if a.got >= prefetched || a.length < 0 {
		expect(a.ctx, a.stall)
	}
	n, err := a.stream.Read(p)
	a.got += n
	a.chunks++
	switch {
	case a.got == a.length || err == io.EOF && a.length < 0:
		a.done = true
		return n, io.EOF
	case err != nil:
		a.broken = true
		a.err = badBody(err)
	case a.got > maxBody:
		a.err = fault.Errorf(fault.InvalidArgument, "request body exceeds %d bytes", maxBody)
	case a.length < 0 && a.chunks > maxChunks+a.got/chunkBytes:
		a.err = fault.Errorf(fault.InvalidArgument, "request body has too many chunks")
	default:
		return n, nil
	}
	return n, io.EOF
}

// countable refuses a body whose length Triton cannot count.
func countable(length int) error {
	if length <= maxBody {
		return nil
	}
	return fault.Errorf(fault.InvalidArgument, "Unable to parse Content-Length, value is out of range [ 0, %d ], got: %d", maxBody, length)
}

// announced refuses a body by the length in its headers, if that is too large.
func (f *Frontend) announced(head *fasthttp.RequestHeader, v verb) error {
	length := head.ContentLength()
	switch v {
	case modelInfer:
		if err := f.announcedInference(head); err != nil {
			return err
		}
	case modelGenerate, modelGenerateStream:
		if err := f.checkSize(length, length); err != nil {
			return err
		}
	}
	if !f.options.Memory.Fits(length) {
		return fault.Full(f.options.Memory)
	}
	return countable(length)
}

// grow makes room for more of a body of length bytes. A negative length is unknown.
func (b *reader) grow(buf []byte, length int) ([]byte, error) {
	size := max(firstBuffer, 2*len(buf))
	if length > 0 {
		size = min(max(firstBuffer, growth*len(buf)), length)
	}
	if err := b.reserve(size); err != nil {
		return buf, err
	}
	larger := append(make([]byte, 0, size), buf...)
	b.release(b.buffer)
	b.discard(cap(buf))
	b.buffer = size
	return larger, nil
}

// account returns the account of the connection.
func (b *reader) account() *budget.Account {
	if b.conn == nil {
		return nil
	}
	return b.conn.account
}

// reserve charges bytes for memory that the request needs. A small request is charged only once.
func (b *reader) reserve(bytes int) error {
	if more := bytes - b.spare; more > 0 {
		more = max(more, leastCharge)
		if !b.account().Take(more) {
			return fault.Full(b.account())
		}
		b.reserved, b.spare = b.reserved+more, b.spare+more
	}
	b.spare -= bytes
	return nil
}

// discard reports that a buffer will not be used again.
func (b *reader) discard(bytes int) {
	if b.conn != nil {
		b.conn.garbage.Add(int64(bytes))
	}
}

// release makes reserved bytes available for the next need.
func (b *reader) release(bytes int) { b.spare += bytes }

// end gives back the reserved bytes, and charges an answer that is not an inference's. It reads and
// drops the rest of a small unread body. With a larger one the connection ends after the answer,
// since its bytes are not the next request.
func (b *reader) end() {
	b.account().Give(b.reserved)
	if n := len(b.ctx.Response.Body()); b.conn != nil && !b.isHanded && n > answerBytes {
		b.conn.account.Force(n)
		b.conn.owe(n, n)
	}
	length := b.ctx.Request.Header.ContentLength()
	stream := b.ctx.RequestBodyStream()
	if b.done || stream == nil || length >= 0 && length <= prefetched {
		return
	}
	if b.broken {
		b.ctx.SetConnectionClose()
		return
	}
	expect(b.ctx, skipTime)
	if n, err := io.CopyN(io.Discard, stream, skipped); err != io.EOF && n != int64(length) {
		b.ctx.SetConnectionClose()
	}
}

// expect sets a limit for the connection's reads.
func expect(ctx *fasthttp.RequestCtx, d time.Duration) {
	_ = ctx.Conn().SetReadDeadline(time.Now().Add(d)) // if this fails, so does the next read
}

// badBody returns the error for a body that cannot be read to its end.
func badBody(err error) error {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return fault.Errorf(fault.InvalidArgument, "cannot read the request: its body did not arrive in time")
	}
	return fault.Errorf(fault.InvalidArgument, "cannot read the request: its body is incomplete or malformed")
}
