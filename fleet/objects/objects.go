// Package objects turns the plan of a fleet into the objects of Kubernetes that carry it out: an
// account that may only create ConfigMaps, the plan as immutable ConfigMaps, and one Indexed Job for
// each type of machine. With a policy, a worker may create the record of its own item alone.
//
// Objects are values in a fixed order. The package writes no file and asks no cluster.
package objects

import (
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
)

// Grace is the time of a pod from SIGTERM to SIGKILL, in which the last segment goes out.
const Grace = time.Minute

// Times of pods.
const (
	// a node that does not answer: the default of 300 s is longer than a campaign
	lostSeconds = 30
	keepSeconds = 24 * 60 * 60 // after a job has ended, its pods are kept; results are ConfigMaps and stay
)

// program is where the image has tuner (tools/dist/image.go).
const program = "/usr/bin/tuner"

// Options say what is written in addition to what every fleet needs.
type Options struct {
	// Harden: a policy lets a worker create only immutable records of its own item. It is an object
	// of the whole cluster, so not every user may create it.
	Harden bool
}

// Of returns the objects of a plan, in the order in which they are created.
func Of(p fleet.Plan, o Options) ([]Object, error) {
	w := writer{p, p.Fleet.Cluster}
	list := []Object{w.account(), w.role(), w.binding()}
	if o.Harden {
		list = append(list, w.policy(), w.policyBinding())
	}
	for i, part := range p.Parts {
		plan, err := w.plan(part)
		if err != nil {
			return nil, err
		}
		list = append(list, plan, w.job(part, p.Fleet.Machines[i]))
	}
	return list, nil
}

// Machine returns the type of machine to which an object belongs; "" if it belongs to all.
func (o Object) Machine() string { return o.Metadata.Labels[record.LabelMachine] }

// Write writes objects as YAML documents.
func Write(out io.Writer, comment string, list ...Object) error {
	if _, err := fmt.Fprintf(out, "# %s\n", comment); err != nil {
		return err
	}
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	for _, o := range list {
		if err := encoder.Encode(o); err != nil {
			return fmt.Errorf("cannot write %s %q: %w", o.Kind, o.Metadata.Name, err)
		}
	}
	return encoder.Close()
}

type writer struct {
	fleet.Plan
	cluster fleet.Cluster
}

func (w writer) object(apiVersion, kind, name string) Object {
	return Object{APIVersion: apiVersion, Kind: kind, Metadata: metadata{Name: name, Namespace: w.cluster.Namespace,
		Labels: map[string]string{record.LabelRun: w.Run, "app.kubernetes.io/managed-by": "tuner"}}}
}

// ofPart adds to an object's labels those of a type of machine.
func (w writer) ofPart(o Object, part fleet.Part) Object {
	o.Metadata.Labels[record.LabelMachine] = part.Machine
	if w.Stage != "" {
		o.Metadata.Labels[record.LabelStage] = w.Stage
	}
	return o
}

func (w writer) account() Object {
	isMounted := true // its pods need the token; package worker posts with it
	o := w.object("v1", "ServiceAccount", w.cluster.Account)
	o.Automount = &isMounted
	delete(o.Metadata.Labels, record.LabelRun) // all fleets of the namespace share it
	return o
}

// role returns all that a worker may do. It cannot read anything, so a stolen token sees no secret
// and no result of another team.
func (w writer) role() Object {
	o := w.object("rbac.authorization.k8s.io/v1", "Role", w.cluster.Account)
	o.Rules = []rule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}}
	delete(o.Metadata.Labels, record.LabelRun)
	return o
}

func (w writer) binding() Object {
	o := w.object("rbac.authorization.k8s.io/v1", "RoleBinding", w.cluster.Account)
	o.RoleRef = &roleRef{"rbac.authorization.k8s.io", "Role", w.cluster.Account}
	o.Subjects = []subject{{"ServiceAccount", w.cluster.Account, w.cluster.Namespace}}
	delete(o.Metadata.Labels, record.LabelRun)
	return o
}

