package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a pod that runs.
type process struct {
	cmd       *exec.Cmd
	uid       string // of its pod
	namespace string
	began     time.Time
	work      string        // its folder for what a campaign writes
	over      chan struct{} // closed when it has ended
	code      int           // its exit code, then
	once      sync.Once
}

// isOver reports whether it has ended.
func (p *process) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// kill ends the pod at once, with all that it started.
func (p *process) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) } // fails only if it has ended

// terminate asks the pod to end, and kills it after its grace.
func (p *process) terminate(grace time.Duration) {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
		go func() {
			select {
			case <-p.over:
			case <-time.After(grace):
				p.kill()
			}
		}()
	})
}

// mounts collects the lines of a script that makes a pod's root.
type mounts struct {
	root  string
	lines []string
}

func (m *mounts) add(format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

// bind shows a folder or file of this machine in the pod. /var/run is a link to /run, which a path from
// outside of the pod's root must not follow.
func (m *mounts) bind(from, to string, isReadOnly bool) {
	if rest, ok := strings.CutPrefix(to, "/var/run/"); ok {
		to = "/run/" + rest
	}
	m.add("test -d %[1]q && mkdir -p %[2]q || { mkdir -p $(dirname %[2]q); touch %[2]q; }", from, m.root+to)
	m.add("mount --bind %q %q", from, m.root+to)
	if isReadOnly {
		m.add("mount -o remount,ro,bind %q", m.root+to)
	}
}

// period is CFS's usual one, in which a quota counts.
const period = 100_000 // µs

// groupOf returns the folder of a pod's group.
func groupOf(uid string) string { return "/sys/fs/cgroup/cpu/tuner-cluster-" + uid }

// mostShares is the kernel's highest weight of a group; a program without a group of its own has 1,024.
const mostShares = 262_144

// favour moves the pod into a group of version 1 with the highest weight, and with a quota unless that is 0.
func (m *mounts) favour(group string, cores float64) {
	m.add("mkdir -p %q", group)
	m.add("echo %d > %q/cpu.shares", mostShares, group)
	if cores > 0 {
		m.add("echo %d > %q/cpu.cfs_period_us", period, group)
		m.add("echo %d > %q/cpu.cfs_quota_us", int(cores*period), group)
	}
	m.add("echo $$ > %q/cgroup.procs", group)
}

// library is where pods find ONNX Runtime.
const library = "/opt/onnxruntime/libonnxruntime.so"

// start starts a pod's command in an overlay of this machine's root, as user 1000.
func (n *Node) start(ctx context.Context, p pod) (*process, error) {
	c := p.Spec.Containers[0]
	base := filepath.Join(n.dir, p.Metadata.UID)
	fs := filepath.Join(base, "fs")
	if err := os.MkdirAll(fs, 0o755); err != nil {
		return nil, err
	}
	m := &mounts{root: fs + "/root"}
	m.add("set -e")
	m.add("mount -t tmpfs tmpfs %q && cd %q && mkdir upper work root", fs, fs)
	m.add("mount -t overlay overlay -o lowerdir=/,upperdir=%[1]s/upper,workdir=%[1]s/work %[1]s/root", fs)
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		m.add("mount --rbind %s %q", dir, m.root+dir)
	}
	m.bind(n.image.Program, "/usr/bin/tuner", true)
	m.bind(n.image.Library, library, true)
	for _, at := range c.VolumeMounts {
		from, err := n.volume(ctx, p, at.Name)
		if err != nil {
			return nil, err
		}
		m.bind(from, at.MountPath, at.ReadOnly)
	}
	var cpus []string
	for _, cpu := range n.cpus {
		cpus = append(cpus, fmt.Sprint(cpu))
	}
	n.mu.Lock()
	isFavoured, quota, wrapper := n.isFavoured, n.quota, n.wrapper
	n.mu.Unlock()
	if isFavoured {
		m.favour(groupOf(p.Metadata.UID), quota)
	}
	m.add("exec taskset -c %s chroot --userspec=1000:1000 %q \"$@\"", strings.Join(cpus, ","), m.root)
	args := append([]string{"-m", "--propagation", "private", "/bin/bash", "-c", strings.Join(m.lines, "\n"), "pod"}, wrapper...)
	return n.run(p, append(append(args, c.Command...), c.Args...))
}

