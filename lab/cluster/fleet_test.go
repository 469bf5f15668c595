//go:build cluster

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tuner/fleet/cluster"
	"tuner/fleet/results"
	"tuner/internal/checksum"
	"tuner/internal/exit"
	"tuner/profile/journal"
)

// ground is the cluster of all tests. Two nodes have one core and are of one type, one has two cores, and one
// has a quota.
type ground struct {
	*ControlPlane
	tuner        string
	image        Image
	first, other *Node   // one core each
	limited      *Node   // half of a core's time
	spares       []*Node // one core each, which they share, for tests that judge no figure
	models       string
}

// The labels of the types of nodes.
var (
	oneCore  = map[string]string{"tuner.dev/type": "one"}
	twoCores = map[string]string{"tuner.dev/type": "two"}
)

func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run this test by its target in lab/Makefile", name)
	}
	return value
}

func newGround(t *testing.T) *ground {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("process nodes mount the roots of their pods: run `make cluster-test` as root")
	}
	dir := shortDir(t)
	plane, err := Start(t.Context(), environment(t, "TUNER_CONTROLPLANE"), dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, tails(dir))
	}
	g := &ground{ControlPlane: plane, tuner: environment(t, "TUNER_BINARY"), models: filepath.Join(dir, "models"),
		image: Image{Program: environment(t, "TUNER_BINARY"), Library: environment(t, "TUNER_ORT_LIBRARY")}}
	t.Cleanup(func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"mlp", "cnn"} {
		text, err := os.ReadFile(filepath.Join(environment(t, "TUNER_MODELS"), name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(g.models, name+".onnx"), string(text))
	}
	g.first = g.node(t, "one-a", []int{0}, oneCore)
	g.other = g.node(t, "one-b", []int{1}, oneCore)
	g.node(t, "two-a", []int{0, 1}, twoCores)
	g.limited = g.node(t, "half-a", []int{1}, map[string]string{"tuner.dev/type": "half"})
	g.limited.Limit(0.5)
	for i, name := range []string{"spare-a", "spare-b", "spare-c", "spare-d"} {
		g.spares = append(g.spares, g.node(t, name, []int{i % 2}, map[string]string{"tuner.dev/type": "spare"}))
	}
	return g
}

// shortDir makes a folder that pods of any user can see.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tails returns the ends of the programs' logs.
func tails(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is valid
	var b strings.Builder
	for _, file := range files {
		text, _ := os.ReadFile(file) // one that cannot be read is empty
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(file), text[max(0, len(text)-2000):])
	}
	return b.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (g *ground) node(t *testing.T, name string, cpus []int, labels map[string]string) *Node {
	t.Helper()
	n, err := g.NewNode(t.Context(), name, cpus, labels, g.image)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Lose() })
	return n
}

// user is somebody with a fleet.yaml in a namespace of its own.
type user struct {
	*ground
	dir, namespace string
	env            []string // beside kubectl's
}

// newUser makes a namespace that enforces Pod Security "restricted", with a claim of the models.
//
// more are further fields of `cluster:`.
func (g *ground) newUser(t *testing.T, fleet string, more ...string) *user {
	t.Helper()
	u := &user{ground: g, dir: t.TempDir(), namespace: "n" + fmt.Sprint(time.Now().UnixNano())}
	create := func(path string, object map[string]any) {
		if err := g.Create(t.Context(), path, object, nil); err != nil {
			t.Fatal(err)
		}
	}
	create("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": u.namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}}})
	room := map[string]any{"storage": "1Gi"}
	create("/api/v1/persistentvolumes", map[string]any{"metadata": map[string]any{"name": u.namespace}, "spec": map[string]any{
		"capacity": room, "accessModes": []string{"ReadOnlyMany"}, "hostPath": map[string]any{"path": g.models},
		"claimRef": map[string]any{"namespace": u.namespace, "name": "models"}}})
	create("/api/v1/namespaces/"+u.namespace+"/persistentvolumeclaims", map[string]any{"metadata": map[string]any{"name": "models"}, "spec": map[string]any{
		"accessModes": []string{"ReadOnlyMany"}, "storageClassName": "", "volumeName": u.namespace, "resources": map[string]any{"requests": room}}})
	write(t, filepath.Join(u.dir, "plain.yaml"), "model: m.onnx\n")
	write(t, filepath.Join(u.dir, "impossible.yaml"), "model: m.onnx\nconstraints: {latency_p99: {max: 1us}}\n")
	fields := append([]string{"namespace: " + u.namespace, `image: "tuner@sha256:` + strings.Repeat("6", 64) + `"`}, more...)
	write(t, filepath.Join(u.dir, "fleet.yaml"), fleet+"cluster: {"+strings.Join(fields, ", ")+"}\n")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pods:\n%s", u.logs())
		}
		// The cleanup of a test has no context of the test.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Delete(ctx, "/api/v1/namespaces/"+u.namespace, nil); err != nil {
			t.Error(err)
		}
	})
	return u
}

func (u *user) logs() string {
	files, _ := filepath.Glob(filepath.Join(u.ControlPlane.dir, "nodes", "*", "*.log")) // the pattern is valid
	var b strings.Builder
	for _, file := range files[max(0, len(files)-8):] {
		text, _ := os.ReadFile(file) // one that cannot be read is empty
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(file), text[max(0, len(text)-1500):])
	}
	return b.String()
}

