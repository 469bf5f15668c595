//go:build linux && !noengine

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tuner/internal/exit"
	"tuner/profile/journal"
	"tuner/search"
)

// hangs is the time after which a test is considered hung. It is far longer than any step on a busy
// machine.
const hangs = time.Minute

// budget is the number of trials of the campaigns.
const budget = 6

// workplace is a folder with the profile of a campaign.
type workplace struct {
	t      *testing.T
	dir    string
	output string   // output folder of the campaign
	env    []string // additional variables of the programs
	prefix []string // a command that starts tuner; nil: none
}

// calm is the configuration of campaigns in which the size of the load does not matter. Each batch waits
// 10 ms for more requests, so that a closed loop leaves the processors idle, for other tests too. A
// session with several threads would keep them busy with waiting.
const calm = `max_batch_size: 8
dynamic_batching { max_queue_delay_microseconds: 10000 }
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
`

// newWorkplace writes a calm profile of the small MLP into a new folder. Its campaign takes some
// seconds. The test is skipped without ONNX Runtime.
func newWorkplace(t *testing.T) workplace {
	t.Helper()
	models := os.Getenv("TUNER_MODELS")
	if os.Getenv("TUNER_ORT_LIBRARY") == "" || models == "" {
		t.Skip("needs ONNX Runtime and the sample models: run 'make test', which sets TUNER_ORT_LIBRARY and TUNER_MODELS")
	}
	w := workplace{t: t, dir: t.TempDir()}
	w.output = filepath.Join(w.dir, "out")
	w.write("calm.pbtxt", calm)
	w.write("profile.yaml", calmText(models, w.output))
	return w
}

// profileText returns a profile with more candidates than the budget allows.
func profileText(model, output string) string {
	return fmt.Sprintf(`model: %q
output: %q
search: {strategy: grid, budget: {time: 2m, trials: %d}, window: 100ms}
space: {intra_op_threads: [1, 2], instance_count: [1, 2, 3]}
load: {concurrency: [1, 2, 4]}
`, model, output, budget)
}

// calmText is profileText for the small MLP, with the calm configuration of newWorkplace.
func calmText(models, output string) string {
	return "config: calm.pbtxt\n" + profileText(filepath.Join(models, "mlp.onnx"), output)
}

// severalText is calmText for two models on one server.
func severalText(models, output string) string {
	return fmt.Sprintf(`output: %q
search: {strategy: grid, budget: {time: 2m, trials: %d}, window: 100ms}
models:
  mlp: {model: %q, config: calm.pbtxt, load: {request_rate: 50}, constraints: {latency_p99: 10s}, space: {intra_op_threads: 1, instance_count: [1, 2]}}
  cnn: {model: %q, config: calm.pbtxt, load: {concurrency: 1}, constraints: {latency_p99: 10s}, space: {intra_op_threads: 1, instance_count: [1, 2]}}
scale: {min: 1, max: 2}
`, output, budget, filepath.Join(models, "mlp.onnx"), filepath.Join(models, "cnn.onnx"))
}

func (w workplace) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// program is a running tuner.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer
	ended  chan error // result of Wait
}

// start runs tuner with arguments in the workplace.
func (w workplace) start(args ...string) *program {
	w.t.Helper()
	return w.startWith(nil, args...)
}

// startWith runs tuner (this test binary, see TestMain) with files as its descriptors 3 and up.
func (w workplace) startWith(files []*os.File, args ...string) *program {
	w.t.Helper()
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		w.t.Fatal(err)
	}
	p := &program{t: w.t, ended: make(chan error, 1)}
	ctx, cancel := context.WithTimeout(w.t.Context(), hangs)
	w.t.Cleanup(cancel)
	command := slices.Concat(w.prefix, []string{tuner}, args)
	p.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = w.dir, &p.stdout, &p.stderr, time.Second
	p.cmd.Env, p.cmd.ExtraFiles = append(os.Environ(), w.env...), files
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p
}