// run starts the script of a pod with its environment, and waits for its end in the background.
func (n *Node) run(p pod, args []string) (*process, error) {
	cmd := exec.Command("unshare", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	host, port, err := net.SplitHostPort(n.plane.serverOf(p.Metadata.Namespace))
	if err != nil {
		return nil, err
	}
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOSTNAME=" + p.Metadata.Name, "KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "TUNER_ORT_LIBRARY=" + library}
	for _, e := range p.Spec.Containers[0].Env {
		value := e.Value
		if field := e.ValueFrom.FieldRef.FieldPath; field != "" {
			value = fieldOf(p, field)
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	log, err := os.Create(filepath.Join(n.dir, p.Metadata.Name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	running := &process{cmd: cmd, uid: p.Metadata.UID, namespace: p.Metadata.Namespace, began: time.Now(), work: filepath.Join(n.dir, p.Metadata.UID, "volumes", "work"), over: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state says how it ended
		running.code = cmd.ProcessState.ExitCode()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			running.code = 128 + int(status.Signal())
		}
		running.kill()                         // what it left behind, as the end of a container does
		_ = os.Remove(groupOf(p.Metadata.UID)) // there only for a favoured pod
		close(running.over)
	}()
	return running, nil
}

// fieldOf returns a field of a pod for the downward API.
func fieldOf(p pod, path string) string {
	if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return p.Metadata.Annotations[strings.TrimSuffix(key, "']")]
	}
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return p.Metadata.Labels[strings.TrimSuffix(key, "']")]
	}
	return map[string]string{"metadata.name": p.Metadata.Name, "metadata.uid": p.Metadata.UID, "metadata.namespace": p.Metadata.Namespace, "spec.nodeName": p.Spec.NodeName}[path]
}

// volume returns the folder of a pod's volume.
func (n *Node) volume(ctx context.Context, p pod, name string) (string, error) {
	dir := filepath.Join(n.dir, p.Metadata.UID, "volumes", name)
	for _, v := range p.Spec.Volumes {
		switch {
		case v.Name != name:
		case v.EmptyDir != nil:
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return "", err
			}
			return dir, os.Chmod(dir, 0o777) // fsGroup
		case v.Projected != nil:
			return n.token(ctx, p)
		case v.ConfigMap != nil:
			return dir, n.configMap(ctx, p, v.ConfigMap.Name, dir)
		case v.PersistentVolumeClaim != nil:
			return n.claim(ctx, p, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return "", fmt.Errorf("volume %q is of no known kind", name)
}

func (n *Node) configMap(ctx context.Context, p pod, name, dir string) error {
	var m struct {
		Data map[string]string `json:"data"`
	}
	if err := n.plane.Get(ctx, "/api/v1/namespaces/"+p.Metadata.Namespace+"/configmaps/"+name, &m); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, text := range m.Data {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// claim returns the folder of the volume to which a claim is bound.
func (n *Node) claim(ctx context.Context, p pod, name string) (string, error) {
	var claim struct {
		Spec struct {
			VolumeName string `json:"volumeName"`
		} `json:"spec"`
	}
	if err := n.plane.Get(ctx, "/api/v1/namespaces/"+p.Metadata.Namespace+"/persistentvolumeclaims/"+name, &claim); err != nil {
		return "", err
	}
	var v struct {
		Spec struct {
			HostPath struct {
				Path string `json:"path"`
			} `json:"hostPath"`
		} `json:"spec"`
	}
	return v.Spec.HostPath.Path, n.plane.Get(ctx, "/api/v1/persistentvolumes/"+claim.Spec.VolumeName, &v)
}

// token writes a token that is bound to the pod, and what a pod finds beside it.
func (n *Node) token(ctx context.Context, p pod) (string, error) {
	request := map[string]any{"spec": map[string]any{"expirationSeconds": 3600, "boundObjectRef": map[string]any{"kind": "Pod", "apiVersion": "v1", "name": p.Metadata.Name, "uid": p.Metadata.UID}}}
	var answer struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := n.plane.Create(ctx, "/api/v1/namespaces/"+p.Metadata.Namespace+"/serviceaccounts/"+p.Spec.ServiceAccountName+"/token", request, &answer); err != nil {
		return "", err
	}
	authority, err := os.ReadFile(n.plane.authority)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(n.dir, p.Metadata.UID, "token")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string]string{"token": answer.Status.Token, "namespace": p.Metadata.Namespace, "ca.crt": string(authority)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}
