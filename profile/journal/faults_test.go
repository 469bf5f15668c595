package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tuner/internal/durable/faulty"
)

// toWrite is the number of trials in a faulty campaign.
const toWrite = 3

// carryOn runs a campaign on a disk: it creates or resumes the journal, and writes the missing
// trials. It returns the number of trials whose writing was confirmed.
func carryOn(disk *faulty.Disk, dir string) (told int, err error) {
	j, err := On(disk).Create(dir, sampleHeader(), Entry{KindSession, Session{}})
	if errors.Is(err, fs.ErrExist) {
		var records []Record
		if j, records, err = On(disk).Open(dir); err == nil {
			told = len(records) - 2 // without header and session
		}
	}
	if err != nil {
		return told, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for told < toWrite {
		if err := j.Append(KindTrial, told); err != nil {
			return told, err
		}
		told++
	}
	return told, nil
}

// checkKept verifies that a journal is complete and has its trials in order: at least the confirmed
// ones, and at most one more.
func checkKept(t *testing.T, what, dir string, told int) {
	t.Helper()
	_, records, err := Read(dir)
	if errors.Is(err, fs.ErrNotExist) && told == 0 {
		return
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	trials := len(records) - 2
	if trials < told || trials > told+1 {
		t.Errorf("%s: it has %d trials, %d were said to be written", what, trials, told)
	}
	for i, r := range records[2:] {
		if string(r.Data) != strconv.Itoa(i) {
			t.Errorf("%s: trial %d is %s", what, i, r.Data)
		}
	}
}

// checkAlone verifies that a campaign's folder has only journal and lock.
func checkAlone(t *testing.T, what, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != FileName && e.Name() != lockName {
			t.Errorf("%s: %s is left", what, e.Name())
		}
	}
}

// If any operation of a campaign fails in any way, at most the record that is being written is
// lost. The next run completes the campaign with the same result.
func TestEveryFaultAtEveryOperation(t *testing.T) {
	t.Parallel()
	for _, fault := range faulty.All() {
		for at := 1; ; at++ {
			what := fmt.Sprintf("%v at operation %d", fault, at)
			dir := t.TempDir()
			disk := &faulty.Disk{At: at, Fault: fault}
			told, err := carryOn(disk, dir)
			if disk.Operations() < at { // the operation was not reached
				if err != nil || at < 2*toWrite {
					t.Errorf("%v: a campaign of %d operations ends with %v", fault, at-1, err)
				}
				break
			}
			checkKept(t, what, dir, told)
			if told, err := carryOn(&faulty.Disk{}, dir); err != nil || told != toWrite {
				t.Errorf("%s: the next run ends after %d trials with %v", what, told, err)
			}
			checkKept(t, what, dir, toWrite)
			checkAlone(t, what, dir)
		}
	}
}

// killVariable names the folder, and the operation at which the test's process ends as by kill -9.
const killVariable = "TUNER_TEST_KILL"

// TestKilled is the process that TestKilledAtEveryOperation starts.
func TestKilled(t *testing.T) {
	dir, at, isChild := strings.Cut(os.Getenv(killVariable), "=")
	if !isChild {
		t.Skip("is started by another test")
	}
	n, err := strconv.Atoi(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := carryOn(&faulty.Disk{At: n, Fault: faulty.Kill}, dir); err != nil {
		t.Fatal(err)
	}
}

// The same holds for killed processes: the kernel releases the lock, and the next run resumes. The
// test is not parallel, since a child holds the locks of all tests between fork and exec.
func TestKilledAtEveryOperation(t *testing.T) {
	for at := 1; ; at++ {
		what := fmt.Sprintf("kill -9 at operation %d", at)
		dir := filepath.Join(t.TempDir(), "out")
		child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), killVariable+"="+dir+"="+strconv.Itoa(at))
		out, err := child.CombinedOutput()
		if err == nil {
			if at < 2*toWrite {
				t.Errorf("a campaign of %d operations: %s", at-1, out)
			}
			return
		}
		if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("%s: %v\n%s", what, err, out)
		}
		_, records, err := Read(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
		checkKept(t, what, dir, max(0, len(records)-2))
		if told, err := carryOn(&faulty.Disk{}, dir); err != nil || told != toWrite {
			t.Errorf("%s: the next run ends after %d trials with %v", what, told, err)
		}
		checkAlone(t, what, dir)
	}
}

// A real file system of 64 KiB fills up. The error has a remedy. After some space was freed, the
// same journal continues.
func TestTinyDisk(t *testing.T) {
	t.Parallel()
	dir := faulty.Tiny(t)
	j, err := Create(dir, sampleHeader())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	large := strings.Repeat("x", 10_000)
	n := 0
	for err == nil {
		if err = j.Append(KindTrial, large); err == nil {
			n++
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), fmt.Sprintf("(%d records are safe; free some space and run the same command again to resume)", n+1)) {
		t.Errorf("after %d trials: %v", n, err)
	}
	if _, records, err := Read(dir); err != nil || len(records) != n+1 {
		t.Errorf("%d records, %v; want %d", len(records), err, n+1)
	}
	if err := j.Append(KindTrial, "small"); err != nil { // it fits into the freed space
		t.Error(err)
	}
}

// Without any space nothing can be begun, and afterwards there is only the lock.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := faulty.Tiny(t)
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 64<<10), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if _, err := Create(dir, sampleHeader()); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "cannot create journal") {
		t.Errorf("on a full disk: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "large")); err != nil {
		t.Fatal(err)
	}
	checkAlone(t, "full disk", dir)
	if _, err := os.Stat(filepath.Join(dir, FileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal was begun: %v", err)
	}
}

// The error names a disk that cannot be written. Existing files can be read.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := faulty.ReadOnly(t, func(dir string) {
		j, err := Create(dir, sampleHeader())
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if _, _, err := Open(dir); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "cannot open journal") {
		t.Errorf("Open: %v", err)
	}
	if _, err := Create(filepath.Join(dir, "new"), sampleHeader()); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "cannot create journal") {
		t.Errorf("Create: %v", err)
	}
	if _, records, err := Read(dir); err != nil || len(records) != 1 {
		t.Errorf("%d records, %v; want the header", len(records), err)
	}
}
