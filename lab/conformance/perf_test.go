//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tuner/lab/peers"
)

// toolTime is the longest time of one run of one of Triton's tools.
const toolTime = 5 * time.Minute

// runTool runs a program to its end and returns its output. If the program fails, the test fails.
func runTool(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var output bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &output, &output, time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, output.String())
	}
	return output.String()
}

// newTuner starts our engine on one of the repositories of testdata.
func newTuner(t *testing.T, repository string, args ...string) *peers.Server {
	t.Helper()
	server, err := find(t).StartTuner(t.Context(), environment(t, "TUNER_BINARY"), newRepository(t, repository), args...)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, server)
	return server
}

// tokens sets the length of MiniLM's inputs, which is symbolic in its file.
const tokens = " --shape input_ids:32 --shape attention_mask:32 --shape token_type_ids:32"

// perfRuns are options of perf_analyzer, by the tested feature. Windows are short, since the runs
// test the answers and not the speed.
var perfRuns = []struct{ name, args string }{
	{"HTTP, synchronous", "-m simple -i http --concurrency-range 1:2"},
	{"HTTP, asynchronous", "-m simple -i http --async --concurrency-range 4"},
	{"gRPC, synchronous", "-m simple -i grpc --concurrency-range 1:2"},
	{"gRPC, asynchronous", "-m simple -i grpc --async --concurrency-range 4"},
	{"gRPC, streaming", "-m simple -i grpc --streaming --concurrency-range 4"},
	{"gRPC, compressed", "-m simple -i grpc --grpc-compression-algorithm gzip"},
	{"request rate over HTTP", "-m simple -i http --request-rate-range 50:100:50"},
	{"request rate over gRPC, Poisson", "-m simple -i grpc --async --request-rate-range 100 --request-distribution poisson"},
	{"batches over HTTP", "-m simple -i http -b 4"},
	{"batches over gRPC", "-m simple -i grpc -b 4"},
	{"percentile", "-m simple -i grpc --percentile 95"},
	{"binary search for a latency", "-m simple -i grpc --concurrency-range 1:4 --binary-search -l 1000"},
	{"windows of a number of requests", "-m simple -i http --measurement-mode count_windows --measurement-request-count 50"},
	{"a fixed number of requests", "-m simple -i grpc --request-count 40"},
	{"JSON tensors", "-m simple -i http --input-tensor-format json --output-tensor-format json"},
	{"input data", "-m simple -i http --input-data testdata/perf_analyzer.json"},
	{"input data over gRPC", "-m simple -i grpc --input-data testdata/perf_analyzer.json"},
	{"strings", "-m identity_string -i grpc --shape INPUT0:4 --string-length 20"},
	{"strings over HTTP", "-m identity_string -i http --shape INPUT0:4 --string-data hello"},
	{"a version", "-m simple_versions -x 1 -i http"},
	{"no batching", "-m simple_no_batching -i grpc --shape INPUT0:2,16 --shape INPUT1:2,16"},
	{"request parameters", "-m simple_priorities -i grpc --request-parameter priority:1:int"},
	{"metrics", "-m simple -i grpc --collect-metrics --metrics-interval 200 --metrics-url METRICS"},
	{"shared memory over HTTP", "-m simple -i http --async --concurrency-range 4 -b 2 --shared-memory system --output-shared-memory-size 128"},
	{"shared memory over gRPC", "-m simple -i grpc --concurrency-range 2 --shared-memory system --output-shared-memory-size 64"},
	{"shared memory over gRPC, streaming, strings", "-m identity_string -i grpc --streaming --shape INPUT0:4 --string-length 20 --shared-memory system --output-shared-memory-size 96"},
	{"MiniLM over HTTP", "-m minilm -i http --input-data zero --concurrency-range 8 --async" + tokens},
	{"MiniLM over gRPC", "-m minilm -i grpc --input-data zero --concurrency-range 8 -b 2" + tokens},
}

var throughput = regexp.MustCompile(`Throughput: ([0-9.]+) infer/sec`)

func TestPerfAnalyzer(t *testing.T) {
	server := newTuner(t, "explicit", "--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true")
	program := find(t).PerfAnalyzer
	for _, run := range perfRuns {
		t.Run(run.name, func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(run.args, "METRICS", "http://"+server.Metrics+"/metrics"))
			address := server.HTTP
			if strings.Contains(run.args, "-i grpc") {
				address = server.GRPC
			}
			csv := filepath.Join(t.TempDir(), "result.csv")
			args = append(args, "-u", address, "-s", "999", "-r", "10", "-f", csv, "--verbose-csv")
			if !strings.Contains(run.args, "-count") {
				args = append(args, "-p", "400")
			}
			output := runTool(t, "", program, args...)
			found := throughput.FindStringSubmatch(output)
			if found == nil || strings.Trim(found[1], "0.") == "" {
				t.Errorf("no throughput:\n%s", output)
			}
			// The second part of the report comes from the server's statistics.
			for _, want := range []string{"Inference count: ", "queue ", "compute infer "} {
				if !strings.Contains(output, want) {
					t.Errorf("the report has no %q:\n%s", want, output)
				}
			}
			if data, err := os.ReadFile(csv); err != nil || bytes.Count(data, []byte("\n")) < 2 {
				t.Errorf("no results in the file: %v\n%s", err, data)
			}
		})
	}
	noFailures(t, server)
}

// The report on an ensemble has the figures of the models that it consists of.
func TestPerfAnalyzerEnsemble(t *testing.T) {
	server := newTuner(t, "ensemble")
	for protocol, address := range map[string]string{"http": server.HTTP, "grpc": server.GRPC} {
		output := runTool(t, "", find(t).PerfAnalyzer, "-m", "chain", "-i", protocol, "-u", address, "--concurrency-range", "2", "-s", "999", "-r", "10", "-p", "400")
		_, composing, found := strings.Cut(output, "Composing models:")
		if !found || !strings.Contains(composing, "simple, version: 1") || !strings.Contains(composing, "simple_versions, version: 1") ||
			strings.Count(composing, "Inference count: ") != 2 || strings.Contains(composing, "Inference count: 0\n") {
			t.Errorf("the report over %s lacks the composing models:\n%s", protocol, output)
		}
	}
	noFailures(t, server)
}

// noFailures checks that no request of a tool has failed silently.
func noFailures(t *testing.T, server *peers.Server) {
	t.Helper()
	answer, err := NewHTTPClient().Do(t.Context(), server.HTTP, Case{Verb: "GET", Target: "/v2/models/stats", Parts: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`"fail": \{\s*"count": [1-9]`).MatchString(answer.Text) {
		t.Errorf("requests have failed:\n%s", answer.Text)
	}
}
