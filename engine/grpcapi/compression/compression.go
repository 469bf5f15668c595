// Package compression compresses gRPC's answers, and charges a client for what its compressed messages become.
package compression

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

	"tuner/engine/budget"
	"tuner/engine/fault"
)

// Level is the level of compression of the answers to inferences, for clients that accept it.
type Level int

// Levels of compression, as in gRPC: low is gzip, the others are deflate.
const (
	None Level = iota
	Low
	Medium
	High
)

// deflateName is gRPC's name of zlib's format.
const deflateName = "deflate"

// account is charged for decompressed bytes. Compressors belong to the program and not to a
// server (see init). So this is the account of the front end that was made last; a program has one.
// nil: no account is charged.
var account atomic.Pointer[budget.Account]

// Charge sets the account that is charged for decompressed bytes.
func Charge(to *budget.Account) { account.Store(to) }

// gRPC finds compressors in a global table, which may be written only in init. It has no deflate.
// Its gzip is replaced by one that charges an account.
func init() {
	encoding.RegisterCompressor(charged{encoding.GetCompressor(gzip.Name)})
	encoding.RegisterCompressor(charged{&deflate{}})
}

// charged is a compressor that charges each decompressed byte as it is made, since a short message
// may become a long one.
type charged struct{ encoding.Compressor }

// Decompress returns a reader of the decompressed data of r.
func (c charged) Decompress(r io.Reader) (io.Reader, error) {
	inner, err := c.Compressor.Decompress(r)
	if err != nil {
		return nil, err
	}
	return &chargedReader{Reader: inner, account: account.Load()}, nil
}

type chargedReader struct {
	io.Reader
	account *budget.Account
	taken   int
}

// Read reads into memory that gRPC has allocated. It fails if there is no memory for the rest.
func (r *chargedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if !r.account.Take(n) {
		return n, fault.Full(r.account)
	}
	r.taken += n
	return n, err
}

// Close is called when all has been read. The message is charged again at once, where it is
// assembled (codec.Unmarshal).
func (r *chargedReader) Close() error {
	r.account.Give(r.taken)
	r.taken = 0
	if c, ok := r.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// deflate is a compressor that gRPC's other implementations have and Go's lacks.
type deflate struct{ writers, readers sync.Pool }

// Name returns the value of the header grpc-encoding.
func (*deflate) Name() string { return deflateName }

// Compress returns a writer that compresses into w. Close completes the data.
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

// Close completes the data and returns the writer to the pool.
func (w *deflateWriter) Close() error {
	defer w.from.writers.Put(w.Writer)
	return w.Writer.Close()
}

// Decompress returns a reader of the decompressed data of r. Close returns it to the pool.
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

// Close returns the reader to the pool.
func (r *deflateReader) Close() error {
	defer r.from.readers.Put(r.ReadCloser)
	return r.ReadCloser.Close()
}

// Choose chooses the compression of a call's answers, and reports whether they are compressed. By
// default, gRPC would use that of the request.
func (c Level) Choose(ctx context.Context) (isCompressed bool, err error) {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface {
		RecvCompress() string
		ClientAdvertisedCompressors() []string
	})
	if !ok {
		return false, nil
	}
	if request := stream.RecvCompress(); c == None && (request == "" || request == encoding.Identity) {
		return false, nil
	}
	name := encoding.Identity
	switch accepted := stream.ClientAdvertisedCompressors(); {
	case c == None:
	case c == Low && slices.Contains(accepted, gzip.Name), !slices.Contains(accepted, deflateName) && slices.Contains(accepted, gzip.Name):
		name = gzip.Name
	case slices.Contains(accepted, deflateName):
		name = deflateName
	}
	return name != encoding.Identity, grpc.SetSendCompressor(ctx, name)
}
