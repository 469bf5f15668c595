// Package cluster asks a Kubernetes cluster about a fleet, and changes the fleet's own objects there. It
// does both through the user's own kubectl: its contexts, plugins and proxies apply, and the program carries
// no client. It decides nothing: package driver says what is created, freed and deleted.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"tuner/fleet/record"
	"tuner/internal/children"
	"tuner/internal/words"
)

// Kubectl runs the user's kubectl. Zero values are its own defaults.
type Kubectl struct {
	Program   string // "": kubectl in PATH
	Context   string
	Namespace string
}

// run runs kubectl and returns what it printed. input is its standard input. goal says in errors what
// was asked for.
func (k Kubectl) run(ctx context.Context, goal string, input []byte, args ...string) ([]byte, error) {
	program := k.Program
	if program == "" {
		program = "kubectl"
	}
	var all []string
	if k.Context != "" {
		all = append(all, "--context", k.Context)
	}
	if k.Namespace != "" {
		all = append(all, "--namespace", k.Namespace)
	}
	cmd := children.Command(ctx, program, append(all, args...)...)
	var out, messages bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &messages
	err := children.Run(cmd)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("cannot %s: there is no %q in PATH; install kubectl, or run this where it is", goal, program)
	case err != nil:
		return nil, fmt.Errorf("cannot %s: %w: %s", goal, err, words.Shorten(strings.TrimSpace(messages.String()), longestMessage))
	}
	return out.Bytes(), nil
}

// get returns the objects of some kinds that belong to a run, as JSON.
func (k Kubectl) get(ctx context.Context, kinds, selector string) ([]byte, error) {
	return k.run(ctx, "ask the cluster for "+kinds, nil, "get", kinds, "--selector", selector, "--output", "json")
}

// longestMessage is the number of characters of kubectl's words in an error.
const longestMessage = 400

// Records returns the records of a run.
func (k Kubectl) Records(ctx context.Context, run string) ([]record.ConfigMap, error) {
	return k.records(ctx, record.LabelRun+"="+run+","+record.LabelKind)
}

// Results returns the records of a run that are results. They are small; its segments are not.
func (k Kubectl) Results(ctx context.Context, run string) ([]record.ConfigMap, error) {
	return k.records(ctx, record.LabelRun+"="+run+","+record.LabelKind+"="+record.KindResult)
}

// Further returns the plans of the further campaigns of a stage, one for each type of machine.
func (k Kubectl) Further(ctx context.Context, stage string) ([]record.ConfigMap, error) {
	return k.records(ctx, record.LabelStage+"="+stage)
}

// Sent lists the segments of a run without their content, which may be hundreds of megabytes. kubectl's own table
// is the only output for which it asks the API server for no content.
func (k Kubectl) Sent(ctx context.Context, run string) ([]record.Sent, error) {
	out, err := k.run(ctx, "ask the cluster for segments", nil, "get", "configmaps", "--selector", record.LabelRun+"="+run+","+record.LabelKind+"="+record.KindSegment,
		"--label-columns", record.LabelEnd, "--no-headers")
	return parseSent(string(out)), err
}

// parseSent reads the lines of a table: a name first, and the bytes until its end last. A segment without that
// label has an age there.
func parseSent(table string) (list []record.Sent) {
	for line := range strings.Lines(table) {
		cells := strings.Fields(line)
		if len(cells) == 0 {
			continue
		}
		end, err := strconv.ParseInt(cells[len(cells)-1], 10, 64)
		if err != nil || end < 0 || len(cells) < sentCells {
			end = 0
		}
		list = append(list, record.Sent{Name: cells[0], End: end})
	}
	return list
}

// sentCells is the number of cells of a line with the label: name, data, age, and the label.
const sentCells = 4

func (k Kubectl) records(ctx context.Context, selector string) ([]record.ConfigMap, error) {
	text, err := k.get(ctx, "configmaps", selector)
	if err != nil {
		return nil, err
	}
	return parseRecords(text)
}

func parseRecords(text []byte) ([]record.ConfigMap, error) {
	return parseList[record.ConfigMap](text, "records")
}

// parseList reads the items of a list in JSON. name says in errors what they are.
func parseList[T any](text []byte, name string) ([]T, error) {
	var list struct {
		Items []T `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("cannot read kubectl's list of %s: %w", name, err)
	}
	return list.Items, nil
}

// Nodes returns the names of the nodes with some labels. It is an error if the user may not list nodes.
func (k Kubectl) Nodes(ctx context.Context, labels map[string]string) ([]string, error) {
	var selector []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		selector = append(selector, key+"="+labels[key])
	}
	out, err := k.run(ctx, "list the nodes", nil, "get", "nodes", "--selector", strings.Join(selector, ","), "--output", "jsonpath={.items[*].metadata.name}")
	return strings.Fields(string(out)), err
}

// Objects returns the jobs and the pods of a run.
//
// The pods are many, and each has several kilobytes. For 500 of them kubectl takes two seconds of CPU time to print its own form, and a
// tenth of a second to hand on the API server's answer. A path to the API server names the namespace, which a job tells.
func (k Kubectl) Objects(ctx context.Context, run string) (o Objects, err error) {
	selector := record.LabelRun + "=" + run
	text, err := k.get(ctx, "jobs", selector)
	if err != nil {
		return o, err
	}
	if o.Jobs, err = parseList[Job](text, "jobs"); err != nil || len(o.Jobs) == 0 {
		return o, err
	}
	path := "/api/v1/namespaces/" + url.PathEscape(o.Jobs[0].Metadata.Namespace) + "/pods?labelSelector=" + url.QueryEscape(selector)
	if text, err = k.run(ctx, "ask the cluster for pods", nil, "get", "--raw", path); err != nil {
		return o, err
	}
	o.Pods, err = parseList[Pod](text, "pods")
	return o, err
}
