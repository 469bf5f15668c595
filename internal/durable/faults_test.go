package durable_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tuner/internal/durable"
	"tuner/internal/durable/faulty"
)

// After any failure at any step, the file has the complete earlier or the complete new text. Beside
// it there is nothing, or, for a process that has ended, a file that Sweep removes.
func TestWriteFileAtEveryFault(t *testing.T) {
	t.Parallel()
	const before, after = "the earlier text", "the new text, which is longer"
	for _, fault := range faulty.All() {
		for at := 1; ; at++ {
			path := filepath.Join(t.TempDir(), "file[1]")
			if err := durable.WriteFile(path, durable.Bytes([]byte(before))); err != nil {
				t.Fatal(err)
			}
			disk := &faulty.Disk{At: at, Fault: fault}
			err := durable.WriteFileOn(disk, path, durable.Bytes([]byte(after)))
			got, readErr := os.ReadFile(path)
			if text := string(got); readErr != nil || text != before && text != after || err == nil && text != after {
				t.Errorf("%v at step %d (%v): the file holds %q, %v", fault, at, err, got, readErr)
			}
			if errors.Is(err, faulty.ErrGone) {
				durable.Sweep(path)
			}
			// If a disk fails once while the temporary file is removed, the file stays. Sweep
			// removes it later.
			if fault != faulty.IOError && fault != faulty.Short || err == nil {
				checkEntries(t, path)
			}
			if err == nil && disk.Operations() < at {
				if at < 6 {
					t.Errorf("%v: only %d steps were seen", fault, at-1)
				}
				break
			}
		}
	}
}

// Sweep does not remove files that WriteFile did not begin, nor anything but a file.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a*")
	kept := []string{
		".a*.0123456", ".a*.123456.7654321", ".a*.12345", ".a*.123456~", ".a*.2024-05-01", ".a*.3kQz9a", ".a*.4294967296", ".a*.lock",
		".ab.3333333", "a*", "a*.4444444",
	}
	for _, name := range append([]string{".a*.123456", ".a*.4294967295"}, kept...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const folder, fifo, link = ".a*.5000001", ".a*.5000002", ".a*.5000003"
	kept = append(kept, folder, fifo, link)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, folder), 0o700), syscall.Mkfifo(filepath.Join(dir, fifo), 0o600),
		os.Symlink("a*", filepath.Join(dir, link))); err != nil {
		t.Fatal(err)
	}
	durable.Sweep(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	slices.Sort(kept)
	if !slices.Equal(left, kept) {
		t.Errorf("left is %q, want %q", left, kept)
	}
}

// A writer leaves the temporary file of another one alone, for the same file.
func TestWritersAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	staged, err := durable.Stage(path, durable.Bytes([]byte("staged")))
	if err != nil {
		t.Fatal(err)
	}
	err = durable.WriteFile(path, func(w io.Writer) error {
		return errors.Join(durable.WriteFile(path, durable.Bytes([]byte("inner"))), durable.Bytes([]byte("outer"))(w))
	})
	if text, readErr := os.ReadFile(path); err != nil || readErr != nil || string(text) != "outer" {
		t.Errorf("the outer writer: %q, %v, %v", text, err, readErr)
	}
	err = errors.Join(staged.Commit(), staged.Drop())
	if text, readErr := os.ReadFile(path); err != nil || readErr != nil || string(text) != "staged" {
		t.Errorf("the staged file: %q, %v, %v", text, err, readErr)
	}
	checkEntries(t, path)
}

// killVariable has the file that the process of TestKilledWriter writes, and the operation at which
// it is killed.
const killVariable = "TUNER_TEST_KILLED_WRITER"

// TestKilledWriter is the process that TestLeftoversOfKilledWriters starts.
func TestKilledWriter(t *testing.T) {
	path, at, isChild := strings.Cut(os.Getenv(killVariable), "=")
	if !isChild {
		t.Skip("is started by another test")
	}
	n, err := strconv.Atoi(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFileOn(&faulty.Disk{At: n, Fault: faulty.Kill}, path, durable.Bytes([]byte("killed"))); err != nil {
		t.Fatal(err)
	}
}

// The next writer of a file removes what a writer left that was killed by kill -9 at any operation.
func TestLeftoversOfKilledWriters(t *testing.T) {
	t.Parallel()
	left := 0
	for at := 1; ; at++ {
		path := filepath.Join(t.TempDir(), "file[1]")
		child := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
		child.Env = append(os.Environ(), killVariable+"="+path+"="+strconv.Itoa(at))
		out, err := child.CombinedOutput()
		if err == nil {
			break
		}
		if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("killed at operation %d: %v\n%s", at, err, out)
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				left++
			}
		}
		if err := durable.WriteFile(path, durable.Bytes([]byte("later"))); err != nil {
			t.Error(err)
		}
		checkEntries(t, path)
	}
	if left == 0 {
		t.Error("no killed writer left anything, so nothing was tested")
	}
}

// On a real file system of 64 KiB, a file that does not fit leaves the earlier one and no temporary
// file.
func TestWriteFileOnATinyDisk(t *testing.T) {
	t.Parallel()
	dir := faulty.Tiny(t)
	path := filepath.Join(dir, "file")
	if err := durable.WriteFile(path, durable.Bytes([]byte("kept"))); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(path, durable.Bytes(make([]byte, 1<<20))); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a megabyte: %v; want no space left", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "kept" {
		t.Errorf("the file holds %d bytes, %v; want the earlier text", len(got), err)
	}
	checkEntries(t, path)
}