// run runs tuner in the user's folder, and returns its outputs and its exit code.
func (u *user) run(t *testing.T, args ...string) (out, messages string, code int) {
	t.Helper()
	r := u.start(t, args...)
	code = r.wait(t)
	return r.out.String(), r.messages.String(), code
}

// running is a tuner that runs.
type running struct {
	cmd           *exec.Cmd
	out, messages text
	over          chan struct{}
}

// text has all that a program has written so far.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

func (u *user) start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.Command(u.tuner, args...), over: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = u.dir, append(u.Kubectl(), u.env...), &r.out, &r.messages
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait() // its state says how it ended
		close(r.over)
	}()
	t.Cleanup(r.kill)
	return r
}

// longest bounds every wait of a test: a campaign here takes less than a minute, on a busy machine two.
const longest = 6 * time.Minute

func (r *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-r.over:
	case <-time.After(longest):
		t.Fatalf("tuner %s does not end:\n%s", r.cmd.Args[1:], &r.messages)
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *running) kill() {
	_ = r.cmd.Process.Kill() // fails only if it has ended
	<-r.over
}

// says waits until the program has written something to its messages.
func (r *running) says(t *testing.T, what string) {
	t.Helper()
	for began := time.Now(); !strings.Contains(r.messages.String(), what); {
		select {
		case <-r.over:
			if !strings.Contains(r.messages.String(), what) {
				t.Fatalf("tuner has ended (%d) and has not said %q:\n%s", r.cmd.ProcessState.ExitCode(), what, &r.messages)
			}
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(began) > longest {
			t.Fatalf("tuner does not say %q:\n%s", what, &r.messages)
		}
	}
}

// states asks for the state of each campaign.
func (u *user) states(t *testing.T) []cluster.Status {
	t.Helper()
	out, messages, code := u.run(t, "fleet", "status", "--format", "json")
	var list []cluster.Status
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exit.OK {
		t.Fatalf("%v, %d: %s", err, code, messages)
	}
	return list
}

// collected reads the list of collected campaigns.
func (u *user) collected(t *testing.T) results.List {
	t.Helper()
	l, err := results.Read(filepath.Join(u.dir, "out", "q3"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// folder returns the folder of a collected campaign.
func (u *user) folder(c results.Campaign) string { return filepath.Join(u.dir, "out", "q3", c.Folder) }

func (u *user) journal(t *testing.T, c results.Campaign) string {
	t.Helper()
	return read(t, filepath.Join(u.folder(c), journal.FileName))
}

// podOf returns the process of the user's pod that runs on one of some nodes.
func (u *user) podOf(t *testing.T, nodes ...*Node) (*Node, *process) {
	t.Helper()
	var at *Node
	var found *process
	u.await(t, "a pod to run", func() bool {
		for _, n := range nodes {
			for _, p := range n.of(u.namespace) {
				if !p.isOver() {
					at, found = n, p
				}
			}
		}
		return found != nil
	})
	return at, found
}

// await waits until something is so.
func (u *user) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := u.Await(t.Context(), longest, what, func(context.Context) bool { return is() }); err != nil {
		t.Fatalf("%v\n%s", err, u.logs())
	}
}

// evict evicts the pod of the user's only campaign, as a drain does.
func (u *user) evict(t *testing.T) {
	t.Helper()
	name := u.states(t)[0].Pod
	eviction := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": name, "namespace": u.namespace}}
	if err := u.Create(t.Context(), "/api/v1/namespaces/"+u.namespace+"/pods/"+name+"/eviction", eviction, nil); err != nil {
		t.Fatal(err)
	}
}

// isNotCharged fails the test if a failure counts against an index of the user's jobs.
func (u *user) isNotCharged(t *testing.T) {
	t.Helper()
	var pods struct {
		Items []pod `json:"items"`
	}
	if err := u.Get(t.Context(), "/api/v1/namespaces/"+u.namespace+"/pods", &pods); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if n := p.Metadata.Annotations["batch.kubernetes.io/job-index-failure-count"]; n != "0" {
			t.Errorf("pod %s: %q failures count against its index", p.Metadata.Name, n)
		}
	}
}

// delivered returns how many bytes of its journal an attempt has delivered.
func (u *user) delivered(t *testing.T, attempt string) int64 {
	t.Helper()
	for _, d := range u.deliveries(t) {
		for _, a := range d.Attempts {
			if a.UID == attempt {
				return a.Bytes
			}
		}
	}
	return 0
}

// measuring waits until the campaign of a pod has measured something.
func (u *user) measuring(t *testing.T, p *process) {
	t.Helper()
	u.await(t, "a campaign to measure", func() bool { return strings.Count(p.journal(), "\n") > 3 || p.isOver() })
}

const oneModel = `name: q3
models: {mlp: {profile: plain.yaml, from: pvc://models/mlp.onnx}}
machines: {one: {select: {tuner.dev/type: one}, cpus: 1, memory: 1Gi, price: {per_hour: 0.36}}}
search: {budget: 15s}
`

func digestOf(t *testing.T, path string) string {
	t.Helper()
	digest, err := checksum.File(path)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