// exit waits for the program's end and returns its exit code; -1 after a signal.
func (p *program) exit() int {
	p.t.Helper()
	var failed *exec.ExitError
	if err := <-p.ended; err != nil && !errors.As(err, &failed) {
		p.t.Fatalf("%v; stderr:\n%s", err, p.stderr.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// run runs tuner to its end and checks the exit code.
func (w workplace) run(want int, args ...string) *program {
	w.t.Helper()
	p := w.start(args...)
	if code := p.exit(); code != want {
		w.t.Fatalf("tuner %s: exit code %d, want %d; stderr:\n%s", strings.Join(args, " "), code, want, p.stderr.String())
	}
	return p
}

// analyze analyzes the campaign, without charts, which take longer than the campaign. The script
// analyze tests charts.
func (w workplace) analyze() *program {
	w.t.Helper()
	w.write("analyze.yaml", fmt.Sprintf("input: %q\nformats: [table, csv, config, repository]\n", w.output))
	return w.run(exit.OK, "analyze", "-f", "analyze.yaml")
}

// eventually waits until a condition of other processes holds. It returns the waiting time.
func eventually(t *testing.T, what string, holds func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for look := time.NewTicker(5 * time.Millisecond); !holds(); <-look.C {
		if time.Since(begin) > hangs {
			t.Fatalf("%s: not within %v", what, hangs)
		}
	}
	return time.Since(begin)
}

// records reads the campaign's journal; nil before it exists.
func (w workplace) records() []journal.Record {
	_, records, err := journal.Read(w.output)
	if err != nil {
		return nil
	}
	return records
}

// checkInterrupted checks that the journal ends with the end of an interrupted campaign.
func (w workplace) checkInterrupted() {
	w.t.Helper()
	records := w.records()
	last := records[len(records)-1]
	var end journal.End
	if err := last.Decode(&end); err != nil || last.Kind != journal.KindEnd || !end.Interrupted {
		w.t.Errorf("the journal ends with %s %s, want an interrupted end", last.Kind, last.Data)
	}
}

// trials reads the campaign's events.
func (w workplace) trials() []search.Event {
	w.t.Helper()
	var events []search.Event
	for _, r := range w.records() {
		if r.Kind != journal.KindTrial {
			continue
		}
		var e search.Event
		if err := r.Decode(&e); err != nil {
			w.t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// awaitTrials waits until the journal has n trials and an engine runs, and returns the engine's
// process id.
func (w workplace) awaitTrials(p *program, n int) int {
	w.t.Helper()
	engine := 0
	eventually(w.t, fmt.Sprintf("%d trials and an engine", n), func() bool {
		select {
		case err := <-p.ended:
			w.t.Fatalf("the campaign ended too early (%v); stderr:\n%s", err, p.stderr.String())
		default:
		}
		engine = engineOf(p.cmd.Process.Pid)
		return len(w.trials()) >= n && engine != 0
	})
	return engine
}

// awaitLoad waits until an engine is under load. Then it has another connection besides its three
// listeners and the control connection. running reports whether the campaign is still running.
func (p *program) awaitLoad() (engine int, running bool) {
	p.t.Helper()
	running = true
	eventually(p.t, "an engine under load", func() bool {
		select {
		case err := <-p.ended:
			p.ended <- err
			running = false
		default:
			engine = engineOf(p.cmd.Process.Pid)
		}
		return !running || (engine != 0 && sockets(engine) >= 5)
	})
	return engine, running
}

// sockets counts a process's sockets; 0 if it has ended.
func sockets(pid int) int {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}

// engineOf returns an engine that a process has started; 0 without one.
func engineOf(parent int) int {
	engines := enginesOf(parent)
	if len(engines) == 0 {
		return 0
	}
	return engines[0]
}

// enginesOf lists the running engines that a process has started.
func enginesOf(parent int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var engines []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if state, of := status(pid); of != parent || state == "Z" {
			continue
		}
		command, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(command, []byte("\x00serve\x00")) {
			engines = append(engines, pid)
		}
	}
	return engines
}

// status reads a process's state and its parent from /proc/<pid>/stat, after the name in
// parentheses; "" if it has ended.
func status(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return "", 0
	}
	return fields[0], parent
}

// awaitGone waits until a process has ended. A zombie (state Z) counts as ended: it holds no
// resources, and the init process removes it.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	took := eventually(t, fmt.Sprintf("the end of engine %d", pid), func() bool {
		state, _ := status(pid)
		return state == "" || state == "Z"
	})
	t.Logf("engine %d was gone after %v", pid, took)
}
