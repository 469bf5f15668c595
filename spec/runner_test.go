package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunners(t *testing.T) {
	t.Parallel()
	check := func(text string, want Runner) {
		t.Helper()
		if diff := cmp.Diff(want, parse(t, "model: a\nrunner: "+text).Runner); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("{mode: local, log: triton.log}", Runner{Mode: RunnerLocal, Protocol: ProtocolGRPC, Server: "tritonserver", Log: "work/triton.log"})
	check("{mode: local, server: bin/triton, protocol: http, args: [--backend-directory=/opt/b, --log-verbose, 1], environment: {OMP_NUM_THREADS: 1}}",
		Runner{Mode: RunnerLocal, Protocol: ProtocolHTTP, Server: "work/bin/triton", Args: []string{"--backend-directory=/opt/b", "--log-verbose", "1"},
			Environment: map[string]string{"OMP_NUM_THREADS": "1"}})
	check(`{mode: local, environment: {CUDA_VISIBLE_DEVICES: ""}}`, Runner{Mode: RunnerLocal, Protocol: ProtocolGRPC, Server: "tritonserver",
		Environment: map[string]string{"CUDA_VISIBLE_DEVICES": ""}})
	check("{mode: remote, url: gpu7}", Runner{Mode: RunnerRemote, Protocol: ProtocolGRPC, URL: "gpu7"})
	check(`{mode: remote, url: "https://gpu7:443", metrics_url: gpu7:8002/metrics, model_repository: /srv/models, headers: {authorization: Bearer $TOKEN}, tls: {ca: ca.pem}}`,
		Runner{Mode: RunnerRemote, Protocol: ProtocolHTTP, URL: "https://gpu7:443", MetricsURL: "gpu7:8002/metrics", Repository: "/srv/models",
			Headers: map[string]string{"authorization": "Bearer $TOKEN"}, TLS: TLSFiles{CA: "work/ca.pem"}})

	p := parse(t, "model: a\nfinals: {runner: {mode: local, server: tritonserver}}")
	if diff := cmp.Diff(&Runner{Mode: RunnerLocal, Protocol: ProtocolGRPC, Server: "tritonserver"}, p.Finals); diff != "" {
		t.Error(diff)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	type address struct {
		text   string
		secure bool
	}
	for url, want := range map[string]address{
		"gpu7": {"gpu7:8001", false}, "gpu7:9001": {"gpu7:9001", false}, "grpcs://gpu7:443/": {"gpu7:443", true}, "[::1]:8001": {"[::1]:8001", false},
		"::1": {"[::1]:8001", false},
	} {
		text, secure, err := Runner{URL: url, Protocol: ProtocolGRPC}.Address()
		if got := (address{text, secure}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", url, got, err, want)
		}
	}
	if text, secure, err := (Runner{URL: "gpu7", Protocol: ProtocolHTTP, TLS: TLSFiles{CA: "ca.pem"}}).Address(); text != "gpu7:8000" || !secure || err != nil {
		t.Errorf("HTTP with a CA: %s, %t, %v", text, secure, err)
	}
	for _, url := range []string{"", "tcp://gpu7", "gpu7:http", ":8001", "gpu7:70000", "gpu7/triton", "http://"} {
		if text, _, err := (Runner{URL: url}).Address(); err == nil {
			t.Errorf("%q is %s", url, text)
		}
	}
}

func TestRunnerMistakes(t *testing.T) {
	t.Parallel()
	check := func(text string, want ...string) {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := ParseProfile("p.yaml", []byte("model: a\n"+text))
			if diff := cmp.Diff(want, mistakes(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	check("runner: {mode: docker, protocol: tcp}", "2: runner.mode: is not known", "2: runner.protocol: is not known")
	check("runner: {mode: remote, url: x, log: y}", "2: runner.log: is for mode: local, and the mode is remote")
	check("runner: {mode: remote}", "2: runner: has no url")
	check("runner: {server: x, url: y}", "2: runner.server: is for mode: local, and the mode is bundled", "2: runner.url: is for mode: remote, and the mode is bundled")
	check("runner: {mode: local, server: x, headers: {a: b}}", "2: runner.headers: is for mode: remote, and the mode is local")
	check("runner: {mode: local, server: x, args: [--log-info=1, --http-port=8000, --model-repository, {}]}",
		"2: runner.args[1]: sets --http-port, which tuner sets for each server that it launches",
		"2: runner.args[2]: sets --model-repository, which tuner sets for each server that it launches", "2: runner.args[3]: must be text")
	check("runner: {mode: remote, url: tcp://x}", `2: runner.url: is not the address of a server: the scheme "tcp" is not known`)
	check("runner: {mode: remote, url: http://x, protocol: grpc}", "2: runner.protocol: contradicts the scheme of url, http://")
	check("runner: {mode: remote, url: x, tls: {cert: c.pem}}", "2: runner.tls.cert: unknown field")
	check("runner: {mode: remote, url: x, tls: {}}", "2: runner.tls: names no file, and url does not ask for TLS: nothing would be encrypted")
	check(`runner: {mode: remote, url: x, headers: {a: ""}}`, "2: runner.headers.a: is empty")
	check("runner: {mode: local, environment: {A: null, B: [c]}}", "2: runner.environment.A: must be text", "2: runner.environment.B: must be text")
	check("finals: {}", "2: finals: has no runner")
	check("finals: {server: x}", "2: finals.server: unknown field")
	check("finals: {runner: {mode: remote}}", "2: finals.runner: has no url")
	check("finals: {runner: {mode: bundled}}", "2: finals: names the server that runner names")
	check("runner: {mode: local, server: x}\ndeploy_target: tuner",
		"2: runner: is another server than the bundled engine, and only that one honours the options of deploy_target: tuner (spinning, session entries, several runtimes)")
	check("finals: {runner: {mode: remote, url: x}}\ndeploy_target: tuner",
		"2: finals: is another server than the bundled engine, and only that one honours the options of deploy_target: tuner (spinning, session entries, several runtimes)")
	check("runner: {mode: local, server: x}\nspace: {runtime: [cpu]}", "3: space.runtime: cannot be chosen on another server than the bundled engine: it has its own ONNX Runtime")
}
