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

// toWrite is how many trials a faulty campaign has.
const toWrite = 3

// carryOn is a run of a campaign on a disk: it creates the journal or goes on with it, and writes the trials that are missing. It returns how many it
// was told are written.
func carryOn(disk *faulty.Disk, dir string) (told int, err error) {
	j, err := On(disk).Create(dir, sampleHeader(), Entry{KindSession, Session{}})
	if errors.Is(err, fs.ErrExist) {
		var records []Record
		if j, records, err = On(disk).Open(dir); err == nil {
			told = len(records) - 2 // header and session
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

// checkKept verifies that a journal is whole and has at least as many trials as somebody was told of, in order, and one more at most.
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

// checkAlone verifies that nothing lies in a campaign's folder but journal and lock.
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

// Whatever fails at whatever operation of a campaign, nothing is lost but the record that is being written, and the next run goes on to the same end.
func TestEveryFaultAtEveryOperation(t *testing.T) {
	t.Parallel()
	for _, fault := range faulty.All() {
		for at := 1; ; at++ {
			what := fmt.Sprintf("%v at operation %d", fault, at)
			dir := t.TempDir()
			disk := &faulty.Disk{At: at, Fault: fault}
			told, err := carryOn(disk, dir)
			if disk.Operations() < at { // it was not reached
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

// killVariable names the folder and the operation at which the process of a test ends as by kill -9.
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

// The same of processes that are killed: the lock goes with them, and the next run goes on. The test is not parallel: a child has the locks of all
// tests between fork and exec.
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

// A real file system of 64 KiB fills up: the error says what to do, and after some space was freed the same journal goes on.
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
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), fmt.Sprintf("(%d records are safe; free some space and run the same command again to go on)", n+1)) {
		t.Errorf("after %d trials: %v", n, err)
	}
	if _, records, err := Read(dir); err != nil || len(records) != n+1 {
		t.Errorf("%d records, %v; want %d", len(records), err, n+1)
	}
	if err := j.Append(KindTrial, "small"); err != nil { // it fits into what was given back
		t.Error(err)
	}
}

// Nothing can be begun where there is no space at all, and nothing lies there afterwards but the lock.
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

// A disk that cannot be written is told by its name, and what is there can be read.
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
