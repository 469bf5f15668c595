package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/alloctest"
	"tuner/internal/hostinfo"
)

const run = "q3-1"

// pod makes a pod of an index of the job of c7i, as kubectl lists it.
func pod(index, more string) string {
	return `{"kind": "Pod", "metadata": {"name": "p` + index + `", "uid": "u", "creationTimestamp": "2026-11-27T08:00:00Z", "labels": {"batch.kubernetes.io/job-name": "q3-1-s1-c7i"},
		"annotations": {"batch.kubernetes.io/job-completion-index": "` + index + `"}` + more + `}`
}

func list(items ...string) []byte { return []byte(`{"items": [` + strings.Join(items, ",") + `]}`) }

func TestStatusOf(t *testing.T) {
	t.Parallel()
	p := fleet.Plan{Run: run, Parts: []fleet.Part{{Machine: "c7i", Items: []fleet.Item{{Model: "m", Repeat: 1}}}}}
	const job = `{"kind": "Job", "metadata": {"name": "q3-1-s1-c7i"}`
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	check := func(name string, want, reason string, delivered []record.Delivery, items ...string) {
		t.Helper()
		o, err := parseObjects(list(items...))
		if err != nil {
			t.Fatal(err)
		}
		got := StatusOf(p, o, delivered, now)
		if len(got) != 1 || got[0].State != want || !strings.Contains(got[0].Reason, reason) || reason == "" && got[0].Reason != "" {
			t.Errorf("%s: %+v, want %s: %s", name, got, want, reason)
		}
	}
	check("nothing applied", StateNotApplied, "", nil)
	check("no pod yet", StateWaiting, "", nil, job+"}")
	check("in a queue", StateWaiting, "the queue has not admitted", nil, job+`, "spec": {"suspend": true}}`)
	check("no node", StateWaiting, "0/3 nodes are available", nil, job+"}", pod("0", `}, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]}`))
	check("no image", StateWaiting, "ErrImagePull: not found", nil, job+"}", pod("0", `}, "status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]}`))
	check("running", StateRunning, "", nil, job+"}", pod("0", `}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}`))
	check("another index", StateWaiting, "", nil, job+"}", pod("1", `}, "status": {"phase": "Running"}`))
	check("failed", StateFailed, "Error (exit code 1); `kubectl logs p0`", nil, job+"}", pod("0", `}, "status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}`))
	check("given up", StateGivenUp, "one ended with 42", nil, job+`, "status": {"failedIndexes": "0,3-5"}}`, pod("0", `}, "status": {"phase": "Failed"}`))
	check("the deadline", StateGivenUp, "was active longer", nil, job+`, "status": {"conditions": [{"type": "Failed", "status": "True", "message": "Job was active longer than specified deadline"}]}}`)
	// The deletion was due 59 and 61 seconds ago.
	check("ending", StateRunning, "", nil, job+"}", pod("0", `, "deletionTimestamp": "2026-11-27T08:59:01Z"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}`))
	check("a lost node", StateHangs, "kubectl taint node n1 node.kubernetes.io/out-of-service", nil, job+"}", pod("0", `, "deletionTimestamp": "2026-11-27T08:58:59Z"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}`))
	result := &record.Result{Job: "q3-1-s1-c7i", Exit: 5, Bytes: 7, Placement: hostinfo.Placement{Node: "n2"}}
	check("done", StateDone, "nothing satisfies", []record.Delivery{{Item: result.Of(), Result: result}}, job+"}", pod("0", `}, "status": {"phase": "Running"}`))
}

func TestHasIndex(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]bool{"": false, "3": true, "0,2-4": true, "0,4-9": false, "x,3-": false, "2-3": true} {
		if got := hasIndex(list, 3); got != want {
			t.Errorf("%q has 3: %t", list, got)
		}
	}
}

// kubectl's own words are in the error; without kubectl there is a remedy.
func TestKubectl(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "kubectl")
	script := "#!/bin/sh\necho \"$*\" >> " + program + ".log\ncase \"$*\" in *jobs*) echo 'forbidden' >&2; exit 1;; esac\necho '{\"items\": [{\"metadata\": {\"name\": \"a\"}}]}'\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	k := Kubectl{Program: program, Context: "prod", Namespace: "tuning"}
	records, err := k.Records(t.Context(), run)
	if err != nil || len(records) != 1 || records[0].Metadata.Name != "a" {
		t.Errorf("%+v, %v", records, err)
	}
	if _, err := k.Objects(t.Context(), run); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("%v", err)
	}
	log, err := os.ReadFile(program + ".log")
	want := "--context prod --namespace tuning get configmaps --selector tuner.dev/run=q3-1,tuner.dev/record --output json\n"
	if err != nil || !strings.HasPrefix(string(log), want) {
		t.Errorf("%s", log)
	}
	if _, err := (Kubectl{Program: "no-such-kubectl"}).Records(t.Context(), run); err == nil || !strings.Contains(err.Error(), "install kubectl") {
		t.Errorf("%v", err)
	}
}

func FuzzParseObjects(f *testing.F) {
	f.Add(list(pod("0", "}"), `{"kind": "Job"}`, `{"kind": "Node"}`))
	f.Add([]byte(`{"items": [3]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, 100*len(text))()
		o, err := parseObjects(text)
		if err == nil {
			p := fleet.Plan{Run: run, Parts: []fleet.Part{{Machine: "c7i", Items: []fleet.Item{{Model: "m", Repeat: 1}}}}}
			if got := StatusOf(p, o, nil, time.Time{}); len(got) != 1 || got[0].State == "" {
				t.Errorf("%+v", got)
			}
		}
	})
}
