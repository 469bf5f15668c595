//go:build conformance

package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/lab/peers"
)

// examples are the programs of tritonclient's examples that need only the engine's features. The
// others use decoupled models, CUDA and images (docs/reference/conformance.md).
var examples = []string{
	"simple_http_infer_client", "simple_http_async_infer_client", "simple_http_aio_infer_client", "simple_http_string_infer_client", "simple_http_shm_client", "simple_http_shm_string_client",
	"simple_http_health_metadata", "simple_http_model_control",
	"simple_grpc_infer_client", "simple_grpc_async_infer_client", "simple_grpc_aio_infer_client", "simple_grpc_string_infer_client", "simple_grpc_shm_client", "simple_grpc_shm_string_client",
	"simple_grpc_custom_args_client", "simple_grpc_keepalive_client", "simple_grpc_health_metadata",
	"grpc_explicit_int_content_client", "grpc_explicit_int8_content_client", "grpc_explicit_byte_content_client",
	"simple_grpc_model_control",
}

// nulExample matches the examples that send strings with a NUL. They fail on Triton with an ONNX
// model, which ends a string there (the difference nul), and run on the engine alone.
var nulExample = regexp.MustCompile(`_string_infer_client$`)

// passed matches the lines in which an example reports success.
var passed = regexp.MustCompile(`(?m)^PASS.*$`)

// TestClientsExamples runs tritonclient's own examples on both servers. They check the answers
// themselves.
func TestClientsExamples(t *testing.T) {
	for _, protocol := range []string{"http", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			repository := newRepository(t, "examples")
			if protocol == "http" {
				// the example counts seven models
				if err := os.RemoveAll(filepath.Join(repository, "mlp")); err != nil {
					t.Fatal(err)
				}
			}
			p := newPair(t, repository, "--model-control-mode=explicit", "--load-model=*")
			// before the example of model control, which leaves its model unloaded
			t.Run("reuse_infer_objects_client", func(t *testing.T) { runExample(t, p, protocol, "reuse_infer_objects_client", "-i", protocol) })
			for _, example := range examples {
				if strings.Contains(example, protocol) {
					t.Run(example, func(t *testing.T) { runExample(t, p, protocol, example) })
				}
			}
		})
	}
}

// TestClientsSequenceExamples runs those for sequences. With -d they also need texts as identities,
// which Triton 24.10 cannot pass to an ONNX model (the difference identity): those run on the engine
// alone.
func TestClientsSequenceExamples(t *testing.T) {
	p := newPair(t, newRepository(t, "sequence_examples"))
	alone := *p
	alone.triton = nil
	for _, example := range []string{
		"simple_http_sequence_sync_infer_client", "simple_grpc_sequence_sync_infer_client", "simple_grpc_sequence_stream_infer_client", "simple_grpc_aio_sequence_stream_infer_client",
	} {
		protocol := strings.Split(example, "_")[1]
		t.Run(example, func(t *testing.T) { runExample(t, p, protocol, example) })
		t.Run(example+" -d", func(t *testing.T) { runExample(t, &alone, protocol, example, "-d") })
	}
}

func runExample(t *testing.T, p *pair, protocol, example string, flags ...string) {
	t.Helper()
	installed := find(t)
	program := filepath.Join(filepath.Dir(installed.Triton), "examples", example+".py")
	var said [2][]string
	for i, server := range []*peers.Server{p.triton, p.tuner} {
		if server == nil || i == 0 && nulExample.MatchString(example) {
			continue
		}
		address := server.HTTP
		if protocol == "grpc" {
			address = server.GRPC
		}
		said[i] = passed.FindAllString(runTool(t, "", installed.Python, append([]string{program, "-u", address}, flags...)...), -1) // exit status 0
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" && said[0] != nil {
		t.Errorf("the example does not say the same (-Triton +tuner):\n%s", diff)
	}
}
