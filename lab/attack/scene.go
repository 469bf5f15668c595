package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/internal/memgroup"
	"tuner/lab/process"
)

// scene is the environment of one attack: its folder, and its processes.
type scene struct {
	options
	dir      string
	servers  []*server
	programs []*campaigner
	groups   []*memgroup.Group
	mounts   []string
	mu       sync.Mutex
	errs     []error // of watches
}

// mostMemory is the resident memory above which a process under attack is killed, so that a failing
// defence does not exhaust the machine. The attacks themselves have smaller limits.
const mostMemory = 4 << 30

// path returns a path in the scene's folder.
func (s *scene) path(elements ...string) string {
	return filepath.Join(append([]string{s.dir}, elements...)...)
}

// write makes a file with its folders.
func (s *scene) write(data []byte, elements ...string) error {
	path := s.path(elements...)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644))
}

// add puts a sample model into the repository, with a configuration.
func (s *scene) add(name, sample, config string) error {
	data, err := os.ReadFile(filepath.Join(s.models, sample+".onnx"))
	if err != nil {
		return err
	}
	return s.put(name, data, config)
}

// sample reads a sample model; nil without one.
func sample(s *scene, name string) []byte {
	data, _ := os.ReadFile(filepath.Join(s.models, name+".onnx")) // without it the attack fails
	return data
}

// put adds a model to the repository.
func (s *scene) put(name string, data []byte, config string) error {
	return errors.Join(s.write(data, "repository", name, "1", "model.onnx"), s.write([]byte(config), "repository", name, "config.pbtxt"))
}

// environment returns the environment of every program. Its home and its folder for temporary files
// are the scene's.
func (s *scene) environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.path("home"), "TMPDIR=" + s.path("tmp"),
		"TUNER_CACHE=" + s.path("cache"), "TUNER_ORT_LIBRARY=" + s.library, "LANG=C.UTF-8"}, more...)
}

// command makes a command of tuner. limits are shell commands before it, such as "ulimit -n 300".
func (s *scene) command(limits string, args ...string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", append([]string{"-c", "set -e; " + limits + "\nexec \"$@\"", "sh", s.tuner}, args...)...)
	cmd.Dir, cmd.Env = s.dir, s.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// outcome is the result of a program.
type outcome struct {
	code int
	out  string // both outputs
	peak int64  // bytes of resident memory
	took time.Duration
}

// refused checks an exit code and words in the message.
func (o outcome) refused(code int, words ...string) (string, error) {
	for _, w := range words {
		if !strings.Contains(flat(o.out), w) {
			return "", fmt.Errorf("exit code %d, without %q: %s", o.code, w, last(o.out))
		}
	}
	if o.code != code {
		return "", fmt.Errorf("exit code %d, want %d: %s", o.code, code, last(o.out))
	}
	return fmt.Sprintf("exit code %d after %.1f s, peak %d MiB: %s", o.code, o.took.Seconds(), o.peak>>20, last(o.out)), nil
}

// flat returns text with one space between words instead of line breaks.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// last returns the end of an output.
func last(text string) string {
	const most = 160
	if text = flat(text); len(text) > most {
		return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}

// tunes runs tuner to its end.
func (s *scene) tunes(ctx context.Context, args ...string) (outcome, error) {
	return s.tunesUnder(ctx, "", args...)
}

// tunesUnder is tunes under limits. It kills a program that runs longer than the attack may.
func (s *scene) tunesUnder(ctx context.Context, limits string, args ...string) (outcome, error) {
	for _, dir := range []string{"home", "tmp"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			return outcome{}, err
		}
	}
	cmd := s.command(limits, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	w := s.watch(cmd.Process.Pid, mostMemory)
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	_ = cmd.Wait() // the exit code has the outcome
	stop()
	return outcome{cmd.ProcessState.ExitCode(), out.String(), w.stop(), time.Since(begin)}, ctx.Err()
}

// server is a `tuner serve` under attack.
type server struct {
	*api.HTTPClient
	grpc   *api.GRPCClient
	web    *http.Client // for requests on connections of their own
	base   string       // URL of the server
	at     api.Announcement
	cmd    *exec.Cmd
	watch  *watch
	log    process.Output
	exited chan struct{}
}

// serve starts a server of the scene's repository in explicit mode. The named models are loaded.
func (s *scene) serve(ctx context.Context, limits string, load []string, flags ...string) (*server, error) {
	return s.serveTo(ctx, nil, limits, load, flags...)
}

// serveTo is serve with TLS on both ports for clients of a configuration. nil: without TLS.
func (s *scene) serveTo(ctx context.Context, client *tls.Config, limits string, load []string, flags ...string) (*server, error) {
	for _, dir := range []string{"home", "tmp", "repository"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			return nil, err
		}
	}
	args := []string{"serve", "--model-control-mode=explicit", "--model-repository=" + s.path("repository"), "--http-port=0", "--grpc-port=0",
		"--metrics-port=0", "--announce-fd=3"}
	for _, m := range load {
		args = append(args, "--load-model="+m)
	}
	announce, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer announce.Close()
	v := &server{cmd: s.command(limits, append(args, flags...)...), exited: make(chan struct{})}
	v.cmd.ExtraFiles = []*os.File{child}
	v.cmd.Stdout, v.cmd.Stderr = &v.log, &v.log
	err = v.cmd.Start()
	_ = child.Close()
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, v)
	v.watch = s.watch(v.cmd.Process.Pid, mostMemory)
	go func() {
		_ = v.cmd.Wait() // the exit code has the outcome
		close(v.exited)
	}()
	if err := announce.SetReadDeadline(time.Now().Add(patience / 2)); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(announce).Decode(&v.at); err != nil {
		return nil, fmt.Errorf("the server did not start: %w: %s", err, last(v.log.String()))
	}
	access := api.Access{TLS: client}
	v.HTTPClient, v.web, v.base = api.OpenHTTP(v.at.HTTP, access), http.DefaultClient, "http://"+v.at.HTTP
	if client != nil {
		v.web, v.base = &http.Client{Transport: &http.Transport{TLSClientConfig: client}}, "https://"+v.at.HTTP
	}
	if v.grpc, err = api.OpenGRPC(v.at.GRPC, access); err != nil {
		return nil, err
	}
	return v, v.awaitReady(ctx)
}

