package ort

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// With thread pools of the runtime, sessions start no threads, whatever their own numbers say. The
// runtime of this process has none, so children open the library again. A session of 100 threads
// starts 99 beside its caller, and so do pools of 100; Go starts a dozen itself.
func TestGlobalThreads(t *testing.T) {
	if mode := os.Getenv("TUNER_TEST_THREADS"); mode != "" {
		countThreads(t, mode)
		return
	}
	t.Parallel()
	testRuntime(t)
	const many = 90
	for mode, want := range map[string][2]bool{"own": {false, true}, "global": {true, false}} {
		child := exec.Command(os.Args[0], "-test.run=^TestGlobalThreads$", "-test.v")
		child.Env = append(os.Environ(), "TUNER_TEST_THREADS="+mode)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, out)
		}
		_, counts, _ := strings.Cut(string(out), "threads: ")
		var opened, made int
		if _, err := fmt.Sscanf(counts, "%d %d", &opened, &made); err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, out)
		}
		if got := [2]bool{opened > many, made > many}; got != want {
			t.Errorf("%s: opening started %d threads and a session %d; over %d: %v, want %v", mode, opened, made, many, got, want)
		}
	}
}

// countThreads prints how many threads are started with the library, and with a session that runs.
func countThreads(t *testing.T, mode string) {
	var threads *GlobalThreads
	if mode == "global" {
		threads = &GlobalThreads{IntraOp: 100}
	}
	before := running(t)
	r, err := OpenWith(os.Getenv("TUNER_ORT_LIBRARY"), threads)
	if err != nil {
		t.Fatal(err)
	}
	opened := running(t)
	s, err := r.NewSession(model("add_sub"), SessionOptions{Settings: map[string]string{"intra_op_threads": "100"}})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("threads:", opened-before, running(t)-opened)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// running returns the number of this process's threads.
func running(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("threads can be counted on Linux only")
	}
	_, rest, _ := strings.Cut(string(status), "Threads:")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
