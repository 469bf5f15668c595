package objects

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/golden"
)

const digest = "669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1"

// plan makes a plan of two models on two types of machines. more changes the file.
func plan(t *testing.T, more ...string) fleet.Plan {
	t.Helper()
	text := `name: q3
models:
  minilm: {profile: minilm.yaml, from: pvc://models/minilm/model.onnx, sha256: ` + digest + `}
  resnet: {profile: resnet.yaml, from: "oci://registry.example.com/resnet@sha256:` + digest + `#model.onnx"}
machines:
  c7i: {select: {node.kubernetes.io/instance-type: c7i.2xlarge}, cpus: 7, memory: 12Gi, price: {per_hour: 0.4}}
  l4: {select: {nvidia.com/gpu.product: NVIDIA-L4}, cpus: 6, memory: 24Gi, gpus: 1, share: 1/4, price: {per_hour: 2.8}}
cluster: {namespace: tuning, image: "registry.example.com/tuner:1@sha256:` + digest + `", tolerations: [{key: tuning, operator: Exists}]}
` + strings.Join(more, "\n")
	f, err := fleet.Parse("fleet.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := fleet.NewPlan(f, func(string) ([]byte, error) { return []byte("model: m.onnx\n"), nil })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The objects are as they were reviewed. The laboratory gives the same ones to a real API server.
func TestObjects(t *testing.T) {
	t.Parallel()
	list, err := Of(plan(t), Options{Harden: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, "A fleet.", list...); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/objects.yaml", b.Bytes())
}

// A worker may create ConfigMaps, and nothing else: there is one rule in all roles.
func TestWorkerMayOnlyCreate(t *testing.T) {
	t.Parallel()
	list, err := Of(plan(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for _, o := range list {
		rules = append(rules, o.Rules...)
		if o.Kind == "ClusterRole" || o.Kind == "ClusterRoleBinding" || strings.HasPrefix(o.Kind, "ValidatingAdmission") {
			t.Errorf("%s is of the whole cluster", o.Kind)
		}
		if o.Kind == "ConfigMap" && !o.Immutable {
			t.Errorf("the plan %s can be changed", o.Metadata.Name)
		}
	}
	if len(rules) != 1 || !slices.Equal(rules[0].Verbs, []string{"create"}) || !slices.Equal(rules[0].Resources, []string{"configmaps"}) {
		t.Errorf("%+v", rules)
	}
}

// Pods share a node only where the file allows it; repeats are on machines of their own in any case.
func TestAffinity(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]bool{"": true, "search: {machines: 2}": true} {
		list, err := Of(plan(t, more), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if job, ok := o.Spec.(jobSpec); ok && (job.Template.Spec.Affinity != nil) != want {
				t.Errorf("%q: affinity %+v, want %t", more, job.Template.Spec.Affinity, want)
			}
		}
	}
	p := plan(t)
	p.Fleet.Cluster.Exclusive, p.Fleet.Cluster.Queue = fleet.Shared, "q"
	list, err := Of(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if job, ok := o.Spec.(jobSpec); ok && (job.Template.Spec.Affinity != nil || !job.Suspend || o.Metadata.Labels["kueue.x-k8s.io/queue-name"] != "q") {
			t.Errorf("%+v", o)
		}
	}
}

// Further campaigns of a stage do not run on its nodes, and their plan and job name the stage.
func TestAvoid(t *testing.T) {
	t.Parallel()
	p, err := plan(t).More([]fleet.More{{Machine: "c7i", Model: "minilm", Machines: 1, Avoid: []string{"n1", "n2"}}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := Of(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, "", list...); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Count(text, "\nkind: Job") != 1 || strings.Count(text, "operator: NotIn") != 2 || !strings.Contains(text, "- key: metadata.name") || !strings.Contains(text, "podAntiAffinity:") {
		t.Errorf("%s", text)
	}
	for _, o := range list {
		want := ""
		if o.Machine() != "" {
			want = plan(t).Run
		}
		if got := o.Metadata.Labels[record.LabelStage]; got != want {
			t.Errorf("%s %s is of the stage %q, want %q", o.Kind, o.Metadata.Name, got, want)
		}
	}
}

// The policy knows the names that records have, whatever fleet and machine are called, and no other item's.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, machine := range []string{"c7i", "seg-x", "result", "a-seg-b"} {
		item := record.Item{Job: record.JobName("q3-seg-1234abcd", machine), Index: 3}
		m, errOne := record.Result{Job: item.Job, Index: 3}.ConfigMap("q3-seg-1234abcd")
		s, _, errTwo := record.Segment{Attempt: record.Attempt{Item: item, UID: "0123456789"}, Ordinal: 12345}.ConfigMap("q3-seg-1234abcd", machine)
		if err := errors.Join(errOne, errTwo); err != nil {
			t.Fatal(err)
		}
		own := regexp.MustCompile("^" + item.String() + recordPattern)
		other := regexp.MustCompile("^" + record.Item{Job: item.Job, Index: 1}.String() + recordPattern)
		for _, name := range []string{m.Metadata.Name, s.Metadata.Name} {
			if !own.MatchString(name) || other.MatchString(name) {
				t.Errorf("%q is not of %s alone", name, item)
			}
		}
	}
	// A pod's name is the item's and six characters; a name has 63 at most.
	if long := len(record.Item{Job: record.JobName(strings.Repeat("n", 24)+"-01234567", strings.Repeat("m", 16)), Index: 499}.String()) + 6; long > 63 {
		t.Errorf("the longest names have %d characters", long)
	}
}
