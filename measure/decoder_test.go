package measure

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"tuner/internal/alloctest"
)

// encoded returns the text of a histogram in a journal.
func encoded(t testing.TB, h Histogram) []byte {
	t.Helper()
	quoted, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	text, err := textOf(quoted)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unpacked decodes the base64 of a text.
func unpacked(t testing.TB, text []byte) []byte {
	t.Helper()
	packed, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// ofCounts encodes a payload of counts. change may damage the header.
func ofCounts(t testing.TB, payload []byte, change func(header []byte)) []byte {
	t.Helper()
	be := binary.BigEndian
	header := be.AppendUint32(nil, uint32(hdr.V2EncodingCookieBase|0x10))
	for _, word := range []uint32{uint32(len(payload)), 0, latencyDigits} {
		header = be.AppendUint32(header, word)
	}
	for _, word := range []uint64{uint64(lowestLatency), uint64(highestLatency), 0x3ff0000000000000} {
		header = be.AppendUint64(header, word)
	}
	change(header)
	var compressed bytes.Buffer
	w := zlib.NewWriter(&compressed)
	if _, err := w.Write(append(header, payload...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	packed := be.AppendUint32(nil, uint32(hdr.V2CompressedEncodingCookieBase|0x10))
	packed = append(be.AppendUint32(packed, uint32(compressed.Len())), compressed.Bytes()...)
	return base64.StdEncoding.AppendEncode(nil, packed)
}

// The decoder reads the same as HdrHistogram's own decoder. It reads all that the encoder writes:
// narrow and wide histograms, of one latency and of many. The same decoder reads one after the
// other.
func TestDecoderReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(31, 32))
	var d decoder
	for _, latencies := range [][]time.Duration{
		{time.Microsecond}, {0, time.Hour}, repeat(20*time.Millisecond, 100_000), logNormal(random, 70, 8*time.Millisecond, 0.1),
		logNormal(random, 20_000, time.Millisecond, 2), {10 * time.Minute}, logNormal(random, 5, time.Second, 1),
	} {
		want := histogram(latencies...)
		text := encoded(t, want)
		got, ok := d.decode(text)
		if !ok || !got.Equal(want) || got.Count() != len(latencies) {
			t.Errorf("%d latencies became %d, %t", len(latencies), got.Count(), ok)
		}
		full, err := hdr.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := fromHDR(full); err != nil || !same.Equal(got) {
			t.Errorf("HdrHistogram reads %d latencies otherwise: %v", len(latencies), err)
		}
	}
}

// The decoder leaves broken and foreign texts to HdrHistogram's decoder. They leave no trace for
// the next text.
func TestDecoderRefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	whole := histogram(logNormal(rand.New(rand.NewPCG(33, 34)), 200, 5*time.Millisecond, 0.3)...)
	none := func([]byte) {}
	packed, compressed := unpacked(t, encoded(t, whole)), unpacked(t, ofCounts(t, []byte{2}, none))
	changed := func(packed []byte, at int) []byte {
		other := slices.Clone(packed)
		other[at]++
		return base64.StdEncoding.AppendEncode(nil, other)
	}
	var d decoder
	for name, text := range map[string][]byte{
		"no base64":         []byte("HISTF???"),
		"too short":         base64.StdEncoding.AppendEncode(nil, packed[:7]),
		"another cookie":    changed(packed, 0),
		"cut":               base64.StdEncoding.AppendEncode(nil, packed[:len(packed)-1]),
		"no zlib":           changed(packed, 8),
		"length of a block": changed(packed, 11),
		"inverted length":   changed(packed, 13),
		"checksum":          changed(packed, len(packed)-1),
		"its checksum":      changed(compressed, len(compressed)-1),
		"no header":         ofCounts(t, nil, none)[:8],
		"other digits":      ofCounts(t, []byte{2}, func(h []byte) { h[15] = 2 }),
		"other range":       ofCounts(t, []byte{2}, func(h []byte) { h[31]++ }),
		"other cookie":      ofCounts(t, []byte{2}, func(h []byte) { h[0] = 0 }),
		"length":            ofCounts(t, []byte{2}, func(h []byte) { h[7]++ }),
		"cut varint":        ofCounts(t, []byte{0x80}, none),
		"nine bytes":        ofCounts(t, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, none),
		"too many empty":    ofCounts(t, binary.AppendUvarint(nil, 2<<20-1), none),
		"beyond the range":  ofCounts(t, append(binary.AppendUvarint(nil, uint64(2*(bucketOf(highestLatency)+1)-1)), 2), none),
		"more than a table": ofCounts(t, bytes.Repeat([]byte{2}, 1<<16), none),
	} {
		if h, ok := d.decode(text); ok {
			t.Errorf("%s: read as %d latencies", name, h.Count())
		}
		if got, ok := d.decode(encoded(t, whole)); !ok || !got.Equal(whole) {
			t.Errorf("after %q a histogram is read as %d latencies, %t", name, got.Count(), ok)
		}
	}
	if h, ok := d.decode(ofCounts(t, []byte{0, 0, 4, 3, 2}, none)); !ok || h.Count() != 3 || h.Rank(1) != middleOf(2) || h.Rank(3) != middleOf(5) {
		t.Errorf("two in bucket 2 and one in bucket 5 are read as %+v, %t", h, ok)
	}
}

// Histogram reads a histogram of another tool.
func TestHistogramOfAnotherRange(t *testing.T) {
	t.Parallel()
	other := hdr.New(1, int64(time.Hour), 2)
	for _, l := range []time.Duration{time.Millisecond, time.Millisecond, time.Second} {
		if err := other.RecordValue(int64(l)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := other.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	var h Histogram
	if err := json.Unmarshal([]byte(`"`+string(text)+`"`), &h); err != nil {
		t.Fatal(err)
	}
	if h.Count() != 3 || !near(h.Rank(2).Seconds(), 1e-3, 0.01) || !near(h.Rank(3).Seconds(), 1, 0.01) {
		t.Errorf("%d latencies, %v and %v; want 3, 1 ms and 1 s", h.Count(), h.Rank(2), h.Rank(3))
	}
}

// The decoder reads the same as HdrHistogram's decoder from every text that it accepts.
func FuzzDecoder(f *testing.F) {
	for _, latencies := range [][]time.Duration{{time.Microsecond}, {20 * time.Millisecond, 21 * time.Millisecond, time.Hour}} {
		f.Add(encoded(f, histogram(latencies...)))
	}
	f.Add(ofCounts(f, []byte{0, 0, 4, 3, 2}, func([]byte) {}))
	f.Add([]byte("HISTFAAA"))
	f.Add(encoded(f, histogram(logNormal(rand.New(rand.NewPCG(39, 40)), 5000, time.Second, 1)...)))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		d := decoders.Get().(*decoder)
		defer decoders.Put(d)
		h, ok := d.decode(text)
		if !ok {
			return
		}
		full, err := hdr.Decode(text)
		if err != nil {
			t.Fatalf("HdrHistogram refuses what was read: %v", err)
		}
		if want, err := fromHDR(full); err != nil || !want.Equal(h) || want.count != h.count {
			t.Errorf("read as %v, by HdrHistogram as %v: %v", h, want, err)
		}
	})
}

// BenchmarkUnmarshal reads the histogram of a sub-window of a hundred requests from a journal.
func BenchmarkUnmarshal(b *testing.B) {
	quoted, err := json.Marshal(histogram(logNormal(rand.New(rand.NewPCG(35, 36)), 100, 8*time.Millisecond, 0.1)...))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var h Histogram
		if err := h.UnmarshalJSON(quoted); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMerge merges the histograms of twenty sub-windows of a hundred requests.
func BenchmarkMerge(b *testing.B) {
	random := rand.New(rand.NewPCG(37, 38))
	var parts []Histogram
	for range 20 {
		parts = append(parts, histogram(logNormal(random, 100, 8*time.Millisecond, 0.1)...))
	}
	b.ReportAllocs()
	for b.Loop() {
		Merge(parts...)
	}
}
