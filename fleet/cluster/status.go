package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/exit"
)

// Objects are the jobs and pods of a run.
type Objects struct {
	Jobs []Job
	Pods []Pod
}

// Job has the fields of a Kubernetes Job that the status needs.
type Job struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		FailedIndexes string `json:"failedIndexes"`
		Conditions    []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// Pod has the fields of a Kubernetes Pod that the status needs.
type Pod struct {
	Metadata struct {
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Reason     string `json:"reason"`
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		ContainerStatuses []struct {
			State struct {
				Waiting *struct {
					Reason  string `json:"reason"`
					Message string `json:"message"`
				} `json:"waiting"`
				Terminated *struct {
					ExitCode int    `json:"exitCode"`
					Reason   string `json:"reason"`
					Message  string `json:"message"`
				} `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// indexAnnotation has a pod's index in its job.
const indexAnnotation = "batch.kubernetes.io/job-completion-index"

// The states of an item.
const (
	StateDone       = "done"
	StateRunning    = "running"
	StateWaiting    = "waiting"
	StateFailed     = "failed"
	StateGivenUp    = "given up"
	StateEnded      = "ended early"
	StateHangs      = "hangs"
	StateNotApplied = "not applied"
)

// Status is the state of one item of a fleet.
type Status struct {
	Machine  string `json:"machine"`          // name of the machine type
	Model    string `json:"model"`            // name of the model
	Repeat   int    `json:"repeat"`           // number of the machine of the type
	State    string `json:"state"`            // done, ended early, running, waiting, failed, given up, hangs, not applied
	Node     string `json:"node,omitempty"`   // node of the last pod
	Pod      string `json:"pod,omitempty"`    // name of the last pod
	Attempts int    `json:"attempts"`         // pods so far
	Bytes    int64  `json:"bytes"`            // of the journal that have arrived, of the attempt with most
	Reason   string `json:"reason,omitempty"` // the cluster's own words, or the remedy
}

// StatusOf returns the state of each item of a plan, in the plan's order. now is the time of the
// cluster's clock, roughly: it tells a pod that hangs from one that is ending.
func StatusOf(p fleet.Plan, o Objects, deliveries []record.Delivery, now time.Time) []Status {
	var list []Status
	for _, part := range p.Parts {
		job := record.JobName(p.Run, part.Machine)
		at := slices.IndexFunc(o.Jobs, func(j Job) bool { return j.Metadata.Name == job })
		for index, item := range part.Items {
			s := Status{Machine: part.Machine, Model: item.Model, Repeat: item.Repeat, State: StateNotApplied}
			if at >= 0 {
				s.State = StateWaiting
				s = s.ofJob(o.Jobs[at], index)
			}
			for _, pod := range podsOf(o.Pods, job, index) {
				s.Attempts++
				s = s.ofPod(pod, now)
			}
			for _, d := range deliveries {
				if d.Item == (record.Item{Job: job, Index: index}) {
					s = s.ofDelivery(d)
				}
			}
			list = append(list, s)
		}
	}
	return list
}

// podsOf returns the pods of an item, the oldest first.
func podsOf(pods []Pod, job string, index int) []Pod {
	var list []Pod
	for _, p := range pods {
		if p.Metadata.Labels["batch.kubernetes.io/job-name"] == job && p.Metadata.Annotations[indexAnnotation] == strconv.Itoa(index) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Pod) int { return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp) })
	return list
}

func (s Status) ofJob(j Job, index int) Status {
	if j.Spec.Suspend {
		s.Reason = "the queue has not admitted the job"
	}
	for _, c := range j.Status.Conditions {
		if c.Type == "Failed" && c.Status == "True" {
			s.State, s.Reason = StateGivenUp, c.Message
		}
	}
	if hasIndex(j.Status.FailedIndexes, index) {
		s.State, s.Reason = StateGivenUp, fmt.Sprintf("its %d attempts failed, or one ended with %d", fleet.Attempts, exit.Rejected)
	}
	return s
}

// hasIndex reports whether a list such as 0,2-4 has an index.
func hasIndex(list string, index int) bool {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, err := strconv.Atoi(first)
		high, second := strconv.Atoi(last)
		if err == nil && second == nil && low <= index && index <= high {
			return true
		}
	}
	return false
}

// IsOver reports whether nothing more will come of the item.
func (s Status) IsOver() bool {
	return s.State == StateDone || s.State == StateEnded || s.State == StateGivenUp
}

// Name names the item for people.
func (s Status) Name() string {
	text := s.Machine + " " + s.Model
	if s.Repeat > 1 {
		text += fmt.Sprintf(" #%d", s.Repeat)
	}
	return text
}

// HangAfter is the time after a pod's deletion was due in which a node that lives would have ended it.
const HangAfter = time.Minute

// ofPod returns the status with what the item's newest pod says.
func (s Status) ofPod(p Pod, now time.Time) Status {
	s.Node, s.Pod = p.Spec.NodeName, p.Metadata.Name
	if s.State == StateGivenUp {
		return s
	}
	s.Reason, s.State = "", StateWaiting
	isOver := p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded"
	switch {
	case p.Metadata.DeletionTimestamp != nil && !isOver && now.After(p.Metadata.DeletionTimestamp.Add(HangAfter)):
		s.State = StateHangs
		s.Reason = fmt.Sprintf("node %s does not answer, and its pod is not replaced before it is known to be over; `kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute` says that, if the node is off",
			s.Node, s.Node)
		return s
	case p.Status.Phase == "Running":
		s.State = StateRunning
	case isOver:
		s.State, s.Reason = StateFailed, p.Status.Reason
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			s.Reason = c.Message
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			s.Reason = strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			what := strings.TrimSuffix(t.Reason+": "+t.Message, ": ")
			s.Reason = fmt.Sprintf("%s (exit code %d); `kubectl logs %s` says why", what, t.ExitCode, p.Metadata.Name)
		}
	}
	return s
}

// ofDelivery returns the status with what has arrived.
func (s Status) ofDelivery(d record.Delivery) Status {
	for _, a := range d.Attempts {
		s.Bytes = max(s.Bytes, a.Bytes)
	}
	s.Attempts = max(s.Attempts, len(d.Attempts))
	if r := d.Result; r != nil {
		s.State, s.Node, s.Reason, s.Bytes = StateDone, cmp.Or(r.Placement.Node, s.Node), "", r.Bytes
		switch {
		case r.Hopeless != "":
			s.State, s.Reason = StateEnded, r.Hopeless
		case r.Exit == exit.Infeasible:
			s.Reason = "nothing satisfies the constraints there"
		}
	}
	return s
}
