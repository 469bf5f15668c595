//go:build conformance

package conformance

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/lab/peers"
)

// TestClouds makes requests under the paths of SageMaker and of Vertex AI.
func TestClouds(t *testing.T) {
	compareClouds(t, newRepository(t, "clouds"), []string{"sagemaker", "vertexai"}, "--vertex-ai-default-model=simple")
}

// TestSageMakerModels makes the requests of a SageMaker endpoint with several models.
func TestSageMakerModels(t *testing.T) {
	const folder = "/opt/ml/models" // the only one from which Triton loads them
	models, err := ReadModels(filepath.Join("testdata", "repositories", "endpoint.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		first, _, _ := strings.Cut(m.Name, "/")
		t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(folder, first)) })
	}
	if err := WriteRepository(models, folder, environment(t, "TUNER_MODELS")); err != nil {
		t.Skipf("cannot write models where SageMaker has them: %v", err)
	}
	compareClouds(t, t.TempDir(), []string{"endpoint"}, "--model-control-mode=explicit")
}

// compareClouds makes the requests of folders on the ports for SageMaker and Vertex AI, in this order.
func compareClouds(t *testing.T, repository string, folders []string, arguments ...string) {
	t.Helper()
	for name, value := range map[string]string{
		"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "simple", "AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health",
	} {
		t.Setenv(name, value)
	}
	ports, servers := [2][]string{}, find(t)
	p := &pair{http: NewHTTPClient(), repository: repository}
	t.Cleanup(p.http.Close)
	for i := range ports {
		var err error
		if ports[i], err = peers.FreePorts(2); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"--allow-sagemaker=true", "--sagemaker-port=" + portOf(t, ports[i][0])}, arguments...)
		if len(folders) > 1 {
			args = append(args, "--allow-vertex-ai=true", "--vertex-ai-port="+portOf(t, ports[i][1]))
		}
		var s *peers.Server
		if i == 0 {
			s, err = servers.StartTriton(t.Context(), repository, args...)
			p.triton = s
		} else {
			s, err = servers.StartTuner(t.Context(), environment(t, "TUNER_BINARY"), repository, append(args, "--allow-client-shm=true")...)
			p.tuner = s
		}
		if err != nil {
			t.Fatal(err)
		}
		stopAtEnd(t, s)
	}
	for i, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			on := *p
			on.triton, on.tuner = &peers.Server{HTTP: ports[0][i]}, &peers.Server{HTTP: ports[1][i]}
			on.compare(t, folder)
		})
	}
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
