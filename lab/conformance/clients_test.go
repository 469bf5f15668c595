//go:build conformance

package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/lab/peers"
)

// TestClients runs a program that uses much of tritonclient on both servers. It must print the
// same.
func TestClients(t *testing.T) {
	p := newPair(t, newRepository(t, "explicit"), "--model-control-mode=explicit", "--load-model=*")
	model, err := modelFile("any_shape", "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(file, model, 0o644); err != nil {
		t.Fatal(err)
	}
	python := find(t).Python
	run := func(t *testing.T, protocol string, server *peers.Server) []string {
		t.Helper()
		address := server.HTTP
		if protocol == "grpc" {
			address = server.GRPC
		}
		return strings.Split(runTool(t, "", python, "testdata/clients.py", protocol, address, file), "\n")
	}
	for _, protocol := range []string{"http", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			want := run(t, protocol, p.triton)
			if diff := cmp.Diff(want, run(t, protocol, p.tuner)); diff != "" {
				t.Errorf("the program does not print the same (-Triton +tuner):\n%s", diff)
			}
			t.Logf("%d lines", len(want))
		})
	}
}
