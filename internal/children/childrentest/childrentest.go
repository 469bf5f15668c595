// Package childrentest checks that programs which a package starts end with the process that
// started them.
package childrentest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tuner/internal/children"
)

// helper is the variable that makes a test binary the process to be killed. It contains the test,
// and a file for process numbers.
const helper = "TUNER_CHILDREN_HELPER"

// script returns a shell script. It starts a child, writes its own number and the child's to the
// file, and waits.
func script(file string) string {
	return fmt.Sprintf(`sleep 1000 & echo $$ $! > '%[1]s.new' && mv '%[1]s.new' '%[1]s'; wait; :`, file)
}

// CheckKilled starts the running test again in its own process. There, start runs a shell script
// and waits. CheckKilled then kills that process, and checks that the shell and its child have
// ended.
func CheckKilled(t *testing.T, start func(script string)) {
	t.Helper()
	if file := os.Getenv(helper); file != "" {
		start(script(file))
		return
	}
	dir := t.TempDir() // also has the process's own temporary folders
	file := filepath.Join(dir, "pids")
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), helper+"="+file, "TMPDIR="+dir)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pids := readNumbers(t, file)
	awaitGuard(t, pids[0])
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	for _, pid := range pids {
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
	for deadline := time.Now().Add(patience); isAny(pids); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("of the processes %v some still run", pids)
		}
	}
}

const (
	pause    = 10 * time.Millisecond
	patience = 30 * time.Second // for a busy machine; a test that fails uses all of it
)

// readNumbers waits for the file and reads it.
func readNumbers(t *testing.T, file string) []int {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		text, err := os.ReadFile(file)
		if err != nil {
			if time.Now().After(deadline) {
				t.Fatal("the program did not start")
			}
			continue
		}
		var pids []int
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
}

// awaitGuard waits until the group of a process has its guard, which starts later. It does not wait
// if processes cannot be listed.
func awaitGuard(t *testing.T, group int) {
	t.Helper()
	guard := []byte(fmt.Sprintf("%s\x00%d\x00", children.GuardName, group))
	isGuarded := func() bool {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		return err != nil || len(lines) == 0 || slices.ContainsFunc(lines, func(path string) bool {
			line, _ := os.ReadFile(path) // the process may have ended
			return bytes.HasSuffix(line, guard)
		})
	}
	for deadline := time.Now().Add(patience); !isGuarded(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("the program %d has no guard", group)
		}
	}
}

// isAny reports whether one of the processes still runs.
func isAny(pids []int) bool {
	for _, pid := range pids {
		if isRunning(pid) {
			return true
		}
	}
	return false
}

// isRunning reports whether a process runs. A zombie does not.
func isRunning(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !hasProc()
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	_, rest, _ := strings.Cut(line, ") ")
	return !strings.HasPrefix(rest, "Z")
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
