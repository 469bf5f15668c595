package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleHeader has every field set.
func sampleHeader() Header {
	return Header{
		Tool:        "1.2.3",
		Created:     time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC),
		Spec:        SpecFile{Path: "profile.yaml", SHA256: "ab", Text: "model: <a>\n"},
		Seed:        1<<63 + 1,
		Runtime:     RuntimeInfo{Flavour: "cpu", Version: "1.31.1", Library: "lib.so"},
		Machine:     json.RawMessage(`{"cores":2}`),
		Fingerprint: "f",
		Model:       "minilm",
		Models:      []ModelFile{{Precision: "fp32", Path: "m.onnx", SHA256: "cd", Bytes: 7}},
		BaseConfig:  "name: \"minilm\"\n",
		Facts:       json.RawMessage(`{"Cores":2}`),
	}
}

// newJournal creates a journal with n trial records after the header, each {"n":i}.
func newJournal(t *testing.T, n int) (*Journal, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	j, err := Create(dir, sampleHeader())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range n {
		if err := j.Append(KindTrial, map[string]int{"n": i}); err != nil {
			t.Fatal(err)
		}
	}
	return j, dir
}

func TestReadReturnsWhatWasAppended(t *testing.T) {
	t.Parallel()
	_, dir := newJournal(t, 2)
	header, records, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := sampleHeader()
	want.Format = Format
	if diff := cmp.Diff(want, header); diff != "" {
		t.Error("header (-want +got):\n" + diff)
	}
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprintf("%d %s", r.Seq, r.Kind))
	}
	if diff := cmp.Diff([]string{"1 header", "2 trial", "3 trial"}, got); diff != "" {
		t.Error("records (-want +got):\n" + diff)
	}
	var data struct{ N int }
	if err := records[2].Decode(&data); err != nil || data.N != 1 {
		t.Errorf("last record has %+v, %v; want n = 1", data, err)
	}
}

// What belongs to the header is there with it, and the numbers go on behind it.
func TestCreateWithEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := Create(dir, sampleHeader(), Entry{KindEarlier, "a"}, Entry{KindEarlier, "b"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(KindTrial, "c"), j.Close()); err != nil {
		t.Fatal(err)
	}
	_, records, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range records[1:] {
		got += fmt.Sprintf("%d %s %s ", r.Seq, r.Kind, r.Data)
	}
	if want := `2 earlier "a" 3 earlier "b" 4 trial "c" `; got != want {
		t.Errorf("records are %s, want %s", got, want)
	}
	bad := t.TempDir()
	if _, err := Create(bad, sampleHeader(), Entry{KindEarlier, func() {}}); err == nil {
		t.Error("an entry that cannot be written is no error")
	}
	if _, _, err := Read(bad); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal without its entries was begun (%v)", err)
	}
}

func TestCreateRefusesAnExistingJournal(t *testing.T) {
	t.Parallel()
	j, dir := newJournal(t, 1)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, sampleHeader()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create again: %v; want fs.ErrExist", err)
	}
	if _, records, err := Read(dir); err != nil || len(records) != 2 {
		t.Errorf("after that: %d records, %v; want the 2 that were there", len(records), err)
	}
}

func TestOpenWithoutJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open: %v; want fs.ErrNotExist", err)
	}
	if _, _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read: %v; want fs.ErrNotExist", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("Open left %v (%v) in a folder that is not a campaign's", left, err)
	}
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	j, dir := newJournal(t, 0)
	want := fmt.Sprintf("process %d", os.Getpid())
	if _, _, err := Open(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("Open of a locked journal: %v; want an error that names %q", err, want)
	}
	if err := CheckFree(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a locked journal is free (%v); want an error that names %q", err, want)
	}
	if err := errors.Join(j.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	if err := CheckFree(dir); err != nil {
		t.Error("after Close:", err)
	}
	again, _, err := Open(dir)
	if err != nil {
		t.Fatal("after Close:", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if err := again.Append(KindTrial, 1); err == nil {
		t.Error("Append to a closed journal succeeded")
	}
}

// Whether a folder is free is found out without a trace in it.
func TestCheckFreeOfAFolderWithoutJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(CheckFree(dir), CheckFree(filepath.Join(dir, "none"))); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("CheckFree left %v (%v)", left, err)
	}
}

