package rest

import (
	"bufio"
	"bytes"
	"io"
	"strconv"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/valyala/fasthttp"

	"tuner/engine/budget"
	"tuner/engine/fault"
)

// coding is a content coding of HTTP.
type coding string

// Codings of bodies and answers. HTTP's name of zlib's format is deflate.
const (
	codingNone    coding = "identity"
	codingGzip    coding = "gzip"
	codingDeflate coding = "deflate"
)

const (
	// memory of a decompressor: its window of 32 KiB, its tables, and its buffer
	inflaterBytes = 64 << 10
	// memory of a compressor: klauspost/compress has tables of 1.1 MB and a window of 320 KB
	deflaterBytes = 2 << 20
	firstPacked   = 4 << 10 // bytes
)

// errCoding refuses a body in an unknown coding. Its answer names the known ones.
var errCoding = fault.Errorf(fault.Unsupported, "Unsupported compression type")

// codingOf returns the coding of a request's body.
func codingOf(head *fasthttp.RequestHeader) (coding, error) {
	e := head.ContentEncoding()
	if len(e) == 0 {
		return codingNone, nil
	}
	for _, known := range []coding{codingNone, codingGzip, codingDeflate} {
		if bytes.EqualFold(e, []byte(known)) {
			return known, nil
		}
	}
	return codingNone, errCoding
}

// acceptedCoding returns the coding with the highest weight in a list of accepted ones, and of
// equal ones the first.
func acceptedCoding(accept []byte) coding {
	best, highest := codingNone, 0.0
	for one := range bytes.SplitSeq(accept, []byte(",")) {
		name, weight, isWeighted := bytes.Cut(one, []byte(";"))
		q := 1.0
		if isWeighted {
			value, ok := bytes.CutPrefix(bytes.TrimSpace(weight), []byte("q="))
			n, err := strconv.ParseFloat(string(value), 64)
			if !ok || err != nil {
				continue
			}
			q = n
		}
		switch c := coding(bytes.TrimSpace(name)); c {
		case codingNone, codingGzip, codingDeflate:
			if q > highest {
				best, highest = c, q
			}
		}
	}
	return best
}

// inflater is a decompressor for both codings. It is reused for later requests.
type inflater struct {
	in   *bufio.Reader
	gzip *gzip.Reader  // nil: not used yet, as the next one
	zlib io.ReadCloser // a zlib.Resetter too
}

// open begins to decompress a body. The body's first bytes tell its format, as for zlib, whatever
// the header says.
func (z *inflater) open(body io.Reader) (io.Reader, error) {
	z.in.Reset(body)
	begin, _ := z.in.Peek(2) // a shorter body fails below
	var err error
	switch isGzip := bytes.Equal(begin, []byte{0x1f, 0x8b}); {
	case isGzip && z.gzip == nil:
		z.gzip, err = gzip.NewReader(z.in)
		return z.gzip, err
	case isGzip:
		return z.gzip, z.gzip.Reset(z.in)
	case z.zlib == nil:
		z.zlib, err = zlib.NewReader(z.in)
		return z.zlib, err
	default:
		return z.zlib, z.zlib.(zlib.Resetter).Reset(z.in, nil)
	}
}

// inflate returns the decompressed body in buf, or in a larger buffer. It decompresses while the
// body arrives, and ends as soon as there is too much.
func (b *reader) inflate(buf []byte) ([]byte, error) {
	length := b.ctx.Request.Header.ContentLength()
	if err := countable(length); err != nil {
		return buf, err
	}
	stream := b.ctx.RequestBodyStream()
	if length == 0 || stream == nil {
		b.done = true
		return buf, fault.Errorf(fault.InvalidArgument, "nothing to be decompressed")
	}
	if err := b.reserve(inflaterBytes); err != nil {
		return buf, err
	}
	defer b.release(inflaterBytes)
	z := b.frontend.inflaters.Get().(*inflater)
	defer b.frontend.inflaters.Put(z)
	body := b.arrival(stream, length)
	data, err := z.open(body)
	if err != nil {
		err = errNotCompressed()
	} else if buf, err = b.readAll(data, buf[:0]); err == nil {
		// nothing may follow: it would belong to nobody
		if _, end := z.in.ReadByte(); end != io.EOF {
			err = errNotCompressed()
		}
	}
	z.in.Reset(nil)
	b.done, b.broken = body.done, body.broken
	if body.err != nil {
		err = body.err
	}
	return buf, err
}

// readAll reads data to its end, if that is within the limit.
func (b *reader) readAll(data io.Reader, buf []byte) ([]byte, error) {
	limit := b.frontend.options.MaxInput
	b.buffer = cap(buf)
	if err := b.reserve(b.buffer); err != nil {
		return buf, err
	}
	for {
		if len(buf) == cap(buf) {
			var err error
			if buf, err = b.grow(buf, -1); err != nil {
				return buf, err
			}
		}
		n, err := data.Read(buf[len(buf):cap(buf)])
		switch buf = buf[:len(buf)+n]; {
		case len(buf) > limit:
			return buf, fault.Errorf(fault.InvalidArgument, "Decompressed data size exceeds the maximum allowed value of %d bytes. Use --http-max-input-size to increase the limit.", limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, errNotCompressed()
		}
	}
}

func errNotCompressed() error {
	return fault.Errorf(fault.InvalidArgument, "cannot decompress the request: its body is not one complete gzip or zlib stream")
}

// packed is an answer that is being compressed. Its memory is charged as it grows.
type packed struct {
	account *budget.Account
	data    []byte
	charged int
}

// Write appends compressed bytes. It fails when the account is full.
func (p *packed) Write(more []byte) (int, error) {
	if need := len(p.data) + len(more); need > cap(p.data) {
		size := max(2*cap(p.data), need, firstPacked)
		if !p.account.Take(size) {
			return 0, fault.Full(p.account)
		}
		p.data = append(make([]byte, 0, size), p.data...)
		p.account.Give(p.charged)
		p.charged = size
	}
	p.data = append(p.data, more...)
	return len(more), nil
}

// deflate compresses an answer. It returns the result in memory of x, or in a larger buffer, and
// the bytes that are reserved for it.
func (b *reader) deflate(c coding, answer []byte, x *inference) (out []byte, charged int, err error) {
	if err := b.reserve(deflaterBytes); err != nil {
		return nil, 0, err
	}
	defer b.release(deflaterBytes)
	p := &packed{account: b.account(), data: x.packed[:0], charged: cap(x.packed)}
	if !p.account.Take(p.charged) {
		return nil, 0, fault.Full(p.account)
	}
	pool := &b.frontend.gzips
	if c == codingDeflate {
		pool = &b.frontend.zlibs
	}
	w := pool.Get().(compressor)
	defer pool.Put(w)
	defer w.Reset(io.Discard) // p has the answer
	w.Reset(p)
	if _, err = w.Write(answer); err == nil {
		err = w.Close()
	}
	b.reserved += p.charged
	return p.data, p.charged, err
}

// compressor is a gzip.Writer or a zlib.Writer.
type compressor interface {
	io.WriteCloser
	Reset(w io.Writer)
}
