package measure

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"math"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// encode writes a histogram in HdrHistogram's compressed encoding (V2, see decoder).
func encode(h Histogram) (text []byte, err error) {
	counts := appendCounts(nil, h)
	stream, err := compress(append(header(len(counts)), counts...))
	if err != nil {
		return nil, err
	}
	packed := binary.BigEndian.AppendUint32(nil, uint32(hdr.V2CompressedEncodingCookieBase|wordBits))
	packed = binary.BigEndian.AppendUint32(packed, uint32(len(stream)))
	return base64.StdEncoding.AppendEncode(nil, append(packed, stream...)), nil
}

// compress makes a zlib stream as HdrHistogram does, but stores small data without compression.
// Most histograms are of sub-windows and have about seventy bytes of counts. For these, zlib would
// spend a hundred times as long on the allocation of its tables as on all the rest.
func compress(data []byte) ([]byte, error) {
	const small = 512 // bytes
	if len(data) <= small {
		return store(data), nil
	}
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// wordBits are the bits of a cookie for the width of its words, as HdrHistogram writes them.
const wordBits = 0x10

// header writes the header that isOurs expects, for a payload of counts bytes.
func header(counts int) []byte {
	be := binary.BigEndian
	const noOffset, unscaled = 0, 1.0
	h := be.AppendUint32(nil, uint32(hdr.V2EncodingCookieBase|wordBits))
	h = be.AppendUint32(h, uint32(counts))
	h = be.AppendUint32(h, noOffset)
	h = be.AppendUint32(h, latencyDigits)
	h = be.AppendUint64(h, uint64(lowestLatency))
	h = be.AppendUint64(h, uint64(highestLatency))
	return be.AppendUint64(h, math.Float64bits(unscaled))
}

// appendCounts writes the counts that decoder.count reads.
func appendCounts(to []byte, h Histogram) []byte {
	next := 0
	for _, b := range h.bins {
		switch empty := b.bucket() - next; {
		case empty == 1:
			to = append(to, 0)
		case empty > 1:
			to = binary.AppendVarint(to, -int64(empty))
		}
		to = binary.AppendVarint(to, b.count())
		next = b.bucket() + 1
	}
	return to
}

// storedHead begins a zlib stream (RFC 1950) of one stored block (RFC 1951). The length of the data
// follows twice, the second time inverted; then come the data and their checksum.
var storedHead = [...]byte{0x78, 0x01, 0x01} // window of 32 kB, fastest; last block, stored

const (
	storedBegin = len(storedHead) + 4
	storedEnd   = adler32.Size
)

// store makes a zlib stream of at most 65,535 bytes without compression.
func store(data []byte) []byte {
	n := uint16(len(data))
	stream := binary.LittleEndian.AppendUint16(storedHead[:], n)
	stream = binary.LittleEndian.AppendUint16(stream, ^n)
	return binary.BigEndian.AppendUint32(append(stream, data...), adler32.Checksum(data))
}

// unstored returns the data of a stream that store made. The data shares the stream's memory. It
// returns false for any other stream.
func unstored(stream []byte) (data []byte, ok bool) {
	end := len(stream) - storedEnd
	if end < storedBegin || [3]byte(stream) != storedHead {
		return nil, false
	}
	n, inverted := binary.LittleEndian.Uint16(stream[3:]), binary.LittleEndian.Uint16(stream[5:])
	data = stream[storedBegin:end]
	return data, int(n) == len(data) && inverted == ^n && binary.BigEndian.Uint32(stream[end:]) == adler32.Checksum(data)
}
