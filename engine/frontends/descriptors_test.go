package frontends_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/engine/enginetest"
)

// childVariable, if set, makes this test program a server under a low limit of open files.
const childVariable = "TUNER_TEST_SERVER"

// lowLimit is the number of files that that server may have open.
const lowLimit = 300

// TestMain serves in a child process, since the limit applies to a whole process.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	limit := syscall.Rlimit{Cur: lowLimit, Max: lowLimit}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestServerUnderLimit is the child process. It prints its addresses, and serves until its standard
// input ends.
func TestServerUnderLimit(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		t.Skip("is run by TestDescriptorsRunOut")
	}
	e := enginetest.Start(t, enginetest.Options{})
	if err := json.NewEncoder(os.Stdout).Encode(e.Addresses); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
}

// addresses are those of the child.
type addresses struct{ HTTP, GRPC, Metrics string }

// startUnderLimit runs the child until the test ends.
func startUnderLimit(t *testing.T) addresses {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestServerUnderLimit$")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	text, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v\n%s", err, rest)
		}
	})
	var at addresses
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	return at
}

// checkHealth asks all three listeners over new connections.
func checkHealth(t *testing.T, at addresses, when string) {
	t.Helper()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	answer, err := web.Get("http://" + at.HTTP + "/v2/health/ready")
	if err != nil {
		t.Fatalf("%s: HTTP: %v", when, err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s: HTTP: %s, %v", when, answer.Status, err)
	}
	_ = answer.Body.Close() // it has been read
	c, err := api.NewGRPC(at.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	if ready, err := c.ServerReady(t.Context()); !ready || err != nil {
		t.Errorf("%s: gRPC: ready %t, %v", when, ready, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := api.Metrics(t.Context(), at.Metrics); err != nil {
		t.Errorf("%s: metrics: %v", when, err)
	}
}

// Idle clients that take all descriptors of the process neither end it nor prevent health checks.
func TestDescriptorsRunOut(t *testing.T) {
	t.Parallel()
	at := startUnderLimit(t)
	checkHealth(t, at, "before")
	for _, address := range []string{at.HTTP, at.GRPC, at.Metrics} {
		var idle []net.Conn
		for range lowLimit + 100 {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatalf("after %d connections: %v", len(idle), err)
			}
			idle = append(idle, c)
		}
		checkHealth(t, at, fmt.Sprintf("with %d idle connections to %+v of %+v", len(idle), address, at))
		for _, c := range idle {
			_ = c.Close() // the server may have ended it
		}
		checkHealth(t, at, "afterwards")
	}
	holdMany(t, at)
}

// holdMany checks that closed connections have made room: many clients get answers on connections
// that stay.
func holdMany(t *testing.T, at addresses) {
	t.Helper()
	const many = 100
	deadline := time.Now().Add(time.Minute)
	for {
		lost := 0
		conns := make([]net.Conn, many)
		for i := range conns {
			c, err := net.Dial("tcp", at.HTTP)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			conns[i] = c
		}
		for _, c := range conns { // after all of them are open
			if _, err := io.WriteString(c, "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
				lost++
				continue
			}
			if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || answer.StatusCode != http.StatusOK {
				lost++
			}
		}
		if lost == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d connections were not served", lost, many)
		}
	}
}