// TestEveryCutReplaysToAPrefix cuts the file after every byte, as a crash might, and goes on from there.
func TestEveryCutReplaysToAPrefix(t *testing.T) {
	t.Parallel()
	_, from := newJournal(t, 3)
	data, err := os.ReadFile(filepath.Join(from, FileName))
	if err != nil {
		t.Fatal(err)
	}
	_, all, err := Read(from)
	if err != nil {
		t.Fatal(err)
	}
	headerEnd := strings.IndexByte(string(data), '\n') + 1
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	for n := headerEnd; n <= len(data); n++ {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := strings.Count(string(data[:n]), "\n")
		j, records, err := Open(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if diff := cmp.Diff(all[:want], records); diff != "" {
			t.Fatalf("cut at %d (-want +got):\n%s", n, diff)
		}
		if err := errors.Join(j.Append(KindEnd, End{Reason: "x"}), j.Close()); err != nil {
			t.Fatal(err)
		}
		if _, records, err := Read(dir); err != nil || len(records) != want+1 {
			t.Fatalf("cut at %d, then appended: %d records, %v; want %d", n, len(records), err, want+1)
		}
	}
}

func TestDamageIsAnErrorWithItsLine(t *testing.T) {
	t.Parallel()
	header := `{"seq":1,"at":"2026-11-20T20:00:00Z","kind":"header","data":{"format":1}}` + "\n"
	trial := `{"seq":2,"at":"2026-11-20T20:00:01Z","kind":"trial","data":{}}` + "\n"
	check := func(name, text, want string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, FileName)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, read := range []func() error{
				func() error { _, _, err := Read(dir); return err },
				func() error { _, _, err := Open(dir); return err },
			} {
				if err := read(); err == nil || !strings.Contains(err.Error(), path+want) {
					t.Errorf("got %v; want an error with %q", err, path+want)
				}
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != text {
				t.Errorf("the damaged file was changed to %q (%v)", after, err)
			}
		})
	}
	check("empty", "", ":1: this is not a journal")
	check("foreign", "hello\n", ":1: this is not a journal")
	check("no header", strings.Replace(trial, `"seq":2`, `"seq":1`, 1), ":1: unexpected record of kind \"trial\"")
	check("second header", header+strings.Replace(header, `"seq":1`, `"seq":2`, 1), ":2: unexpected record of kind \"header\"")
	check("garbled middle", header+"{\x00}\n"+trial, ":2: ")
	check("missing line", header+strings.Replace(trial, `"seq":2`, `"seq":3`, 1), ":2: record has the number 3, not 2")
	check("no data", header+strings.Replace(trial, `,"data":{}`, ``, 1), ":2: record of kind \"trial\" has no data")
	check("newer format", strings.Replace(header, `"format":1`, `"format":9`, 1), ":1: journal has format 9")
	check("newer fields", strings.Replace(header, `"format":1`, `"format":9,"seed":"a"`, 1), ":1: journal has format 9")
}

// fullDisk writes at most room bytes, then fails as a full disk does: after a part of the line.
type fullDisk struct {
	*os.File
	room int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n, err := d.File.Write(p[:min(d.room, len(p))])
	d.room -= n
	if err == nil && n < len(p) {
		err = &fs.PathError{Op: "write", Path: d.Name(), Err: syscall.ENOSPC}
	}
	return n, err
}

