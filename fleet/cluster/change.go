package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"tuner/fleet/record"
)

// fieldManager names tuner to the API server, as the owner of the fields that it applies.
const fieldManager = "tuner"

// Apply creates objects, given as YAML documents. Objects that are there stay, or get the fields given.
func (k Kubectl) Apply(ctx context.Context, documents []byte) error {
	_, err := k.run(ctx, "create the objects of the fleet", documents, "apply", "--server-side", "--field-manager", fieldManager, "--filename", "-")
	return err
}

// Create creates a record. Whether it was there is not an error: the record that is there counts.
func (k Kubectl) Create(ctx context.Context, m record.ConfigMap) (created bool, err error) {
	text, err := json.Marshal(m)
	if err != nil {
		return false, fmt.Errorf("cannot encode the record %q: %w", m.Metadata.Name, err)
	}
	_, err = k.run(ctx, "create the record "+m.Metadata.Name, text, "create", "--filename", "-")
	if err == nil {
		return true, nil
	}
	// kubectl has one exit code for all failures, so the record itself says which it was.
	if _, second := k.run(ctx, "ask for the record "+m.Metadata.Name, nil, "get", "configmap", m.Metadata.Name, "--output", "name"); second == nil {
		return false, nil
	}
	return false, err
}

// Delete deletes the jobs, pods, plans and records of a run. It does not wait for pods to end.
func (k Kubectl) Delete(ctx context.Context, run string) ([]string, error) {
	out, err := k.run(ctx, "delete the run "+run, nil, "delete", "jobs,configmaps", "--selector", record.LabelRun+"="+run, "--ignore-not-found", "--wait=false", "--output", "name")
	return strings.Fields(string(out)), err
}

// Node is the state of a node, as far as a rescue needs it.
type Node int

// The states of a node.
const (
	NodeReady   Node = iota // it answers
	NodeSilent              // its kubelet does not answer, or the node is gone
	NodeUnknown             // the user may not read nodes
)

// NodeState asks whether a node answers.
func (k Kubectl) NodeState(ctx context.Context, name string) Node {
	// A node that is gone is an empty answer; without the right to read it, the question fails.
	out, err := k.run(ctx, "ask for the node "+name, nil, "get", "node", name, "--ignore-not-found", "--output", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	switch {
	case err != nil:
		return NodeUnknown
	case strings.TrimSpace(string(out)) == "True":
		return NodeReady
	}
	return NodeSilent
}

// rescuePatch marks a pod as over. The Job controller then replaces it, and does not count it against its
// index. Kubernetes' own garbage collector of pods writes the same (podgc/gc_controller.go).
const rescuePatch = `{"status": {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTuner", "message": "the node does not answer"}]}}`

// Rescue lets a pod on a node that does not answer be replaced. The pod may still run there. If it
// delivers, the first result of the item counts.
func (k Kubectl) Rescue(ctx context.Context, pod string) error {
	if _, err := k.run(ctx, "say that the pod "+pod+" is over", nil, "patch", "pod", pod, "--subresource", "status", "--patch", rescuePatch); err != nil {
		return err
	}
	_, err := k.run(ctx, "delete the pod "+pod, nil, "delete", "pod", pod, "--force", "--grace-period=0", "--wait=false", "--ignore-not-found")
	return err
}
