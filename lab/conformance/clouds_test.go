//go:build conformance

package conformance

import (
	"net"
	"testing"

	"tuner/lab/peers"
)

// TestClouds makes requests under the paths of SageMaker and of Vertex AI.
func TestClouds(t *testing.T) {
	for name, value := range map[string]string{
		"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "simple", "AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health",
	} {
		t.Setenv(name, value)
	}
	repository, ports := newRepository(t, "clouds"), [2][]string{}
	servers := find(t)
	p := &pair{http: NewHTTPClient(), repository: repository}
	t.Cleanup(p.http.Close)
	for i := range ports {
		var err error
		if ports[i], err = peers.FreePorts(2); err != nil {
			t.Fatal(err)
		}
		args := []string{
			"--allow-sagemaker=true", "--sagemaker-port=" + portOf(t, ports[i][0]), "--allow-vertex-ai=true", "--vertex-ai-port=" + portOf(t, ports[i][1]),
			"--vertex-ai-default-model=simple",
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
	for i, cloud := range []string{"sagemaker", "vertexai"} {
		t.Run(cloud, func(t *testing.T) {
			on := *p
			on.triton, on.tuner = &peers.Server{HTTP: ports[0][i]}, &peers.Server{HTTP: ports[1][i]}
			on.compare(t, cloud)
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
