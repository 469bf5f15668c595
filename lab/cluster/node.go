package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Node is a process node. Its cores and labels do not change.
type Node struct {
	name   string
	cpus   []int
	plane  *ControlPlane
	dir    string
	image  Image
	labels map[string]string

	mu         sync.Mutex
	pods       map[string]*process // by UID
	wrapper    []string            // what runs a pod's command
	isFavoured bool                // pods come before all other programs of this machine
	quota      float64             // cores' time of a favoured pod; 0: as much as its cores have

	stop context.CancelFunc
	done sync.WaitGroup
}

// Wrap lets later pods run their command by another one; nothing: as it is.
func (n *Node) Wrap(command ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wrapper = command
}

// Favour lets later pods come before all other programs of this machine on their cores. So they are disturbed by nothing, although
// the machine is shared. No program that they wait for may be kept to those cores.
func (n *Node) Favour() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isFavoured = true
}

// Limit gives later pods a CFS quota of so many cores' time, as the kubelet does without its static CPU manager. They are favoured, so
// that they reach it.
func (n *Node) Limit(cores float64) {
	n.Favour()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.quota = cores
}

// Image has the files that a pod finds in its root beside this machine's own.
type Image struct {
	Program string // the file that pods find as /usr/bin/tuner
	Library string // ONNX Runtime
}

