package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"tuner/internal/durable"
)

// A file that many read and write under the lock loses no write. No lock file remains.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "counter")
	increment := func() error {
		unlock, err := durable.Lock(path)
		if err != nil {
			return err
		}
		defer unlock()
		text, _ := os.ReadFile(path) // it does not exist at first
		n, _ := strconv.Atoi(string(text))
		return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
	}
	const writers, times = 8, 25
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range times {
				if err := increment(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	if text, err := os.ReadFile(path); err != nil || string(text) != strconv.Itoa(writers*times) {
		t.Errorf("counted to %q, %v; want %d", text, err, writers*times)
	}
	checkEntries(t, path)
}

func TestLockInNoFolder(t *testing.T) {
	t.Parallel()
	if _, err := durable.Lock(filepath.Join(t.TempDir(), "none", "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that there is no such folder", err)
	}
}

func TestTryLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.TryLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a second lock: %v, want ErrLocked", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := durable.TryLock(path)
	if err != nil {
		t.Fatal("after closing:", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// The lock of a folder has one holder until it is released. A missing folder has no lock.
func TestTryLockFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		lock, err := durable.TryLockFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := durable.TryLockFolder(dir); !errors.Is(err, durable.ErrLocked) {
			t.Errorf("second lock: got %v, want %v", err, durable.ErrLocked)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.TryLockFolder(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder that is gone: got %v, want %v", err, fs.ErrNotExist)
	}
}

// A program that is just being started has this process's files until its own code is loaded. A lock that
// was given back does not wait for it.
func TestUnlockEndsSharedLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	if err := durable.Unlock(f); err != nil {
		t.Fatal(err)
	}
	again, err := durable.TryLock(path)
	if err != nil {
		t.Fatalf("it is still locked: %v", err)
	}
	if err := durable.Unlock(again); err != nil {
		t.Error(err)
	}
}
