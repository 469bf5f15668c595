//go:build linux && !noengine

package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/profile"
)

// The repository from analyze can be served alone. It has exactly the recommended configuration,
// and answers the campaign's own requests over both protocols.
func TestChosenRepositoryIsServed(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.run(exit.OK, "profile", "-f", "profile.yaml", "--quiet")
	w.analyze()
	server, at := w.serve(filepath.Join(w.output, "repository"))

	overGRPC, err := api.NewGRPC(at.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	for protocol, client := range map[string]api.Client{"grpc": overGRPC, "http": api.NewHTTP(at.HTTP)} {
		if ready, err := client.ServerReady(t.Context()); err != nil || !ready {
			t.Errorf("%s: server is not ready: %v", protocol, err)
		}
		if ready, err := client.ModelReady(t.Context(), "mlp"); err != nil || !ready {
			t.Errorf("%s: model is not ready: %v", protocol, err)
		}
		w.checkConfig(client)
		w.infer(client)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	server.signal(syscall.SIGTERM)
	if code := server.exit(); code != exit.OK {
		t.Errorf("exit code %d after SIGTERM; stderr:\n%s", code, server.stderr.String())
	}
}

// serve serves a repository on free ports, with additional options. It returns the addresses.
func (w workplace) serve(repository string, options ...string) (*program, api.Announcement) {
	w.t.Helper()
	announced, announce := pipe(w.t)
	p := w.startWith([]*os.File{announce}, append([]string{"serve", "--model-repository", repository, "--announce-fd=3",
		"--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1",
		"--http-port=0", "--grpc-port=0", "--metrics-port=0"}, options...)...)
	if err := announce.Close(); err != nil { // so that the server's end closes the file
		w.t.Fatal(err)
	}
	line, err := bufio.NewReader(announced).ReadBytes('\n')
	if err != nil {
		w.t.Fatalf("no announcement: %v; exit code %d, stderr:\n%s", err, p.exit(), p.stderr.String())
	}
	var at api.Announcement
	if err := json.Unmarshal(line, &at); err != nil {
		w.t.Fatal(err)
	}
	return p, at
}

// checkConfig compares the server's reported configuration with optimal/config.pbtxt.
func (w workplace) checkConfig(client api.Client) {
	w.t.Helper()
	path := filepath.Join(w.output, "optimal", "config.pbtxt")
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	want, err := modelconfig.Parse(path, text)
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := client.ModelConfig(w.t.Context(), "mlp")
	if err != nil {
		w.t.Fatal(err)
	}
	if !proto.Equal(want, got) {
		w.t.Errorf("the server serves another configuration\nwant %v\n got %v", want, got)
	}
}

// infer sends one of the campaign's requests and checks for the model's output.
func (w workplace) infer(client api.Client) {
	w.t.Helper()
	p := readProfileAt(w.t, filepath.Join(w.dir, "profile.yaml"))
	subject, err := profile.OpenSubject(p, profile.Place{})
	if err != nil {
		w.t.Fatal(err)
	}
	requests, err := profile.Requests(p, subject)
	if err != nil {
		w.t.Fatal(err)
	}
	encoded, err := client.Encode(requests[0])
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := client.Infer(w.t.Context(), encoded)
	if err != nil {
		w.t.Fatal(err)
	}
	outputs, err := answer.Outputs()
	if err != nil || len(outputs) != len(subject.Config.GetOutput()) || len(outputs[0].Data) == 0 {
		w.t.Errorf("outputs %v, %v; want those of the model", outputs, err)
	}
}