// policy ties what a worker creates to its own pod. The name of a pod of an Indexed Job is that of the
// job, its index, and five characters; the names of records begin with the first two.
func (w writer) policy() Object {
	o := w.object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", w.policyName())
	o.Metadata.Namespace = ""
	o.Spec = policySpec{
		FailurePolicy:    "Fail",
		MatchConstraints: matchConstraints{[]resourceRule{{APIGroups: []string{""}, APIVersions: []string{"v1"}, Operations: []string{"CREATE"}, Resources: []string{"configmaps"}}}},
		MatchConditions:  []expression{{"only-workers", fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'", w.cluster.Namespace, w.cluster.Account)}},
		Variables:        []expression{{"pod", "request.userInfo.extra['authentication.kubernetes.io/pod-name'][0]"}},
		Validations: []validation{
			{"has(object.immutable) && object.immutable == true", "what a worker delivers is immutable"},
			// a pod is named ITEM-SUFFIX, with five characters
			{"object.metadata.name.matches('^' + variables.pod.substring(0, variables.pod.size() - 6) + '" + recordPattern + "')", "a worker delivers for its own item only"},
		},
	}
	return o
}

// recordPattern is the rest of the name of a record after its item, as a regular expression.
const recordPattern = "(-result|-seg-[a-z0-9]+-[0-9]+)$"

func (w writer) policyBinding() Object {
	o := w.object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", w.policyName())
	o.Metadata.Namespace = ""
	o.Spec = bindingSpec{w.policyName(), []string{"Deny"}}
	return o
}

func (w writer) policyName() string { return w.cluster.Account + "-" + w.cluster.Namespace }

// planName names the ConfigMap with the plan of a type of machine.
func planName(p fleet.Part) string { return p.Run + "-plan-" + p.Machine }

// PlanFile is the name of the plan in its ConfigMap.
const PlanFile = "plan.json"

func (w writer) plan(part fleet.Part) (Object, error) {
	text, err := part.JSON()
	if err != nil {
		return Object{}, err
	}
	o := w.ofPart(w.object("v1", "ConfigMap", planName(part)), part)
	o.Immutable, o.Data = true, map[string]string{PlanFile: string(text)}
	return o, nil
}

// job returns the job of a type of machine. An index is an item of the part.
func (w writer) job(part fleet.Part, on fleet.Machine) Object {
	o := w.ofPart(w.object("batch/v1", "Job", record.JobName(w.Run, part.Machine)), part)
	if w.cluster.Queue != "" {
		o.Metadata.Labels["kueue.x-k8s.io/queue-name"] = w.cluster.Queue
	}
	items := len(part.Items)
	o.Spec = jobSpec{
		Suspend:        w.cluster.Queue != "", // Kueue admits it
		CompletionMode: "Indexed", Completions: items, Parallelism: items,
		BackoffLimitPerIndex: fleet.Attempts - 1, MaxFailedIndexes: items,
		// The API requires it beside podFailurePolicy. A pod on a lost node then has no replacement
		// until its phase is Failed (docs/design/fleet.md, "A node that is lost").
		PodReplacementPolicy: "Failed",
		PodFailurePolicy: podFailures{[]failureRule{
			{Action: "FailIndex", OnExitCodes: &exitCodes{"tuner", "In", []int{exit.Rejected}}},
			{Action: "Ignore", OnPodConditions: []podCondition{{"DisruptionTarget", "True"}}}, // evicted, drained, preempted: not the item's fault
		}},
		ActiveDeadlineSeconds: int(w.Fleet.Deadline.Seconds()), TTLSecondsAfterFinished: keepSeconds,
		Template: podTemplate{metadata{Labels: w.podLabels(part)}, w.pod(part, on)},
	}
	return o
}

func (w writer) podLabels(part fleet.Part) map[string]string {
	return map[string]string{record.LabelRun: w.Run, record.LabelMachine: part.Machine, "app.kubernetes.io/managed-by": "tuner"}
}

func (w writer) pod(part fleet.Part, on fleet.Machine) podSpec {
	p := podSpec{
		RestartPolicy: "Never", ServiceAccountName: w.cluster.Account, TerminationGracePeriodSeconds: int(Grace.Seconds()),
		ActiveDeadlineSeconds: int(w.Fleet.PodDeadline().Seconds()), PriorityClassName: w.cluster.Priority,
		NodeSelector: on.Select, Tolerations: w.tolerations(),
		// as Pod Security "restricted" wants it
		SecurityContext: podSecurity{true, 1000, 1000, map[string]string{"type": "RuntimeDefault"}},
		Containers:      []container{w.container(part, on)},
		Volumes: []volume{
			{Name: "plan", ConfigMap: &configVolume{planName(part)}},
			{Name: "work", EmptyDir: &emptyDir{SizeLimit: "8Gi"}},
			{Name: "tmp", EmptyDir: &emptyDir{SizeLimit: "1Gi"}},
			{Name: "shm", EmptyDir: &emptyDir{Medium: "Memory", SizeLimit: "256Mi"}},
		},
	}
	if w.cluster.Exclusive == fleet.ExclusiveNode || w.Fleet.Repeats > 1 {
		p.Affinity = &affinity{Pods: &antiAffinity{[]affinityTerm{{"kubernetes.io/hostname", labelSet{map[string]string{record.LabelRun: w.Run}}}}}}
	}
	if len(part.Avoid) > 0 {
		var term nodeTerm
		for _, node := range part.Avoid { // a field takes one value, and all of a term's must hold
			term.Fields = append(term.Fields, nodeField{"metadata.name", "NotIn", []string{node}})
		}
		if p.Affinity == nil {
			p.Affinity = new(affinity)
		}
		p.Affinity.Nodes = &nodeAffinity{nodeSelector{[]nodeTerm{term}}}
	}
	for _, m := range w.Fleet.Models {
		v := volume{Name: modelVolume(m)}
		if m.From.Kind == fleet.SourceClaim {
			v.PersistentVolumeClaim = &claimVolume{m.From.Ref, true}
		} else {
			v.Image = &imageVolume{m.From.Ref}
		}
		p.Volumes = append(p.Volumes, v)
	}
	return p
}

func modelVolume(m fleet.Model) string { return "model-" + m.Name }

func (w writer) tolerations() []toleration {
	var list []toleration
	for _, t := range w.cluster.Toleration {
		list = append(list, toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: t.Effect})
	}
	seconds := lostSeconds
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		list = append(list, toleration{Key: key, Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds})
	}
	return list
}