func TestFullDiskLeavesAWholeJournal(t *testing.T) {
	t.Parallel()
	j, dir := newJournal(t, 2)
	disk := &fullDisk{File: j.file.(*os.File), room: 10}
	j.file = disk
	err := j.Append(KindTrial, "lost")
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "3 records are safe; free some space") {
		t.Errorf("Append on a full disk: %v; want no space left, with the remedy", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || strings.Count(string(data), "\n") != 3 || !strings.HasSuffix(string(data), "\n") {
		t.Errorf("the file does not end with its third record: %q, %v", data, err)
	}
	disk.room = 1 << 20 // space again
	if err := j.Append(KindTrial, "kept"); err != nil {
		t.Fatal(err)
	}
	if _, records, err := Read(dir); err != nil || len(records) != 4 || string(records[3].Data) != `"kept"` {
		t.Errorf("after freeing space: %d records, %v; want 4, the last \"kept\"", len(records), err)
	}
}

// badDisk fails every write and every repair.
type badDisk struct{ *os.File }

func (badDisk) Write([]byte) (int, error) { return 0, syscall.EIO }
func (badDisk) Truncate(int64) error      { return syscall.EIO }

func TestAppendIsRefusedAfterAFailedRepair(t *testing.T) {
	t.Parallel()
	j, _ := newJournal(t, 0)
	good := j.file
	j.file = badDisk{good.(*os.File)}
	if err := j.Append(KindTrial, 1); !errors.Is(err, syscall.EIO) {
		t.Errorf("Append on a bad disk: %v; want EIO", err)
	}
	j.file = good
	if err := j.Append(KindTrial, 2); err == nil {
		t.Error("Append behind a possibly torn line succeeded")
	}
}

func TestAppendRefusesWhatItCannotWrite(t *testing.T) {
	t.Parallel()
	j, dir := newJournal(t, 0)
	if err := j.Append(KindTrial, func() {}); err == nil {
		t.Error("Append of a function succeeded")
	}
	if err := j.Append(KindHeader, sampleHeader()); err == nil {
		t.Error("Append of a second header succeeded")
	}
	if _, records, err := Read(dir); err != nil || len(records) != 1 {
		t.Errorf("%d records, %v; want only the header", len(records), err)
	}
}

// A line is read the same whether it is cut or parsed, and only a line that is JSON is cut.
func TestCutRecordIsWhatParsingGives(t *testing.T) {
	t.Parallel()
	for line, isCut := range map[string]bool{
		`{"seq":2,"at":"2026-11-20T20:00:01Z","kind":"trial","data":{"a":[1,"}"]}}`:       true,
		`{"seq":2,"at":"2026-11-20T20:00:01Z","kind":"trial","data": "x" }`:               true,
		`{"seq":2,"kind":",","data":null}`:                                                true,
		`{"data":1,"seq":2,"kind":"a,\",\"data\":","data":3}`:                             true,
		`{"seq":2,"data":{},"kind":"trial"}`:                                              false,
		`{"kind":"trial","x":{"a":1,"data":2}}`:                                           false,
		`{"seq":"2","kind":"trial","data":{}}`:                                            false,
		`{"seq":2,"kind":"trial","data":5`:                                                false,
		`{"seq":2,"kind":"trial","data":}`:                                                false,
		`{"seq":2,"kind":"trial","data":{"a":1}`:                                          false,
		`{"seq":2},{"kind":"trial","data":{}}`:                                            false,
		`{"seq":2,"at":"2026-11-20T20:00:01Z","kind":"trial","data":{"a":1}} {"data":{}}`: false,
	} {
		var want Record
		err := json.Unmarshal([]byte(line), &want)
		got, ok := cutRecord([]byte(line + "\n"))
		if ok != isCut {
			t.Errorf("%s: cut: %t", line, ok)
		}
		if ok && (err != nil || cmp.Diff(want, got) != "") {
			t.Errorf("%s is cut as %+v, but read as %+v, %v", line, got, want, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	line1, err := encode(1, KindHeader, Header{Format: Format, Spec: SpecFile{Text: "model: x\n"}})
	if err != nil {
		f.Fatal(err)
	}
	line2, err := encode(2, KindTrial, map[string]any{"windows": []int{1, 2}})
	if err != nil {
		f.Fatal(err)
	}
	both := string(line1) + string(line2)
	for _, seed := range []string{"", "\n", "{}\n", string(line1), both, both[:len(both)-3], both + "\n", both + "\x00\x00\x00", both + string(line2)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, records, size, err := decode("journal.jsonl", data)
		if err != nil {
			return
		}
		if size > int64(len(data)) || (size > 0 && data[size-1] != '\n') {
			t.Fatalf("%d whole bytes of %d do not end a line", size, len(data))
		}
		// What was kept reads the same again, and so does what is written from it.
		var again []byte
		for _, r := range records {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			again = append(append(again, line...), '\n')
		}
		for _, text := range [][]byte{data[:size], again} {
			_, got, _, err := decode("journal.jsonl", text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(records, got, cmp.Transformer("compact", compact)); diff != "" {
				t.Fatal("round trip (-want +got):\n" + diff)
			}
		}
	})
}

// compact makes JSON texts comparable that differ in spaces and escapes only.
func compact(raw json.RawMessage) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	return v
}
