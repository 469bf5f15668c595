//go:build conformance

package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/lab/peers"
	"tuner/runner/wire"
)

// newTriton starts a real Triton on one of the repositories of testdata.
func newTriton(t *testing.T, repository string) *peers.Server {
	t.Helper()
	server, err := find(t).StartTriton(t.Context(), newRepository(t, repository))
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, server)
	return server
}

// tunerPerfRuns are options that tuner perf and perf_analyzer share.
var tunerPerfRuns = []struct{ name, args string }{
	{"Triton's optimization guide", "-m simple --percentile=95 --concurrency-range 1:2"},
	{"gRPC", "-m simple -i grpc --concurrency-range 2"},
	{"gRPC, streaming", "-m simple -i grpc --streaming --concurrency-range 2"},
	{"request rate", "-m simple --request-rate-range 50:100:50"},
	{"JSON tensors", "-m simple --input-tensor-format json --output-tensor-format json"},
	{"an ensemble", "-m chain --concurrency-range 2"},
	{"an ensemble over gRPC", "-m chain -i grpc --concurrency-range 2"},
	{"models that are named", "-m chain --bls-composing-models simple:1,simple_versions:1"},
}

// TestTunerPerf runs tuner perf beside the real perf_analyzer on a real Triton. tuner perf prints
// and writes the same as perf_analyzer, apart from the numbers.
func TestTunerPerf(t *testing.T) {
	server := newTriton(t, "ensemble")
	for _, run := range tunerPerfRuns {
		t.Run(run.name, func(t *testing.T) {
			address := server.HTTP
			if strings.Contains(run.args, "-i grpc") {
				address = server.GRPC
			}
			args := append(strings.Fields(run.args), "-u", address, "-s", "999", "-p", "400", "-f", "result.csv", "--verbose-csv")
			theirs, ours := t.TempDir(), t.TempDir()
			want := forms(runTool(t, theirs, find(t).PerfAnalyzer, args...))
			got := forms(runTool(t, ours, environment(t, "TUNER_BINARY"), append([]string{"perf"}, args...)...))
			rest := got
			for _, line := range want {
				i := slices.Index(rest, line)
				if i < 0 {
					t.Fatalf("the line %q of perf_analyzer is not there, or not in its place:\n%s", line, cmp.Diff(want, got))
				}
				rest = rest[i+1:]
			}
			if diff := cmp.Diff(headers(t, theirs), headers(t, ours)); diff != "" {
				t.Errorf("files and their headers (-perf_analyzer +tuner):\n%s", diff)
			}
		})
	}
}

var figure = regexp.MustCompile(`[0-9][0-9.e+]*`)

// forms returns a text's lines without their numbers. It drops perf_analyzer's own lines about its
// threads, the length of a window and wasted time.
func forms(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = figure.ReplaceAllString(strings.TrimRight(line, " \n"), "N")
		if line != "" && !strings.Contains(line, "WARNING") && !strings.Contains(line, "Minimum number of samples") {
			lines = append(lines, line)
		}
	}
	return lines
}

// headers returns the first lines of the files in a folder, by name.
func headers(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := bytes.Cut(text, []byte("\n"))
		if len(bytes.TrimSpace(rest)) == 0 {
			t.Errorf("%s has no row:\n%s", file.Name(), text)
		}
		found[file.Name()] = string(first)
	}
	return found
}

// int32Tensor makes a tensor [1, n] of the numbers from first on, with a step.
func int32Tensor(name string, n, first, step int) api.Tensor {
	data := make([]byte, 0, 4*n)
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, uint32(int32(first+step*i)))
	}
	return api.Tensor{Name: name, Datatype: "INT32", Shape: []int64{1, int64(n)}, Data: data}
}

// TestWire sends requests over the load generator's own connections, in all forms, and compares the
// answers with the right ones.
func TestWire(t *testing.T) {
	server := newTriton(t, "ensemble")
	request := api.InferRequest{Model: "simple", Inputs: []api.Tensor{int32Tensor("INPUT0", 16, 100, 3), int32Tensor("INPUT1", 16, 7, 1)}}
	right := []api.Tensor{int32Tensor("OUTPUT0", 16, 107, 4), int32Tensor("OUTPUT1", 16, 93, 2)}
	wrong := []api.Tensor{int32Tensor("OUTPUT1", 16, 93, 2), int32Tensor("OUTPUT0", 16, 107, 5)}
	unknown := request
	unknown.Model = "nosuch"
	for name, c := range map[string]struct {
		options wire.Options
		format  wire.Format
	}{
		"HTTP":               {wire.Options{Address: server.HTTP}, wire.Format{}},
		"HTTP, JSON inputs":  {wire.Options{Address: server.HTTP}, wire.Format{JSONInputs: true}},
		"HTTP, JSON outputs": {wire.Options{Address: server.HTTP}, wire.Format{JSONOutputs: true}},
		"HTTP, all JSON":     {wire.Options{Address: server.HTTP, Headers: []wire.Header{{Name: "X-Test", Value: "1"}}}, wire.Format{JSONInputs: true, JSONOutputs: true}},
		"gRPC":               {wire.Options{Address: server.GRPC, Protocol: wire.GRPC}, wire.Format{}},
		"gRPC, shared":       {wire.Options{Address: server.GRPC, Protocol: wire.GRPC, Share: 4}, wire.Format{}},
		"gRPC, gzip":         {wire.Options{Address: server.GRPC, Protocol: wire.GRPC, Compression: "gzip"}, wire.Format{}},
		"gRPC, deflate":      {wire.Options{Address: server.GRPC, Protocol: wire.GRPC, Compression: "deflate"}, wire.Format{}},
		"gRPC, stream":       {wire.Options{Address: server.GRPC, Protocol: wire.GRPCStream}, wire.Format{}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := wire.Dial(t.Context(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ask := func(r api.InferRequest, expected []api.Tensor) error {
				t.Helper()
				p, err := wire.Prepare(c.options, r, c.format, expected)
				if err != nil {
					t.Fatal(err)
				}
				for slot := range conn.Slots() {
					conn.Send(slot, p)
				}
				var failed error
				for left := conn.Slots(); left > 0; {
					_, final, _, err := conn.Receive()
					if failed == nil {
						failed = err
					}
					if final {
						left--
					}
				}
				return failed
			}
			for range 3 { // a connection stays usable after answers of all kinds
				if err := errors.Join(ask(request, right), ask(request, nil)); err != nil {
					t.Error(err)
				}
				var mismatch *wire.MismatchError
				if err := ask(request, wrong); !errors.As(err, &mismatch) || mismatch.Output != "OUTPUT0" || mismatch.Element != 1 {
					t.Errorf("a wrong output: %v", err)
				}
				var status *api.StatusError
				if err := ask(unknown, nil); !errors.As(err, &status) || !strings.Contains(status.Text, "unknown model: 'nosuch'") {
					t.Errorf("an unknown model: %v", err)
				}
				if conn.Broken() {
					t.Fatal("the connection is broken")
				}
			}
		})
	}
}
