//go:build cluster && kubelet

package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tuner/fleet/record"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
)

// real is a node with a kubelet, containerd and runc.
type real struct {
	*ground
	programs string // folder of the node's own
	dir      string
	image    string // digests: of tuner's image, and of the model's
	model    string
}

const (
	nodeName       = "real-a"
	nodeAddress    = "10.88.0.1" // its pods have others of the same network
	serviceAddress = "10.0.0.1"  // the API server's for pods: the first of --service-cluster-ip-range
)

// TestKubelet runs fleets in containers: images without a registry, the model in an image volume, and cores of its own by the
// kubelet's static CPU manager. lab/scripts/apart.sh ends and removes what it leaves behind.
func TestKubelet(t *testing.T) {
	group := environment(t, "TUNER_GROUP")
	dir, err := os.MkdirTemp("", "node") // it has mounts to the end, so this test does not remove it
	if err != nil {
		t.Fatal(err)
	}
	n := &real{programs: environment(t, "TUNER_KUBELET"), dir: dir}
	n.network(t)
	plane, err := Start(t.Context(), environment(t, "TUNER_CONTROLPLANE"), dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, tails(dir))
	}
	t.Cleanup(func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	})
	n.ground = &ground{ControlPlane: plane, tuner: environment(t, "TUNER_BINARY"), models: filepath.Join(dir, "models")}
	n.serve(t)
	n.containerd(t)
	n.load(t, "pause", map[string]any{"Entrypoint": []string{"/pause"}}, []file{{"pause", filepath.Join(n.programs, "pause"), 0o755}})
	n.image = n.load(t, "tuner", map[string]any{"Env": []string{"PATH=/usr/bin", "TUNER_ORT_LIBRARY=" + library}},
		programFiles(t, Image{Program: n.tuner, Library: environment(t, "TUNER_ORT_LIBRARY")}))
	n.model = n.load(t, "mlp", map[string]any{}, []file{{"mlp.onnx", filepath.Join(environment(t, "TUNER_MODELS"), "mlp.onnx"), 0o644}})
	t.Run("static CPU manager", func(t *testing.T) {
		n.kubelet(t, group, "static")
		t.Run("a whole fleet", n.testFleet)
		t.Run("a pod is evicted", n.testEvicted)
	})
	t.Run("no CPU manager", func(t *testing.T) {
		n.kubelet(t, group, "none")
		n.testNoCores(t)
	})
}

// newUser has a fleet of one campaign on the node, with a budget, that wants cores of its own.
func (n *real) newUser(t *testing.T, budget string) *user {
	t.Helper()
	u := n.ground.newUser(t, `name: q3
models: {mlp: {profile: plain.yaml, from: "oci://docker.io/library/mlp@`+n.model+`#mlp.onnx"}}
machines: {one: {select: {tuner.dev/type: real}, cpus: 1, memory: 1Gi, price: {per_hour: 0.36}}}
search: {budget: `+budget+`}
`, "exclusive: cores")
	path := filepath.Join(u.dir, "fleet.yaml")
	write(t, path, strings.Replace(read(t, path), "tuner@sha256:"+strings.Repeat("6", 64), "docker.io/library/tuner@"+n.image, 1))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\n%s\n%s", u.kubectl("describe", "pods"), u.podLogs(), tails(n.dir))
		}
	})
	return u
}

// kubectl returns what kubectl says about the user's namespace.
func (u *user) kubectl(args ...string) string {
	cmd := exec.Command(filepath.Join(u.programs, "kubectl"), append([]string{"-n", u.namespace}, args...)...)
	cmd.Env = u.Kubectl()
	out, _ := cmd.CombinedOutput() // it is for people, and so is an error
	return string(out)
}

// podLogs returns what the user's pods have written, as the kubelet tells the API server.
func (u *user) podLogs() string {
	return u.kubectl("logs", "--selector", record.LabelRun, "--tail=-1")
}

// The campaign has a core of its own and no quota, and its record names the node, the image, and the limit of its memory.
func (n *real) testFleet(t *testing.T) {
	u := n.newUser(t, "15s")
	out, messages, code := u.run(t, "fleet", "run")
	if code != exit.OK {
		t.Fatalf("%d\n%s\n%s", code, messages, out)
	}
	t.Logf("%s", out)
	u.isWhole(t)
	p := u.collected(t).Campaigns[0].Result.Placement
	t.Logf("%s", p)
	core, err := strconv.Atoi(p.CPUs)
	want := hostinfo.Placement{Node: nodeName, BootID: p.BootID, CPUs: p.CPUs, Memory: 1 << 30, Image: n.image}
	if err != nil || core == 0 || p != want { // core 0 is the system's
		t.Errorf("%+v", p)
	}
}

// An evicted pod delivers its last segment, also as the first process of a container. The attempt does not count.
func (n *real) testEvicted(t *testing.T) {
	u := n.newUser(t, "20s")
	r := u.start(t, "fleet", "run")
	u.await(t, "a campaign to measure", func() bool {
		uid := u.kubectl("get", "pods", "--output", "jsonpath={.items[*].metadata.uid}")
		text, _ := os.ReadFile(filepath.Join(n.dir, "kubelet-static", "pods", uid, "volumes", "kubernetes.io~empty-dir", "work", "out", "journal.jsonl")) // "" before there is one
		return strings.Count(string(text), "\n") > 3
	})
	u.evict(t)
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	if c := u.collected(t).Campaigns[0]; len(c.Discarded) != 1 || u.delivered(t, c.Discarded[0]) == 0 {
		t.Errorf("%+v", c)
	}
	u.isNotCharged(t)
}

