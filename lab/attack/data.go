package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"time"
)

// data: foreign arrays and YAML.
func data() []attack {
	array := func(file func() ([]byte, error)) func(context.Context, *scene) (string, error) {
		return func(ctx context.Context, s *scene) (string, error) { return refusedArray(ctx, s, file) }
	}
	const want = "refused with exit code 2, less than 200 MiB of memory"
	return []attack{
		{"A8", "an .npz of 131 kB with 128 million strings of one letter", want, array(func() ([]byte, error) { return zipped("INPUT.npy", header("|S1", "134217728"), 128<<20) })},
		{"A8", "an .npz of 250 kB with 256 MiB of FP32", want, array(func() ([]byte, error) { return zipped("INPUT.npy", header("<f4", "67108864"), 256<<20) })},
		{"A8", "an .npz that says 64 rows and unpacks to 512 MiB", want, array(func() ([]byte, error) { return zipped("INPUT.npy", header("<f4", "64, 64"), 512<<20) })},
		{"A8", "an .npz whose directory says less than it unpacks to", want, array(lyingZip)},
		{"A8", "an .npz with 60,000 arrays of other names", want, array(manyArrays)},
		{"§2", "an .npy of objects (a pickle that runs a command)", "refused, nothing runs", pickle},
		{"A8", "an .npy whose header says 2^62 elements", want, array(func() ([]byte, error) { return header("<f4", "4611686018427387904"), nil })},
		{"§2", "YAML: billion laughs, depth 10^5, 300,000 keys, self alias, UTF-16", "refused with exit code 2 within 30 s, less than 1 GiB of memory", yaml},
		{"A16", "a dry run of 10^12 candidates", "answered within 20 s", hugeSpace},
	}
}

// header returns the head of an .npy file.
func header(dtype, shape string) []byte {
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }", dtype, shape)
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	return append(binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(text))), text...)
}

// zipped returns an archive of one array: its header and zeros after it.
func zipped(name string, head []byte, zeros int64) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(w, zeroes{}, zeros); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// lyingZip declares 1 KiB for an entry of 512 MiB.
func lyingZip() ([]byte, error) {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	head := header("<f4", "4, 64")
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(w, zeroes{}, 512<<20); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	entry, err := z.CreateRaw(&zip.FileHeader{Name: "INPUT.npy", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(head),
		CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(head) + 1024)})
	if err != nil {
		return nil, err
	}
	_, err = entry.Write(packed.Bytes())
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

func manyArrays() ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := range 60_000 {
		w, err := z.Create(fmt.Sprintf("%s_%d.npy", strings.Repeat("n", 100), i))
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(append(header("<f4", "1"), 0, 0, 0, 0)); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// refusedArray checks that convert refuses a file of inputs.
func refusedArray(ctx context.Context, s *scene, file func() ([]byte, error)) (string, error) {
	content, err := file()
	if err != nil {
		return "", err
	}
	name := "data.npz"
	if bytes.HasPrefix(content, []byte("\x93NUMPY")) {
		name = "data.npy"
	}
	if err := errors.Join(s.write(sample(s, "mlp"), "m.onnx"), s.write(content, name)); err != nil {
		return "", err
	}
	o, err := s.tunes(ctx, "convert", "m.onnx", "--precision", "fp16", "--data", name, "-o", "work")
	if err != nil {
		return "", err
	}
	if o.peak > 200<<20 || len(o.out) > 64<<10 {
		return "", fmt.Errorf("peak %d MiB, %d bytes of messages", o.peak>>20, len(o.out))
	}
	return o.refused(2)
}

func pickle(ctx context.Context, s *scene) (string, error) {
	// A pickle that calls os.system("touch executed").
	evil := "cos\nsystem\n(S'touch " + s.path("executed") + "'\ntR."
	seen, err := refusedArray(ctx, s, func() ([]byte, error) { return append(header("|O", "1"), evil...), nil })
	if _, errStat := os.Stat(s.path("executed")); errStat == nil {
		return "", errors.New("the pickle was executed")
	}
	return seen, err
}

func yaml(ctx context.Context, s *scene) (string, error) {
	if err := s.write(sample(s, "mlp"), "m.onnx"); err != nil {
		return "", err
	}
	const begin = "model: m.onnx\noutput: out\n"
	laughs := strings.Builder{}
	laughs.WriteString("a0: &a0 [lol, lol]\n")
	for i := range 40 {
		fmt.Fprintf(&laughs, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i, i)
	}
	keys := strings.Builder{}
	for i := range 300_000 {
		fmt.Fprintf(&keys, "key%d: 1\n", i)
	}
	var peak int64
	var longest time.Duration
	for name, text := range map[string]string{
		"laughs": begin + laughs.String(), "depth": begin + "space: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "\n",
		"map depth": begin + "space: " + strings.Repeat("{a: ", 100_000) + strings.Repeat("}", 100_000) + "\n",
		"keys":      begin + keys.String(), "self alias": begin + "space: &a [*a]\n", "UTF-16": "\xff\xfem\x00o\x00", "a tag": begin + "space: !!python/object/apply:os.system [ls]\n",
		"twice": begin + begin, "a range": begin + "space: {instance_count: {min: 1, max: 9223372036854775807}}\n", "nothing": "", "NUL": begin + "\x00",
		"a number": begin + "search: {budget: 1e999}\n", "an anchor of each": begin + "x: &x {<<: *x}\n",
	} {
		if err := s.write([]byte(text), "profile.yaml"); err != nil {
			return "", err
		}
		o, err := s.tunes(ctx, "profile", "-f", "profile.yaml", "--dry-run")
		if err != nil {
			return "", err
		}
		if o.code != 2 || o.took > 30*time.Second || o.peak > 1<<30 || len(o.out) > 1<<20 {
			return "", fmt.Errorf("%s: exit code %d after %v, peak %d MiB: %s", name, o.code, o.took, o.peak>>20, last(o.out))
		}
		peak, longest = max(peak, o.peak), max(longest, o.took)
	}
	return fmt.Sprintf("13 refused, the longest after %.1f s, peak %d MiB", longest.Seconds(), peak>>20), nil
}

func hugeSpace(ctx context.Context, s *scene) (string, error) {
	list := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(i+1))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	text := "model: m.onnx\noutput: out\nsearch: {strategy: grid, budget: {time: 1m}}\nspace: {intra_op_threads: " + list(100) + ", instance_count: " + list(100) +
		", max_batch_size: " + list(1000) + ", max_queue_delay: [" + strings.Repeat("1us, ", 0) + delays(10_000) + "]}\n"
	if err := errors.Join(s.write(sample(s, "mlp"), "m.onnx"), s.write([]byte(text), "profile.yaml")); err != nil {
		return "", err
	}
	o, err := s.tunes(ctx, "profile", "-f", "profile.yaml", "--dry-run")
	if err != nil {
		return "", err
	}
	if o.took > 20*time.Second || o.peak > 2<<30 || o.code != 0 && o.code != 2 {
		return "", fmt.Errorf("exit code %d after %v, peak %d MiB: %s", o.code, o.took, o.peak>>20, last(o.out))
	}
	return fmt.Sprintf("exit code %d after %.1f s, peak %d MiB: %s", o.code, o.took.Seconds(), o.peak>>20, last(o.out)), nil
}

func delays(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%dus", i+1))
	}
	return strings.Join(all, ", ")
}
