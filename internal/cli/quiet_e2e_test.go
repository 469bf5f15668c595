//go:build linux && !noengine

package cli

import (
	"bufio"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tuner/engine/api"
)

// tracedCalls are the system calls with which a process communicates or makes files.
const tracedCalls = "connect,sendto,sendmsg,sendmmsg,openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2"

// straceOptions are those with which a program's traced calls are written to a file. The kernel's filter
// lets all others pass: to stop at each takes several times as long.
func straceOptions(file string) []string {
	return []string{"-f", "--seccomp-bpf", "-qq", "-s", "200", "-o", file, "-e", "trace=" + tracedCalls}
}

// quietPlace is a workplace with an empty home folder and without the user's telemetry settings.
// Its programs run under strace. If strace does not work, only the home folder is checked.
type quietPlace struct {
	workplace
	home, log string
	isTraced  bool
}

func newQuietPlace(t *testing.T) quietPlace {
	t.Helper()
	q := quietPlace{workplace: newWorkplace(t)}
	text, err := exec.CommandContext(t.Context(), "strace", append(straceOptions(os.DevNull), "true")...).CombinedOutput()
	if q.isTraced = err == nil; !q.isTraced {
		t.Logf("without strace, which would tell of connections, too: %v %s", err, text)
	}
	q.home, q.log = filepath.Join(q.dir, "home"), filepath.Join(q.dir, "trace")
	temp := filepath.Join(q.dir, "temp")
	for _, dir := range []string{q.home, temp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	q.write("profile.yaml", strings.Replace(calmText(os.Getenv("TUNER_MODELS"), q.output), "trials: "+strconv.Itoa(budget), "trials: 2", 1))
	q.env = []string{"HOME=" + q.home, "TMPDIR=" + temp, "XDG_CACHE_HOME=", "TUNER_CACHE=" + filepath.Join(q.dir, "cache")}
	return q
}

// traced runs tuner, under strace if it works. files are its descriptors 3 and up.
func (q quietPlace) traced(files []*os.File, args ...string) *exec.Cmd {
	q.t.Helper()
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		q.t.Fatal(err)
	}
	line := append([]string{tuner}, args...)
	if q.isTraced {
		line = slices.Concat([]string{"strace"}, straceOptions(q.log), line)
	}
	cmd := exec.CommandContext(q.t.Context(), line[0], line[1:]...)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "ORT_DISABLE_TELEMETRY=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env, cmd.Dir, cmd.ExtraFiles = append(cmd.Env, q.env...), q.dir, files
	return cmd
}

// The parts of strace's lines that name a process's targets.
var (
	tracedAddress = regexp.MustCompile(`sin6?_port=htons\((\d+)\).*?(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"`)
	tracedFile    = regexp.MustCompile(`(?:open|openat|creat|mkdir|mkdirat|rename|renameat|renameat2)\((?:AT_FDCWD, )?"([^"]*)"(.*)`)
)

// resolverFiles are files that a process reads when it looks up a host name. /etc/nsswitch.conf and
// nscd's socket are not in the list, since looking up a user reads them too. bash does that if
// SHELL is not set.
var resolverFiles = []string{"/etc/resolv.conf", "/etc/hosts"}

// check verifies that nothing was made in the home folder, and checks the trace.
func (q quietPlace) check(what string) {
	q.t.Helper()
	if q.isTraced {
		q.checkTrace(what)
	}
	entries, err := os.ReadDir(q.home)
	if err != nil || len(entries) > 0 {
		q.t.Errorf("%s: the home folder holds %v (%v)", what, entries, err)
	}
}

// checkTrace verifies that programs used only loopback, looked up no name, and made no file outside
// of the workplace.
func (q quietPlace) checkTrace(what string) {
	q.t.Helper()
	f, err := os.Open(q.log)
	if err != nil {
		q.t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		if problem := q.problem(lines.Text()); problem != "" {
			q.t.Errorf("%s: %s: %s", what, problem, lines.Text())
		}
	}
	if err := lines.Err(); err != nil || n == 0 {
		q.t.Errorf("%s: %d lines were traced (%v)", what, n, err)
	}
}

func (q quietPlace) problem(line string) string {
	if m := tracedAddress.FindStringSubmatch(line); m != nil {
		if at, err := netip.ParseAddr(m[2]); err != nil || !at.IsLoopback() && !at.IsUnspecified() || m[1] == "53" {
			return "a connection to " + m[2]
		}
	}
	m := tracedFile.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	for _, file := range resolverFiles {
		if m[1] == file {
			return "a name is looked up"
		}
	}
	isMade := strings.Contains(m[2], "O_CREAT") || !strings.Contains(line, "open")
	isSystem := m[1] == os.DevNull || strings.HasPrefix(m[1], "/proc/") // the kernel's own files store nothing
	if isMade && !isSystem && filepath.IsAbs(m[1]) && !strings.HasPrefix(m[1], q.dir) {
		return "a file outside of the workplace"
	}
	return ""
}

// All verbs and their engines use only loopback, look up no name, and make files only in the
// folders that they are given. Without the setting, ONNX Runtime's builds look up a collector's
// name and keep a database in the user's cache.
func TestNothingPhonesHome(t *testing.T) {
	t.Parallel()
	model := filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx")
	for _, args := range [][]string{
		{"doctor"},
		{"convert", model, "--precision", "fp16", "-o", "converted"},
		{"profile", "-f", "profile.yaml"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			q := newQuietPlace(t)
			if text, err := q.traced(nil, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			q.check(args[0])
		})
	}
	t.Run("serve", func(t *testing.T) {
		t.Parallel()
		q := newQuietPlace(t)
		version := filepath.Join(q.dir, "repository", "mlp", "1")
		if err := os.MkdirAll(version, 0o755); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(model)
		if err == nil {
			err = os.WriteFile(filepath.Join(version, "model.onnx"), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		q.serve()
		q.check("serve")
	})
}

// serve serves the repository until it has loaded its model.
func (q quietPlace) serve() {
	q.t.Helper()
	announce, child, err := os.Pipe()
	if err != nil {
		q.t.Fatal(err)
	}
	defer func() { _ = announce.Close() }()
	cmd := q.traced([]*os.File{child}, "serve", "--model-repository", "repository", "--http-port=0", "--grpc-port=0", "--metrics-port=0", "--announce-fd=3")
	if err := cmd.Start(); err != nil {
		q.t.Fatal(err)
	}
	_ = child.Close() // so that its end closes the file
	var at api.Announcement
	if err := json.NewDecoder(announce).Decode(&at); err != nil {
		q.t.Error(err)
		_ = cmd.Process.Kill()
	} else if err := syscall.Kill(at.PID, syscall.SIGTERM); err != nil {
		q.t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		q.t.Error(err)
	}
}
