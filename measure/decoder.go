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

// decoder reads histograms of our own range and resolution from HdrHistogram's compressed encoding
// (V2). The text is base64 of a cookie, a length, and that many bytes of a zlib stream. The stream
// holds a header and the counts of the buckets.
//
// A journal has hundreds of thousands of histograms. hdr.DecodePacked spends most of its time on
// the allocation of a zlib window for each. A decoder reuses its buffers. It is for one goroutine.
type decoder struct {
	packed  []byte       // after base64
	source  bytes.Reader // reads the compressed part of packed
	inflate io.ReadCloser
	plain   [1 << 16]byte // header and counts
	bins    []bin
	shared  []bin // bins of earlier histograms, and room for the next
}

// decoders reuses decoders, since their buffers are large.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decode returns false for every text that differs in anything, whether broken or of another tool.
// hdr.Decode then tells the two apart.
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
	return d.plain[:n], err == io.EOF // io.EOF also means that the checksum is right
}

// reset makes inflate read from source.
func (d *decoder) reset() (err error) {
	if d.inflate != nil {
		return d.inflate.(zlib.Resetter).Reset(&d.source, nil)
	}
	d.inflate, err = zlib.NewReader(&d.source)
	return err
}

// readTo fills a buffer as far as from has data. io.EOF means that from is at its end.
func readTo(buffer []byte, from io.Reader) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = from.Read(buffer[n:])
		n += more
	}
	return n, err
}

// cookieOf returns the cookie at the start of data, without the bits for the width of the words.
func cookieOf(data []byte) int32 { return int32(binary.BigEndian.Uint32(data)) &^ 0xf0 }

// isOurs reports whether data begins with the header of a histogram of our range and resolution.
// The header has these fields:
//
//   - cookie, length of the counts, an offset that does not matter, and digits: 4 bytes each
//   - lowest value, highest value, and a factor that does not matter: 8 bytes each
func isOurs(data []byte) bool {
	be := binary.BigEndian
	return len(data) >= hdr.ENCODING_HEADER_SIZE && cookieOf(data) == hdr.V2EncodingCookieBase &&
		int64(be.Uint32(data[4:])) == int64(len(data)-hdr.ENCODING_HEADER_SIZE) && be.Uint32(data[12:]) == latencyDigits &&
		be.Uint64(data[16:]) == uint64(lowestLatency) && be.Uint64(data[24:]) == uint64(highestLatency)
}

// count reads the counts: a zigzag varint per bucket. A negative value stands for that many empty
// buckets.
func (d *decoder) count(payload []byte) (Histogram, bool) {
	bucket, end, total := int64(0), int64(bucketOf(highestLatency)+1), int64(0)
	d.bins = d.bins[:0]
	for len(payload) > 0 {
		value, n := binary.Uvarint(payload)
		if n <= 0 || n > 8 { // HdrHistogram encodes varints differently from the ninth byte on
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

// kept returns a copy of bins. Small copies share one allocation, which saves work for the garbage
// collector.
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
