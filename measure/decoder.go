package measure

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"
	"slices"
	"sync"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/klauspost/compress/zlib"
)

// decoder reads histograms of our own range and resolution out of HdrHistogram's compressed encoding (V2): in base64 a cookie, a length
// and so many bytes of zlib's, in which there are a header and the counts of the buckets. A journal has hundreds of thousands of them, and
// hdr.DecodePacked takes most of its time to make room for each one's window of zlib. It is for one goroutine.
type decoder struct {
	packed  []byte       // out of base64
	source  bytes.Reader // on the compressed part of it
	inflate io.ReadCloser
	plain   [1 << 16]byte // header and counts
	bins    []bin
	shared  []bin // of histograms before, and the room for the next
}

// decoders keeps decoders for their buffers.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decode is false for whatever differs in anything, be it broken or another tool's: hdr.Decode tells the two apart.
func (d *decoder) decode(text []byte) (Histogram, bool) {
	plain, ok := d.unpack(text)
	if !ok || !isOurs(plain) {
		return Histogram{}, false
	}
	return d.count(plain[hdr.ENCODING_HEADER_SIZE:])
}

// unpack returns header and counts, valid until the next call.
func (d *decoder) unpack(text []byte) (plain []byte, ok bool) {
	packed, err := base64.StdEncoding.AppendDecode(d.packed[:0], text)
	d.packed = packed
	const head = 8
	if err != nil || len(packed) < head || cookieOf(packed) != hdr.V2CompressedEncodingCookieBase {
		return nil, false
	}
	length := int64(binary.BigEndian.Uint32(packed[4:]))
	if length > int64(len(packed)-head) {
		return nil, false
	}
	compressed := packed[head : head+length]
	if data, ok := unstored(compressed); ok {
		return data, true
	}
	d.source.Reset(compressed)
	if err := d.reset(); err != nil {
		return nil, false
	}
	n, err := readTo(d.plain[:], d.inflate)
	return d.plain[:n], err == io.EOF // which also says that the checksum is right
}

// reset begins to inflate the source.
func (d *decoder) reset() (err error) {
	if d.inflate != nil {
		return d.inflate.(zlib.Resetter).Reset(&d.source, nil)
	}
	d.inflate, err = zlib.NewReader(&d.source)
	return err
}

// readTo fills a buffer as far as there is something to read; io.EOF says that this was all.
func readTo(buffer []byte, from io.Reader) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = from.Read(buffer[n:])
		n += more
	}
	return n, err
}

// cookieOf is the cookie that data begins with, without the bits that say how wide its words are.
func cookieOf(data []byte) int32 { return int32(binary.BigEndian.Uint32(data)) &^ 0xf0 }

// isOurs reports whether data begins with the header of a histogram of our range and resolution: cookie, length of the counts, an offset
// that does not matter, digits (4 bytes each), lowest and highest value, and a factor that does not matter (8 bytes each).
func isOurs(data []byte) bool {
	be := binary.BigEndian
	return len(data) >= hdr.ENCODING_HEADER_SIZE && cookieOf(data) == hdr.V2EncodingCookieBase &&
		int64(be.Uint32(data[4:])) == int64(len(data)-hdr.ENCODING_HEADER_SIZE) && be.Uint32(data[12:]) == latencyDigits &&
		be.Uint64(data[16:]) == uint64(lowestLatency) && be.Uint64(data[24:]) == uint64(highestLatency)
}

// count reads the counts, a zigzag varint for each bucket; a negative one stands for so many empty buckets.
func (d *decoder) count(payload []byte) (Histogram, bool) {
	bucket, end, total := int64(0), int64(bucketOf(highestLatency)+1), int64(0)
	d.bins = d.bins[:0]
	for len(payload) > 0 {
		value, n := binary.Uvarint(payload)
		if n <= 0 || n > 8 { // from the ninth byte on HdrHistogram's varints are others
			return Histogram{}, false
		}
		payload = payload[n:]
		count := int64(value>>1) ^ -int64(value&1)
		if count > 0 {
			if bucket >= end || count >= mostRead {
				return Histogram{}, false
			}
			d.bins = append(d.bins, newBin(int(bucket), count))
			total += count
		}
		bucket += max(1, -count)
		if bucket > end {
			return Histogram{}, false
		}
	}
	return Histogram{d.kept(d.bins), total}, true
}

// kept is a copy of bins. Small ones share their memory with others, which is less for the garbage collector to look at.
func (d *decoder) kept(bins []bin) []bin {
	const room = 512 // bins, 4 kB
	if len(bins) > room/4 {
		return slices.Clone(bins)
	}
	if cap(d.shared)-len(d.shared) < len(bins) {
		d.shared = make([]bin, 0, room)
	}
	begin := len(d.shared)
	d.shared = append(d.shared, bins...)
	return d.shared[begin:len(d.shared):len(d.shared)]
}