// objects of the API, as far as a node needs them.
type (
	meta struct {
		Name              string            `json:"name,omitempty"`
		Namespace         string            `json:"namespace,omitempty"`
		UID               string            `json:"uid,omitempty"`
		Labels            map[string]string `json:"labels,omitempty"`
		Annotations       map[string]string `json:"annotations,omitempty"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
		GraceSeconds      *int              `json:"deletionGracePeriodSeconds,omitempty"`
	}
	pod struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			NodeName           string      `json:"nodeName"`
			ServiceAccountName string      `json:"serviceAccountName"`
			Containers         []container `json:"containers"`
			Volumes            []volume    `json:"volumes"`
		} `json:"spec"`
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	container struct {
		Name    string   `json:"name"`
		Command []string `json:"command"`
		Args    []string `json:"args"`
		Env     []struct {
			Name      string `json:"name"`
			Value     string `json:"value"`
			ValueFrom struct {
				FieldRef struct {
					FieldPath string `json:"fieldPath"`
				} `json:"fieldRef"`
			} `json:"valueFrom"`
		} `json:"env"`
		VolumeMounts []struct {
			Name      string `json:"name"`
			MountPath string `json:"mountPath"`
			ReadOnly  bool   `json:"readOnly"`
		} `json:"volumeMounts"`
	}
	volume struct {
		Name      string `json:"name"`
		ConfigMap *struct {
			Name string `json:"name"`
		} `json:"configMap"`
		EmptyDir              *struct{} `json:"emptyDir"`
		Projected             *struct{} `json:"projected"` // the account's token: the API server adds it
		PersistentVolumeClaim *struct {
			ClaimName string `json:"claimName"`
		} `json:"persistentVolumeClaim"`
	}
)

// NewNode registers a node and starts its agent.
func (c *ControlPlane) NewNode(ctx context.Context, name string, cpus []int, labels map[string]string, image Image) (*Node, error) {
	n := &Node{name: name, cpus: cpus, plane: c, dir: filepath.Join(c.dir, "nodes", name), image: image, pods: map[string]*process{}, labels: map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}}
	for key, value := range labels {
		n.labels[key] = value
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, err
	}
	return n, n.Connect(ctx)
}

// Connect registers the node and starts its agent, for the first time or again.
func (n *Node) Connect(ctx context.Context) error {
	node := map[string]any{"metadata": map[string]any{"name": n.name, "labels": n.labels}}
	if err := n.plane.Create(ctx, "/api/v1/nodes", node, nil); err != nil && !IsStatus(err, 409) {
		return err
	}
	if err := n.beat(ctx); err != nil {
		return err
	}
	agent, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	n.done.Go(func() { n.each(agent, 2*time.Second, n.beat) })
	n.done.Go(func() { n.each(agent, 300*time.Millisecond, n.sync) })
	return nil
}

// each does something again and again. An API server that does not answer is asked again.
func (n *Node) each(ctx context.Context, every time.Duration, do func(ctx context.Context) error) {
	for {
		_ = do(ctx) // again soon
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// CutOff stops the agent. The pods go on, and nobody hears of them but through what they send.
func (n *Node) CutOff() {
	n.stop()
	n.done.Wait()
}

// Lose stops the agent and kills all pods, as a machine that loses power.
func (n *Node) Lose() {
	n.CutOff()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		p.kill()
	}
}

// Remove ends the node and its object.
func (n *Node) Remove(ctx context.Context) error {
	n.Lose()
	return n.plane.Delete(ctx, "/api/v1/nodes/"+n.name, nil)
}

// beat says that the node is there: its status and its lease.
func (n *Node) beat(ctx context.Context) error {
	now := time.Now().UTC()
	room := map[string]string{"cpu": strconv.Itoa(len(n.cpus)), "memory": "4Gi", "pods": "10", "ephemeral-storage": "100Gi"}
	status := map[string]any{"status": map[string]any{"capacity": room, "allocatable": room, "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "ProcessNode", "lastHeartbeatTime": now.Format(time.RFC3339), "lastTransitionTime": now.Format(time.RFC3339)}}}}
	if err := n.plane.Patch(ctx, "/api/v1/nodes/"+n.name+"/status", status); err != nil {
		return err
	}
	spec := map[string]any{"holderIdentity": n.name, "leaseDurationSeconds": 10, "renewTime": now.Format("2006-01-02T15:04:05.000000Z07:00")}
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	err := n.plane.Patch(ctx, leases+"/"+n.name, map[string]any{"spec": spec})
	if IsStatus(err, 404) {
		return n.plane.Create(ctx, leases, map[string]any{"metadata": map[string]any{"name": n.name}, "spec": spec}, nil)
	}
	return err
}

// sync starts the pods that are bound to this node, and ends those that are to end.
func (n *Node) sync(ctx context.Context) error {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := n.plane.Get(ctx, "/api/v1/pods?fieldSelector=spec.nodeName%3D"+n.name, &list); err != nil {
		return err
	}
	for _, text := range list.Items {
		var p pod
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		if err := n.take(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) take(ctx context.Context, p pod) error {
	n.mu.Lock()
	running := n.pods[p.Metadata.UID]
	n.mu.Unlock()
	isOver := p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
	switch {
	case running != nil && running.isOver() && !isOver:
		return n.reportEnd(ctx, p, running.code)
	case p.Metadata.DeletionTimestamp != nil && (running == nil || isOver):
		return n.forget(ctx, p)
	case p.Metadata.DeletionTimestamp != nil:
		running.terminate(time.Duration(*p.Metadata.GraceSeconds) * time.Second)
	case running == nil && !isOver:
		return n.launch(ctx, p)
	}
	return nil
}

// forget removes a pod that is over.
func (n *Node) forget(ctx context.Context, p pod) error {
	options := map[string]any{"gracePeriodSeconds": 0, "preconditions": map[string]any{"uid": p.Metadata.UID}}
	err := n.plane.Delete(ctx, podPath(p), options)
	if IsStatus(err, 404) || IsStatus(err, 409) {
		return nil
	}
	return err
}

func podPath(p pod) string {
	return "/api/v1/namespaces/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name
}

// launch starts a pod's process.
func (n *Node) launch(ctx context.Context, p pod) error {
	process, err := n.start(ctx, p)
	if err != nil {
		return n.report(ctx, p, "Failed", ended(127, "StartError: "+err.Error()))
	}
	n.mu.Lock()
	n.pods[p.Metadata.UID] = process
	n.mu.Unlock()
	return n.report(ctx, p, "Running", map[string]any{"running": map[string]any{"startedAt": time.Now().UTC().Format(time.RFC3339)}})
}

// reportEnd reports that a pod is over.
func (n *Node) reportEnd(ctx context.Context, p pod, code int) error {
	phase := "Failed"
	if code == 0 {
		phase = "Succeeded"
	}
	return n.report(ctx, p, phase, ended(code, ""))
}

// ended is the state of a container that has ended.
func ended(code int, message string) map[string]any {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	now := time.Now().UTC().Format(time.RFC3339)
	return map[string]any{"terminated": map[string]any{"exitCode": code, "reason": reason, "message": message, "startedAt": now, "finishedAt": now}}
}

// report writes the state of a pod.
func (n *Node) report(ctx context.Context, p pod, phase string, state map[string]any) error {
	ready := "False"
	if phase == "Running" {
		ready = "True"
	}
	c := p.Spec.Containers[0]
	status := map[string]any{"status": map[string]any{
		"phase":             phase,
		"conditions":        []any{map[string]any{"type": "Ready", "status": ready}},
		"containerStatuses": []any{map[string]any{"name": c.Name, "image": "", "imageID": "", "ready": ready == "True", "restartCount": 0, "state": state}},
	}}
	return n.plane.Patch(ctx, podPath(p)+"/status", status)
}

// Log returns what the pods of this node have written, the newest last.
func (n *Node) Log() string {
	files, _ := filepath.Glob(filepath.Join(n.dir, "*.log")) // the pattern is valid
	var b strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		fmt.Fprintf(&b, "== %s\n%s", filepath.Base(file), text)
		if err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	return b.String()
}