// awaitReady waits until the models are loaded, since ports open earlier.
func (v *server) awaitReady(ctx context.Context) error {
	for {
		status, _, err := v.get(ctx, "/v2/health/ready")
		if err == nil && status == 200 {
			return nil
		}
		select {
		case <-v.exited:
			return fmt.Errorf("the server ended: %s", last(v.log.String()))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the server is not ready: %d", status), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// alive checks that a server runs, and answers probes on its three ports and an inference.
func (v *server) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	select {
	case <-v.exited:
		return fmt.Errorf("the server ended with %d: %s", v.cmd.ProcessState.ExitCode(), last(v.log.String()))
	default:
	}
	if status, _, err := v.get(ctx, "/v2/health/live"); err != nil || status != 200 {
		return errors.Join(fmt.Errorf("afterwards a health probe over HTTP got %d", status), err)
	}
	if _, err := v.grpc.ServerMetadata(ctx); err != nil {
		return fmt.Errorf("afterwards a call over gRPC: %w", err)
	}
	if _, err := api.Metrics(ctx, v.at.Metrics); err != nil {
		return fmt.Errorf("afterwards the metrics: %w", err)
	}
	return nil
}

// signal signals the server itself, which may be a child of strace.
func (v *server) signal(s syscall.Signal) error { return syscall.Kill(v.at.PID, s) }

// end asks the server to end, and waits for that.
func (v *server) end() (int, error) {
	_ = v.signal(syscall.SIGTERM) // it may have ended
	select {
	case <-v.exited:
		return v.cmd.ProcessState.ExitCode(), nil
	case <-time.After(patience / 2):
		return 0, errors.New("the server did not end after SIGTERM")
	}
}

// close ends the remains of the attack.
func (s *scene) close() {
	for _, v := range s.servers {
		_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGKILL) // its group has gone, or was killed
		<-v.exited
		v.watch.stop()
	}
	for _, p := range s.programs {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // as above
		<-p.exited
	}
	for _, m := range s.mounts {
		_ = syscall.Unmount(m, syscall.MNT_DETACH) // otherwise the folder cannot be removed, which is reported
	}
	for _, g := range s.groups {
		_ = g.Close() // the next start of the machine removes it anyway
	}
}

// lines reads a file of the scene.
func (s *scene) lines(elements ...string) ([]string, error) {
	text, err := os.ReadFile(s.path(elements...))
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// faults returns the findings of watches.
func (s *scene) faults() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// watch follows the memory of a process.
type watch struct {
	pid  int
	done chan struct{}
	once sync.Once
	all  sync.WaitGroup
	peak int64
}

// watch kills a process that uses more than `most` bytes.
func (s *scene) watch(pid int, most int64) *watch {
	w := &watch{pid: pid, done: make(chan struct{})}
	w.all.Go(func() {
		for {
			rss := memoryOf(pid).RSS
			if w.peak = max(w.peak, rss); rss > most {
				_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended
				s.mu.Lock()
				s.errs = append(s.errs, fmt.Errorf("the process was killed: it took %d MiB", rss>>20))
				s.mu.Unlock()
				return
			}
			select {
			case <-w.done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return w
}

// stop ends the watch and returns the largest observed memory.
func (w *watch) stop() int64 {
	w.once.Do(func() { close(w.done) })
	w.all.Wait()
	return w.peak
}

// memoryOf returns the memory of a process; 0 if it has gone.
func memoryOf(pid int) hostinfo.ProcessUsage {
	usage, _ := hostinfo.Process(pid) // it may have ended
	return usage
}

// peak returns the largest memory of the server so far.
func (v *server) peak() int64 { return memoryOf(v.at.PID).PeakRSS }

// bounded checks that the server has never used more than `most` bytes.
func (v *server) bounded(most int64) (string, error) {
	peak := v.peak()
	if peak > most {
		return "", fmt.Errorf("the server took %d MiB, more than %d", peak>>20, most>>20)
	}
	return fmt.Sprintf("peak %d MiB of %d", peak>>20, most>>20), nil
}
