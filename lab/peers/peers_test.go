package peers

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/programtest"
	"tuner/lab/process"
)

func TestFindNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TUNER_PEERS", dir)
	_, err := Find()
	if err == nil || !strings.Contains(err.Error(), "lab/scripts/peers.sh "+dir) {
		t.Errorf("error %v does not say how to install the peers", err)
	}
}

func TestServerThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	program := programtest.Write(t, filepath.Join(t.TempDir(), "server"), "#!/bin/sh\necho no models here\nexit 3\n")
	_, err := StartServer(context.Background(), []string{program}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no models here") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v does not tell how the server ended and what it said", err)
	}
}

func TestStopOfServers(t *testing.T) {
	t.Parallel()
	check := func(script string, judged bool, want string) {
		t.Helper()
		s := &Server{judged: judged, output: &process.Output{}, ended: make(chan struct{})}
		s.cmd = exec.Command("/bin/sh", "-c", script)
		out, err := s.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.PID = s.cmd.Process.Pid
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it has set its trap, or ends
			t.Fatal(err)
		}
		go func() {
			defer close(s.ended)
			_ = s.cmd.Wait()
		}()
		if strings.Contains(script, "exit 3; #") {
			<-s.ended
		}
		err = s.Stop()
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%q: %s does not say %q", script, got, want)
		}
	}
	const wait = "echo; while :; do sleep 0.01; done"
	check("trap 'exit 0' TERM; "+wait, true, "<nil>")
	check("trap 'exit 4' TERM; "+wait, false, "<nil>")
	check("trap 'exit 4' TERM; "+wait, true, "did not end well: exit status 4")
	check("echo; exit 3; #", false, "had ended before it was asked to: exit status 3")
}
