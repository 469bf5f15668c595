// Package orttest gives ONNX Runtime to the tests of packages above package ort. They find its library through
// TUNER_ORT_LIBRARY, which `make test` sets; a test that needs it is skipped without. Models go in as this module makes them,
// outputs come back as its tensors.
package orttest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"tuner/ort"
)

// library is the environment variable that names the library of ONNX Runtime.
const library = "TUNER_ORT_LIBRARY"

// The library can be opened once per process, so all tests share it.
var shared = sync.OnceValues(func() (*ort.Runtime, error) { return ort.Open(os.Getenv(library)) })

// Main is for TestMain: it runs the tests, closes the library, and returns the exit code, which is 1 if closing fails.
func Main(m *testing.M) int {
	code := m.Run()
	if os.Getenv(library) == "" {
		return code
	}
	if r, err := shared(); err == nil { // an error is that of every test that asked for the library
		if err := r.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// Runtime is the library; it stays open until Main closes it. The test is skipped if none is named, and fails if the one
// that is named cannot be opened.
func Runtime(t testing.TB) *ort.Runtime {
	t.Helper()
	if os.Getenv(library) == "" {
		t.Skip("needs ONNX Runtime: run 'make test', or set " + library + " to the library's path")
	}
	r, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return r
}
