package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is a fuzz target: a function of the package in a folder.
type target struct {
	folder   string // from the root of the repository, with slashes
	function string
}

// name returns the target's name in the ledger and for -run.
func (t target) name() string { return t.folder + "." + t.function }

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// find returns the fuzz targets below root, in order of their files.
func find(root string) (list []target, err error) {
	files := os.DirFS(root)
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "out" || name == "models"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(files, path)
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			list = append(list, target{filepath.ToSlash(filepath.Dir(path)), string(found[1])})
		}
		return err
	})
	return list, err
}

// fuzz runs the target for a time, with one worker process. An input that fails is an error. Go then
// keeps the input below testdata/fuzz of the package. New inputs are made smaller for a second at
// most, since Go's own minute can take all of a turn.
func (t target) fuzz(ctx context.Context, d time.Duration) (turns, error) {
	cmd := exec.CommandContext(ctx, "go", "-C", t.folder, "test", ".", "-run", "^$", "-fuzz", "^"+t.function+"$",
		"-fuzztime", d.String(), "-fuzzminimizetime", "1s", "-parallel", "1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	got, ran := parseProgress(text.String())
	got.Last = time.Now().UTC().Truncate(24 * time.Hour)
	if err == nil && !ran {
		err = errors.New("go test says nothing of its course")
	}
	if err != nil && ctx.Err() == nil {
		got.Failed++
		return got, fmt.Errorf("%s: %w\n%s", t.name(), err, text.String())
	}
	return got, nil
}

// progress is a line of `go test -fuzz` on its course; the last one counts.
var progress = regexp.MustCompile(`fuzz: elapsed: (\S+), execs: (\d+) .*new interesting: \d+ \(total: (\d+)\)`)

// parseProgress reads the last progress that a run reports. It is false if the run did not begin.
func parseProgress(text string) (got turns, ran bool) {
	lines := progress.FindAllStringSubmatch(text, -1)
	if len(lines) == 0 {
		return turns{}, false
	}
	last := lines[len(lines)-1]
	elapsed, err := time.ParseDuration(last[1])
	got.Time = elapsed
	got.Executions, _ = strconv.ParseInt(last[2], 10, 64) // digits
	got.Corpus, _ = strconv.ParseInt(last[3], 10, 64)
	return got, err == nil
}
