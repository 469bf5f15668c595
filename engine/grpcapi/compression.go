package grpcapi

import (
	"compress/zlib"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"

	"tuner/engine"
	"tuner/engine/budget"
)

// Compression is how much the answers to inferences are compressed, for clients that accept it.
type Compression int

// Levels of compression, as gRPC has them: low is gzip, the others deflate.
const (
	CompressionNone Compression = iota
	CompressionLow
	CompressionMedium
	CompressionHigh
)

// deflateName is gRPC's name of zlib's format.
const deflateName = "deflate"

// decompression is charged for what is decompressed. The compressors are the program's and no server's (see init), so that it is
// of the front end that was made last: a program has one. nil: nobody is charged.
var decompression atomic.Pointer[budget.Account]

// gRPC looks compressors up in a table of its own, which may be written while the program is initialised only. It has no
// deflate, and its gzip is replaced by one that is charged.
func init() {
	encoding.RegisterCompressor(charged{encoding.GetCompressor(gzip.Name)})
	encoding.RegisterCompressor(charged{&deflate{}})
}

// charged is a compressor that is charged for what it decompresses, as it does: a short message may become a very long one.
type charged struct{ encoding.Compressor }

// Decompress returns a reader of what r has compressed.
func (c charged) Decompress(r io.Reader) (io.Reader, error) {
	inner, err := c.Compressor.Decompress(r)
	if err != nil {
		return nil, err
	}
	return &chargedReader{Reader: inner, account: decompression.Load()}, nil
}

type chargedReader struct {
	io.Reader
	account *budget.Account
	taken   int
}

// Read reads into memory that gRPC has made for it, and fails when there is no more for the rest.
func (r *chargedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if !r.account.Take(n) {
		return n, engine.Full(r.account)
	}
	r.taken += n
	return n, err
}

// Close is called when all has been read. The message is charged anew where it is put together (codec.Unmarshal), at once.
func (r *chargedReader) Close() error {
	r.account.Give(r.taken)
	r.taken = 0
	if c, ok := r.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// deflate is the compressor that gRPC's other implementations have and Go's has not.
type deflate struct{ writers, readers sync.Pool }

// Name is what the header grpc-encoding says.
func (*deflate) Name() string { return deflateName }

// Compress returns a writer that compresses into w; Close completes it.
func (d *deflate) Compress(w io.Writer) (io.WriteCloser, error) {
	z, ok := d.writers.Get().(*zlib.Writer)
	if !ok {
		z = zlib.NewWriter(w)
	} else {
		z.Reset(w)
	}
	return &deflateWriter{z, d}, nil
}

type deflateWriter struct {
	*zlib.Writer
	from *deflate
}

// Close completes the data and gives the writer back.
func (w *deflateWriter) Close() error {
	defer w.from.writers.Put(w.Writer)
	return w.Writer.Close()
}

// Decompress returns a reader of what r has compressed; Close gives it back.
func (d *deflate) Decompress(r io.Reader) (io.Reader, error) {
	z, ok := d.readers.Get().(io.ReadCloser)
	if !ok {
		var err error
		if z, err = zlib.NewReader(r); err != nil {
			return nil, err
		}
	} else if err := z.(zlib.Resetter).Reset(r, nil); err != nil {
		return nil, err
	}
	return &deflateReader{z, d}, nil
}

type deflateReader struct {
	io.ReadCloser
	from *deflate
}

// Close gives the reader back.
func (r *deflateReader) Close() error {
	defer r.from.readers.Put(r.ReadCloser)
	return r.ReadCloser.Close()
}

// compress says how the answer of a call is compressed. Left alone, gRPC would compress it as the request is.
func (c Compression) compress(ctx context.Context) error {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface {
		RecvCompress() string
		ClientAdvertisedCompressors() []string
	})
	if !ok {
		return nil
	}
	if request := stream.RecvCompress(); c == CompressionNone && (request == "" || request == encoding.Identity) {
		return nil
	}
	name := encoding.Identity
	switch accepted := stream.ClientAdvertisedCompressors(); {
	case c == CompressionNone:
	case c == CompressionLow && slices.Contains(accepted, gzip.Name), !slices.Contains(accepted, deflateName) && slices.Contains(accepted, gzip.Name):
		name = gzip.Name
	case slices.Contains(accepted, deflateName):
		name = deflateName
	}
	return grpc.SetSendCompressor(ctx, name)
}
