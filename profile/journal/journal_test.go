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

	"tuner/internal/durable"
)

// sampleHeader returns a header with every field set.
func sampleHeader() Header {
	return Header{
		Tool:        "1.2.3",
		Created:     time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC),
		Spec:        NewSpecFile("profile.yaml", []byte("model: <a>\n")),
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
	var data struct {
		N int `json:"n"`
	}
	if err := records[2].Decode(&data); err != nil || data.N != 1 {
		t.Errorf("last record has %+v, %v; want n = 1", data, err)
	}
}

// The entries are written with the header, and the numbers continue after them.
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

// Checking whether a folder is free leaves no trace in it.
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

// The file is cut after every byte, as by a crash, and then continued.
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

// badDisk fails every write and every repair.
type badDisk struct{ durable.File }

func (badDisk) Write([]byte) (int, error) { return 0, syscall.EIO }
func (badDisk) Truncate(int64) error      { return syscall.EIO }

func TestAppendIsRefusedAfterAFailedRepair(t *testing.T) {
	t.Parallel()
	j, _ := newJournal(t, 0)
	good := j.file
	j.file = badDisk{good}
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
