package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/alloctest"
	"tuner/internal/hostinfo"
	"tuner/internal/programtest"
)

const run = "q3-1"

// pod makes a pod of an index of the job of c7i, as kubectl lists it.
func pod(index, more string) string {
	return `{"kind": "Pod", "metadata": {"name": "p` + index + `", "uid": "u", "creationTimestamp": "2026-11-27T08:00:00Z", "labels": {"batch.kubernetes.io/job-name": "q3-1-s1-c7i"},
		"annotations": {"batch.kubernetes.io/job-completion-index": "` + index + `"}` + more + `}`
}

func list(items ...string) []byte { return []byte(`{"items": [` + strings.Join(items, ",") + `]}`) }

// objectsOf reads jobs and pods, each as kubectl lists it.
func objectsOf(t testing.TB, items ...string) (o Objects) {
	t.Helper()
	isPod := func(item string) bool { return strings.HasPrefix(item, `{"kind": "Pod"`) }
	jobs, err := parseList[Job](list(slices.DeleteFunc(slices.Clone(items), isPod)...), "jobs")
	pods, second := parseList[Pod](list(slices.DeleteFunc(items, func(item string) bool { return !isPod(item) })...), "pods")
	if err := errors.Join(err, second); err != nil {
		t.Fatal(err)
	}
	return Objects{jobs, pods}
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	p := fleet.Plan{Run: run, Parts: []fleet.Part{{Machine: "c7i", Items: []fleet.Item{{Model: "m", Repeat: 1}}}}}
	const job = `{"kind": "Job", "metadata": {"name": "q3-1-s1-c7i"}`
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	check := func(name string, want, reason string, delivered []record.Delivery, items ...string) {
		t.Helper()
		got := StatusOf(p, objectsOf(t, items...), delivered, now)
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
	programtest.Write(t, program, script)
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

// Pods come as the API server answers, from the namespace of the jobs. Without a job there are none to ask for.
func TestObjectsOfARun(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "kubectl")
	script := `#!/bin/sh
echo "$*" >> ` + program + `.log
case "$*" in
*"get jobs"*q3-1*) echo '{"items": [{"metadata": {"name": "q3-1-s1-c7i", "namespace": "tuning"}}]}' ;;
*"--raw /api/v1/namespaces/tuning/pods?labelSelector=tuner.dev%2Frun%3Dq3-1") echo '{"items": [{"metadata": {"name": "p0"}}]}' ;;
*) echo '{"items": []}' ;;
esac
`
	programtest.Write(t, program, script)
	k := Kubectl{Program: program}
	o, err := k.Objects(t.Context(), run)
	if err != nil || len(o.Jobs) != 1 || len(o.Pods) != 1 || o.Pods[0].Metadata.Name != "p0" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := k.Objects(t.Context(), "other"); err != nil || len(o.Jobs)+len(o.Pods) != 0 {
		t.Errorf("another run has %+v, %v", o, err)
	}
	if log, err := os.ReadFile(program + ".log"); err != nil || strings.Count(string(log), "\n") != 3 {
		t.Errorf("%s, %v", log, err)
	}
}

// Segments are listed without their content: the name and the label are in kubectl's table. One without the label
// has an age last.
func TestSent(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "kubectl")
	table := "q3-1-s1-c7i-0-seg-u-0000   2   5m   84001\nq3-1-s1-c7i-0-seg-u-0001   2   61s\n\nq3-1-s1-c7i-0-seg-u-0002   2   0s   <none>\n"
	script := "#!/bin/sh\necho \"$*\" > " + program + ".log\ncat <<END\n" + table + "END\n"
	programtest.Write(t, program, script)
	got, err := Kubectl{Program: program}.Sent(t.Context(), run)
	want := []record.Sent{{Name: "q3-1-s1-c7i-0-seg-u-0000", End: 84001}, {Name: "q3-1-s1-c7i-0-seg-u-0001"}, {Name: "q3-1-s1-c7i-0-seg-u-0002"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	log, err := os.ReadFile(program + ".log")
	asked := "get configmaps --selector tuner.dev/run=q3-1,tuner.dev/record=segment --label-columns tuner.dev/end --no-headers\n"
	if err != nil || string(log) != asked {
		t.Errorf("%s", log)
	}
}

func FuzzParseSent(f *testing.F) {
	f.Add("q3-1-s1-c7i-0-seg-u-0000   2   5m   84001\n")
	f.Add("a 1 2 -3\n\nb")
	f.Fuzz(func(t *testing.T, table string) {
		defer alloctest.Bound(t, 100*len(table))()
		for _, s := range parseSent(table) {
			if s.Name == "" || s.End < 0 || !strings.Contains(table, s.Name) {
				t.Errorf("%+v", s)
			}
		}
	})
}

// BenchmarkStatus reads what kubectl says about 500 campaigns, the most in a fleet, all with a result. It compares
// the outline with all records, journals of 84 kB included, from which the status was made before.
func BenchmarkStatus(b *testing.B) {
	const campaigns, size = 500, 84_000
	noise := rand.NewChaCha8([32]byte{1})
	part := fleet.Part{Machine: "c7i"}
	var pods, results, all []string
	table := ""
	for i := range campaigns {
		part.Items = append(part.Items, fleet.Item{Model: "m", Repeat: i + 1})
		pods = append(pods, pod(fmt.Sprint(i), `}, "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}`))
		text := make([]byte, size)
		_, _ = noise.Read(text) // it never fails
		item := record.Item{Job: record.JobName(run, "c7i"), Index: i}
		segment, _, err := record.Segment{Attempt: record.Attempt{Item: item, UID: "u"}, Text: text}.ConfigMap(run, "c7i")
		result, second := record.Result{Job: item.Job, Index: i, Attempt: "u", Model: "m", Machine: "c7i", Bytes: size, Segments: 1, SHA256: record.Digest(text)}.ConfigMap(run)
		if err := errors.Join(err, second); err != nil {
			b.Fatal(err)
		}
		for _, m := range []record.ConfigMap{segment, result} {
			line, err := json.Marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, string(line))
		}
		results = append(results, all[len(all)-1])
		table += segment.Metadata.Name + "   2   5m   " + segment.Metadata.Labels[record.LabelEnd] + "\n"
	}
	p := fleet.Plan{Run: run, Parts: []fleet.Part{part}}
	small, large, listed := list(results...), list(all...), list(pods...)
	jobs := objectsOf(b, `{"kind": "Job", "metadata": {"name": "q3-1-s1-c7i"}}`).Jobs
	states := func(b *testing.B, read func() ([]record.Delivery, error)) {
		for b.Loop() {
			pods, err := parseList[Pod](listed, "pods")
			delivered, second := read()
			if err := errors.Join(err, second); err != nil {
				b.Fatal(err)
			}
			if got := StatusOf(p, Objects{jobs, pods}, delivered, time.Time{}); len(got) != campaigns || got[campaigns-1].State != StateDone || got[0].Bytes != size {
				b.Fatalf("%+v", got[campaigns-1])
			}
		}
	}
	b.Run("outline", func(b *testing.B) {
		states(b, func() ([]record.Delivery, error) {
			records, err := parseRecords(small)
			if err != nil {
				return nil, err
			}
			return record.Outline(records, parseSent(table))
		})
	})
	b.Run("journals", func(b *testing.B) {
		states(b, func() ([]record.Delivery, error) {
			records, err := parseRecords(large)
			if err != nil {
				return nil, err
			}
			return record.Join(records)
		})
	})
}

func FuzzParseObjects(f *testing.F) {
	f.Add(list(pod("0", "}"), `{"kind": "Job"}`))
	f.Add([]byte(`{"items": [3]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, 100*len(text))()
		jobs, err := parseList[Job](text, "jobs")
		pods, second := parseList[Pod](text, "pods")
		if err == nil && second == nil {
			p := fleet.Plan{Run: run, Parts: []fleet.Part{{Machine: "c7i", Items: []fleet.Item{{Model: "m", Repeat: 1}}}}}
			if got := StatusOf(p, Objects{jobs, pods}, nil, time.Time{}); len(got) != 1 || got[0].State == "" {
				t.Errorf("%+v", got)
			}
		}
	})
}
