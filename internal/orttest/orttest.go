// Package orttest provides ONNX Runtime to the tests of packages above package ort.
// TUNER_ORT_LIBRARY names its library, which `make test` sets. Without it, tests that need it are
// skipped. Models and tensors have this module's types.
package orttest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"tuner/ort"
)

// library is the environment variable with the path of ONNX Runtime's library.
const library = "TUNER_ORT_LIBRARY"

// The library can be opened once per process, so all tests share it.
var shared = sync.OnceValues(func() (*ort.Runtime, error) { return ort.Open(os.Getenv(library)) })

// Main is for TestMain. It runs the tests, closes the library, and returns the exit code, which is
// 1 if closing fails.
func Main(m *testing.M) int {
	code := m.Run()
	if os.Getenv(library) == "" {
		return code
	}
	if r, err := shared(); err == nil { // tests that need the library report an error
		if err := r.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// Runtime returns the library, which stays open until Main closes it. It skips the test if no
// library is named. The test fails if the library cannot be opened.
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
