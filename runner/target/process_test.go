package target

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"tuner/internal/alloctest"
	"tuner/runner"
)

// roleVariable makes the test binary play an engine process, or a tuner that starts one.
const roleVariable = "TUNER_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	os.Exit(play(role))
}

// play runs the role of a fake process.
func play(role string) int {
	announce, parent := os.NewFile(announceFD, "announce"), os.NewFile(parentFD, "parent")
	switch role {
	case "failing":
		for i := range 30 {
			fmt.Fprintf(os.Stderr, "line %d\n", i+1)
		}
		return 7
	case "talking nonsense":
		fmt.Fprintln(announce, "hello")
	case "silent":
	case "dying":
		fmt.Fprintln(announce, `{"pid":1,"http":"127.0.0.1:1"}`)
		fmt.Fprintln(os.Stderr, "about to die")
		return 3
	case "tuner":
		return playTuner(false)
	case "pausing tuner":
		return playTuner(true)
	case "server":
		return playServer()
	case "mute":
		time.Sleep(time.Hour) // until a signal arrives
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(announce, `{"http":"127.0.0.1:1","grpc":"127.0.0.1:2"}`)
	default:
		fmt.Fprintln(announce, `{"http":"127.0.0.1:1","grpc":"127.0.0.1:2"}`)
	}
	_, _ = io.Copy(io.Discard, parent) // until the parent dies, or a signal arrives
	return 0
}

// playTuner starts an engine that holds stdout open, perhaps pauses it, prints a line, and waits to
// be killed.
func playTuner(pauses bool) int {
	cmd := fake("good")
	cmd.Stdout = os.Stdout
	p, err := startProcess(context.Background(), cmd, time.Minute, time.Minute)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if pauses {
		p.Pause()
	}
	fmt.Println("started")
	select {}
}

// fake returns the command of a fake process.
func fake(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// begin starts a fake engine, and ends it with the test.
func begin(t *testing.T, role string, drain time.Duration) *process {
	t.Helper()
	p, err := startProcess(t.Context(), fake(role), time.Minute, drain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background()) })
	return p
}

func TestGoodProcess(t *testing.T) {
	t.Parallel()
	p := begin(t, "good", time.Minute)
	if p.Address().GRPC != "127.0.0.1:2" || p.PID() == 0 {
		t.Errorf("announced %+v, pid %d", p.Address(), p.PID())
	}
	if group, err := syscall.Getpgid(p.PID()); err != nil || group != p.PID() {
		t.Errorf("process group %d of process %d, %v: want one of its own", group, p.PID(), err)
	}
	p.Stop(t.Context())
	select {
	case <-p.Done():
	default:
		t.Fatal("stopped, but not done")
	}
	if exit := p.Exit(); exit.Text != "signal: terminated" || exit.OutOfMemory {
		t.Errorf("exit %+v, want by SIGTERM", exit)
	}
	p.Stop(t.Context()) // a second time
}

func TestProcessThatIgnoresSIGTERMIsKilled(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *process){
		"after the drain time": func(t *testing.T, p *process) { p.Stop(t.Context()) },
		"at once when the context ends": func(t *testing.T, p *process) {
			p.drain = time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			p.Stop(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, "deaf", 10*time.Millisecond)
			stop(t, p)
			if exit := p.Exit(); exit.Text != "signal: killed" || exit.OutOfMemory {
				t.Errorf("exit %+v, want killed, not for memory", exit)
			}
		})
	}
}

func TestProcessesThatDoNotStart(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"failing":          "it ended before it was ready (exit status 7); its last output:\nline 11\n",
		"talking nonsense": "it announced no addresses: ",
		"silent":           "it was not ready within 300ms",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			patience := time.Minute
			if role == "silent" {
				patience = 300 * time.Millisecond
			}
			_, err := startProcess(t.Context(), fake(role), patience, time.Minute)
			var start *runner.StartError
			if !errors.As(err, &start) || !strings.HasPrefix(start.Reason, want) {
				t.Errorf("ended with %v, want %q", err, want)
			}
		})
	}
}

func TestStartOfNoProgramIsTheCampaignsFault(t *testing.T) {
	t.Parallel()
	_, err := startProcess(t.Context(), exec.Command("/nonexistent/tuner"), time.Minute, time.Minute)
	var start *runner.StartError
	if err == nil || errors.As(err, &start) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ended with %v", err)
	}
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped by the user")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(stopped) })
	if _, err := startProcess(ctx, fake("silent"), time.Minute, time.Minute); !errors.Is(err, stopped) {
		t.Errorf("ended with %v, want the context's cause", err)
	}
}

func TestDyingProcess(t *testing.T) {
	t.Parallel()
	p := begin(t, "dying", time.Minute)
	<-p.Done()
	if exit, words := p.Exit(), p.LastWords(); exit.Text != "exit status 3" || exit.OutOfMemory || words != "about to die" {
		t.Errorf("it ended with %+v, its last words are %q", exit, words)
	}
}

// SIGKILL to tuner must end the engine too, even a paused one. Only then does the output end, which
// both hold open.
func TestEngineDiesWithTheTuner(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"tuner", "pausing tuner"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			killTuner(t, role)
		})
	}
}

func killTuner(t *testing.T, role string) {
	t.Helper()
	tuner := fake(role)
	stdout, err := tuner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tuner.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(stdout)
	line, err := output.ReadString('\n')
	if killError := tuner.Process.Kill(); killError != nil || err != nil || line != "started\n" {
		t.Fatalf("the tuner said %q, %v, %v", line, err, killError)
	}
	if rest, err := io.ReadAll(output); err != nil || len(rest) > 0 {
		t.Errorf("then it said %q, %v", rest, err)
	}
	_ = tuner.Wait() // it was killed
}

// An announcement is one line with addresses. Reading it takes no more memory than the longest one.
func FuzzAnnouncement(f *testing.F) {
	f.Add([]byte(`{"pid":1,"http":"127.0.0.1:1","grpc":"[::1]:2","metrics":"","ort_version":"1","ort_library":"/l"}` + "\n"))
	f.Add([]byte("hello\n"))
	f.Add([]byte(`{"http":"127.0.0.1:1"}`))
	f.Add(append([]byte(`{"http":"`), make([]byte, longestAnnouncement)...))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, longestAnnouncement)()
		at, err := readAnnouncement(bytes.NewReader(text))
		if err != nil {
			return
		}
		again, err := json.Marshal(at)
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, '\n')
		// JSON's escapes may make it too long
		if read, err := readAnnouncement(bytes.NewReader(again)); len(again) <= longestAnnouncement && (err != nil || read != at) {
			t.Errorf("%+v is read back as %+v, %v", at, read, err)
		}
		if at.HTTP+at.GRPC == "" || !bytes.Contains(text, []byte("\n")) {
			t.Errorf("%q is read as %+v", text, at)
		}
	})
}
