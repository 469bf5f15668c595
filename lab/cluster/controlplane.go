package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// adminToken is the administrator's in a cluster that only this machine can reach.
const adminToken = "token-of-a-cluster-for-tests"

// ControlPlane is a running control plane.
type ControlPlane struct {
	API
	Kubeconfig string // path, for kubectl
	authority  string // path of the API server's certificate
	programs   string // folder
	dir        string
	etcd       string // address for clients
	peers      string // address for other members, of which there are none
	running    []*exec.Cmd
	store      []*exec.Cmd // etcd and the API server, which can go away for a while

	mu    sync.Mutex
	wires map[string]string // what pods of a namespace find as the API server, in place of it
}

// The times after which the node controller takes a silent node for lost. They are shorter than
// Kubernetes' own of 50 s, so that tests take less.
const (
	nodeGrace  = 12 * time.Second
	nodePeriod = 2 * time.Second
)

// Start starts the programs of a folder, with their files in dir.
func Start(ctx context.Context, programs, dir string) (*ControlPlane, error) {
	c := &ControlPlane{programs: programs, dir: dir, wires: map[string]string{}, Kubeconfig: filepath.Join(dir, "kubeconfig"), authority: filepath.Join(dir, "certs", "apiserver.crt")}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	c.etcd = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	c.peers = fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	c.API = newAPI(fmt.Sprintf("https://127.0.0.1:%d", ports[2]), adminToken)
	if err := c.writeFiles(); err != nil {
		return nil, err
	}
	if err := c.startStore(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	controllers := "job-controller,ttl-after-finished-controller,garbage-collector-controller,pod-garbage-collector-controller," +
		"node-lifecycle-controller,taint-eviction-controller,persistentvolume-binder-controller,namespace-controller,serviceaccount-controller," +
		"root-ca-certificate-publisher-controller"
	for _, args := range [][]string{
		{"kube-controller-manager", "--kubeconfig=" + c.Kubeconfig, "--controllers=" + controllers, "--leader-elect=false", "--secure-port=0",
			"--root-ca-file=" + c.authority, "--service-account-private-key-file=" + filepath.Join(dir, "sa.key"), "--node-monitor-grace-period=" + nodeGrace.String(), "--node-monitor-period=" + nodePeriod.String()},
		{"kube-scheduler", "--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0"},
	} {
		cmd, err := c.start(args...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.running = append(c.running, cmd)
	}
	return c, nil
}

// freePorts returns ports that nobody listens on.
func freePorts(n int) ([]int, error) {
	var list []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		list = append(list, l.Addr().(*net.TCPAddr).Port)
	}
	return list, nil
}

func (c *ControlPlane) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	kubeconfig := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + c.address + `", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: ` + adminToken + `}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	for name, text := range map[string][]byte{
		"sa.key":     pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"tokens.csv": []byte(adminToken + ",admin,admin,system:masters\n"),
		"kubeconfig": []byte(kubeconfig),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// start starts a program with its output in a file of its name. It ends with this process.
func (c *ControlPlane) start(args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(c.programs, args[0]), args[1:]...)
	log, err := os.OpenFile(filepath.Join(c.dir, args[0]+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}

// startStore starts etcd and the API server, and waits until they answer.
func (c *ControlPlane) startStore(ctx context.Context) error {
	in := func(name string) string { return filepath.Join(c.dir, name) }
	_, port, _ := strings.Cut(strings.TrimPrefix(c.address, "https://"), ":")
	for _, args := range [][]string{
		{"etcd", "--data-dir", in("etcd"), "--listen-client-urls", c.etcd, "--advertise-client-urls", c.etcd, "--listen-peer-urls", c.peers,
			"--initial-advertise-peer-urls", c.peers, "--initial-cluster", "default=" + c.peers, "--unsafe-no-fsync", "--log-level", "error"},
		{"kube-apiserver", "--etcd-servers=" + c.etcd, "--cert-dir=" + in("certs"), "--bind-address=127.0.0.1", "--secure-port=" + port,
			"--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC", "--token-auth-file=" + in("tokens.csv"),
			"--service-account-issuer=https://localhost", "--service-account-key-file=" + in("sa.key"), "--service-account-signing-key-file=" + in("sa.key"), "--profiling=false",
			"--kubelet-preferred-address-types=InternalIP"},
	} {
		cmd, err := c.start(args...)
		if err != nil {
			return err
		}
		c.store = append(c.store, cmd)
	}
	return c.Await(ctx, 2*time.Minute, "the API server to be ready", func(ctx context.Context) bool {
		return c.Get(ctx, "/readyz", nil) == nil
	})
}

// Await asks until something is so.
func (c *ControlPlane) Await(ctx context.Context, most time.Duration, what string, is func(ctx context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for !is(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s", most, what)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// Outage takes etcd and the API server away for a time.
func (c *ControlPlane) Outage(ctx context.Context, lasts time.Duration) error {
	end(c.store...)
	c.store = nil
	time.Sleep(lasts)
	return c.startStore(ctx)
}

// end kills processes and waits for them.
func end(list ...*exec.Cmd) {
	for _, cmd := range list {
		_ = cmd.Process.Kill() // fails only if it has ended
		_ = cmd.Wait()         // its status does not matter
	}
}

// Processes returns the IDs of all programs that run.
func (c *ControlPlane) Processes() []int {
	var list []int
	for _, cmd := range append(slices.Clone(c.running), c.store...) {
		list = append(list, cmd.Process.Pid)
	}
	return list
}

// Close ends all programs.
func (c *ControlPlane) Close() error {
	end(c.running...)
	end(c.store...)
	return nil
}

// Kubectl returns the environment in which kubectl asks this cluster.
func (c *ControlPlane) Kubectl() []string {
	return append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+c.programs+":"+os.Getenv("PATH"))
}