// Without the static CPU manager, a pod that wants cores of its own is not tried again, and says what the administrator can do.
func (n *real) testNoCores(t *testing.T) {
	u := n.newUser(t, "10s")
	_, messages, code := u.run(t, "fleet", "run")
	if code != exit.Inconclusive || !strings.Contains(messages, "one mlp: given up") || u.states(t)[0].Attempts != 1 {
		t.Errorf("%d\n%s", code, messages)
	}
	if log := u.podLogs(); !strings.Contains(log, "let the administrator set cpuManagerPolicy: static") {
		t.Errorf("%s", log)
	}
}

// network makes the network of the node and its pods.
func (n *real) network(t *testing.T) {
	t.Helper()
	run(t, "ip", "address", "add", serviceAddress+"/32", "dev", "lo")
	run(t, "ip", "link", "add", "pods", "type", "bridge")
	run(t, "ip", "address", "add", nodeAddress+"/24", "dev", "pods")
	run(t, "ip", "link", "set", "pods", "up")
	run(t, "ip", "route", "add", "default", "dev", "pods") // the API server wants one, to know its own address
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
}

// serve lets pods reach the API server at its service's address, as kube-proxy does.
func (n *real) serve(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", serviceAddress+":443")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", strings.TrimPrefix(n.address, "https://"))
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1]) // either end may close
					_ = pair[0].Close()
				}()
			}
		}
	}()
}

// start starts a program of the node with its output in a file of its name. It ends with the test.
func (n *real) start(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(n.programs, name), args...)
	log, err := os.OpenFile(filepath.Join(n.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "PATH="+n.programs+":"+os.Getenv("PATH")) // containerd looks for its shim there
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
		_ = cmd.Wait()                          // its status does not matter
		_ = log.Close()
	})
}

// ctr returns the arguments of a command for containerd about what the kubelet sees of it.
func (n *real) ctr(args ...string) []string {
	return append([]string{filepath.Join(n.programs, "ctr"), "--address", filepath.Join(n.dir, "containerd.sock"), "--namespace", "k8s.io"}, args...)
}

// containerd starts containerd, and waits until it answers.
func (n *real) containerd(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(n.dir, "cni", "10-pods.conflist"), `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
 "ipam": {"type": "host-local", "dataDir": "`+n.dir+`/addresses", "ranges": [[{"subnet": "10.88.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`)
	write(t, filepath.Join(n.dir, "containerd.toml"), strings.ReplaceAll(`version = 3
root = "DIR/root"
state = "DIR/state"
[grpc]
  address = "DIR/containerd.sock"
[plugins.'io.containerd.internal.v1.opt']
  path = "DIR/opt"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "docker.io/library/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true # virtual machines may lack the capability to lower it
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "DIR/cni"
`, "DIR", n.dir))
	n.start(t, "containerd", "--config", filepath.Join(n.dir, "containerd.toml"))
	version := n.ctr("version")
	err := n.Await(t.Context(), time.Minute, "containerd", func(context.Context) bool { return exec.Command(version[0], version[1:]...).Run() == nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, tails(n.dir))
	}
}

// load makes an image and gives it to containerd. It returns its digest.
func (n *real) load(t *testing.T, name string, config map[string]any, files []file) string {
	t.Helper()
	path, reference := filepath.Join(n.dir, name+".tar"), "docker.io/library/"+name
	digest := archive(t, path, config, files)
	run(t, n.ctr("images", "import", "--digests", "--base-name", reference, path)...)
	run(t, n.ctr("images", "tag", reference+"@"+digest, reference+":1")...)
	return digest
}

// kubelet starts a kubelet whose control groups are below group, and waits until its node is ready. It keeps core 0 for the system. Its
// lease is shorter than the control plane's grace.
func (n *real) kubelet(t *testing.T, group, cpuManager string) {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(n.dir, "kubelet-"+cpuManager)
	write(t, root+".yaml", fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: %s
cpuManagerPolicy: %s
reservedSystemCPUs: "0"
containerRuntimeEndpoint: unix://%s/containerd.sock
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
failSwapOn: false
makeIPTablesUtilChains: false
address: %s
port: %d
healthzPort: 0
resolvConf: ""
nodeLeaseDurationSeconds: 8
nodeStatusUpdateFrequency: 2s
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
podLogsDir: %s/logs
volumePluginDir: %[6]s/plugins
`, group, cpuManager, n.dir, nodeAddress, ports[0], root))
	n.start(t, "kubelet", "--config="+root+".yaml", "--kubeconfig="+n.Kubeconfig, "--hostname-override="+nodeName, "--node-ip="+nodeAddress,
		"--root-dir="+root, "--cert-dir="+filepath.Join(root, "pki"), "--node-labels=tuner.dev/type=real")
	began := time.Now() // after the heartbeats of another kubelet of this node
	err = n.Await(t.Context(), 2*time.Minute, "the node to be ready", func(ctx context.Context) bool {
		var node struct {
			Status struct {
				Conditions []struct {
					Type, Status string
					Heartbeat    time.Time `json:"lastHeartbeatTime"`
				} `json:"conditions"`
			} `json:"status"`
			Spec struct {
				Taints []any `json:"taints"`
			} `json:"spec"`
		}
		if n.Get(ctx, "/api/v1/nodes/"+nodeName, &node) != nil || len(node.Spec.Taints) > 0 {
			return false
		}
		for _, c := range node.Status.Conditions {
			if c.Type == "Ready" {
				return c.Status == "True" && c.Heartbeat.After(began)
			}
		}
		return false
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, tails(n.dir))
	}
}
