package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tuner/internal/durable"
)

// A link that the user names stays. What it leads to is replaced, whether that is there or not.
func TestWriteNamedFollowsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.MkdirAll(at("far/away"), 0o700), os.Mkdir(at("near"), 0o700), os.WriteFile(at("far/file"), []byte("before"), 0o600),
		os.Symlink("../far/away", at("near/folder")),
		os.Symlink("../file", at("far/away/up")),         // read by near/folder/up it leads to far/file, not to near/file
		os.Symlink("folder/../file", at("near/down")),    // the same
		os.Symlink(at("near/down"), at("near/absolute")), // two in a row
		os.Symlink("nothing yet", at("near/dangling")))
	if err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"near/folder/up": "far/file", "near/down": "far/file", "near/absolute": "far/file", "near/dangling": "near/nothing yet",
	} {
		if err := durable.WriteNamed(at(link), durable.Bytes([]byte(link))); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(at(target)); err != nil || string(got) != link {
			t.Errorf("%s: %s holds %q, %v", link, target, got, err)
		}
		if info, err := os.Lstat(at(link)); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("%s is no link any more: %v, %v", link, info, err)
		}
	}
	for folder, want := range map[string]int{"near": 5, "far": 2, "far/away": 1} { // and no temporary file
		if entries, err := os.ReadDir(at(folder)); err != nil || len(entries) != want {
			t.Errorf("%s holds %v, %v", folder, entries, err)
		}
	}
	if err := errors.Join(os.Symlink("circle", at("circle")), os.Symlink("/proc/none", at("proc"))); err != nil {
		t.Fatal(err)
	}
	for path, isWritable := range map[string]bool{"near/down": true, "near/dangling": true, "new": true, "circle": false, "proc": false, "near": false} {
		if err := durable.CheckNamed(at(path)); (err == nil) != isWritable {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := durable.WriteNamed(at("circle"), durable.Bytes(nil)); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
	if err := durable.WriteNamed(at("plain"), durable.Bytes([]byte("text"))); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(at("plain")); err != nil || string(got) != "text" {
		t.Errorf("a new file holds %q, %v", got, err)
	}
}

// A pipe stands for devices, such as /dev/null, which root could replace: it is written to, and stays.
func TestWriteNamedKeepsDevices(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("pipe", link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link} {
		if err := durable.CheckNamed(path); err != nil { // opening it would wait for a reader
			t.Errorf("%s cannot be written: %v", path, err)
		}
		read := make(chan string)
		go func() {
			text, _ := os.ReadFile(pipe)
			read <- string(text)
		}()
		if err := durable.WriteNamed(path, durable.Bytes([]byte("text"))); err != nil {
			t.Fatal(err)
		}
		if got := <-read; got != "text" {
			t.Errorf("%s: the reader got %q", path, got)
		}
		if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			t.Fatalf("the pipe is %v, %v", info, err)
		}
	}
}