// instanceTypeLabel is the node's label that clouds set. A pod cannot read its node's labels, so the
// selector tells it.
const instanceTypeLabel = "node.kubernetes.io/instance-type"

func (w writer) container(part fleet.Part, on fleet.Machine) container {
	all := map[string]string{"cpu": strconv.Itoa(on.CPUs), "memory": on.Memory}
	if on.GPUs > 0 {
		all["nvidia.com/gpu"] = strconv.Itoa(on.GPUs)
	}
	field := func(name, path string) variable { return variable{Name: name, ValueFrom: &valueFrom{fieldRef{path}}} }
	c := container{
		Name: "tuner", Image: w.cluster.Image,
		Command: []string{program, "fleet", "worker", "--plan=" + fleet.PlanDir + "/" + PlanFile},
		Env: []variable{
			field(hostinfo.EnvNode, "spec.nodeName"), field("POD_NAME", "metadata.name"), field("POD_UID", "metadata.uid"),
			{Name: hostinfo.EnvImage, Value: w.cluster.Image}, {Name: "HOME", Value: fleet.WorkDir},
		},
		Resources:       resources{all, maps.Clone(all)}, // Guaranteed, whole cores
		SecurityContext: containerSecurity{false, true, map[string][]string{"drop": {"ALL"}}},
		VolumeMounts:    []mount{{"plan", fleet.PlanDir, true}, {"work", fleet.WorkDir, false}, {"tmp", "/tmp", false}, {"shm", "/dev/shm", false}},
	}
	if kind := on.Select[instanceTypeLabel]; kind != "" {
		c.Env = append(c.Env, variable{Name: hostinfo.EnvInstanceType, Value: kind})
	}
	for _, m := range w.Fleet.Models {
		c.VolumeMounts = append(c.VolumeMounts, mount{modelVolume(m), fleet.ModelsDir + "/" + m.Name, true})
	}
	return c
}
