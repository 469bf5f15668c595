// Package fleet reads fleet.yaml and makes the plan of a fleet: which campaigns run on which types of
// machines of a Kubernetes cluster, and what they cost. A campaign of a fleet is a whole campaign in
// one pod on one machine (docs/design/fleet.md). The plan is all that a pod needs to know.
//
// Reading is strict and pure, as in package spec: all mistakes are reported together, and no file but
// the profiles that the caller passes is needed. The package asks no cluster. Package objects turns a
// plan into Kubernetes objects, package record carries what pods measured.
package fleet

import (
	"strings"
	"time"
)

// Fleet is a fleet.yaml with its defaults filled in. It is immutable.
type Fleet struct {
	Path     string // of the YAML file
	Name     string // begins the names of all objects
	Models   []Model
	Machines []Machine
	// Shared has the fields of profiles that all models get unless their own profile has them
	// (constraints, objective), as YAML, by name
	Shared   map[string]string
	Budget   time.Duration // of each campaign's search
	First    time.Duration // of a campaign, after which a type that cannot become the cheapest ends; 0: none ends early
	Repeats  int           // machines of each type on which each model is measured, ≥ 1
	Confirm  *Confirm      // nil: no second stage
	Cluster  Cluster
	Deadline time.Duration // limit for the whole fleet
	Output   string        // folder of what is collected
}

// Model is one model of a fleet.
type Model struct {
	Name    string
	Profile string // path of its profile.yaml
	From    Source
	SHA256  string // digest of the model file, in hexadecimal; "" if it is not checked
}

// Confirm is the second stage: the best configurations of each type that may be the cheapest are measured
// again, on more machines.
type Confirm struct {
	Machines int           // of each type, ≥ 2
	Top      int           // configurations of each type that are measured again
	Budget   time.Duration // of each campaign
}

// Source is where the pods get a model's file from.
type Source struct {
	Kind string // SourceClaim or SourceImage
	Ref  string // name of the claim, or the image's reference with its digest
	File string // path of the model file in it
}

// The kinds of sources.
const (
	SourceClaim = "pvc" // a PersistentVolumeClaim of the namespace
	SourceImage = "oci" // an image or artifact of a registry, as an image volume
)

// Machine is a type of machine: a selector of nodes, what a pod takes of one, and what that costs.
type Machine struct {
	Name   string
	Select map[string]string // labels of its nodes
	CPUs   int               // whole cores of a pod
	Memory string            // of a pod, as Kubernetes writes quantities: 12Gi
	GPUs   int               // of NVIDIA, of a pod
	Share  float64           // part of a node that a pod takes, 0 < share ≤ 1
	Price  float64           // of an hour of the whole node, in any currency; 0: unknown
}

// Hourly returns the price of an hour of a pod.
func (m Machine) Hourly() float64 { return m.Price * m.Share }

// Cluster says where a fleet runs.
type Cluster struct {
	Context    string // of kubectl; "": the current one
	Namespace  string
	Image      string // of tuner, with its digest
	Exclusive  string // ExclusiveNode, ExclusiveCores or Shared
	Queue      string // Kueue's LocalQueue; "": none
	Priority   string // PriorityClass of the pods; "": none
	Account    string // ServiceAccount of the workers
	Toleration []Toleration
}

// What a pod must have for its figures to count.
const (
	ExclusiveNode  = "node"   // a node of its own
	ExclusiveCores = "cores"  // cores of its own: the kubelet's static CPU manager
	Shared         = "shared" // nothing: windows are flagged where others disturb
)

// Toleration is a taint that pods tolerate.
type Toleration struct {
	Key      string `json:"key,omitempty" yaml:"key,omitempty"`
	Operator string `json:"operator,omitempty" yaml:"operator,omitempty"`
	Value    string `json:"value,omitempty" yaml:"value,omitempty"`
	Effect   string `json:"effect,omitempty" yaml:"effect,omitempty"`
}

// The defaults of a fleet.yaml.
const (
	defaultBudget    = 10 * time.Minute
	defaultDeadline  = 6 * time.Hour
	defaultNamespace = "default"
	defaultAccount   = "tuner-worker"
	defaultConfirms  = 5 // machines of a type: with three, t is 4.3 in the interval of another machine, with five 2.8
	defaultTop       = 3
	defaultConfirm   = 4 * time.Minute
)

// The bounds of the file. A campaign shorter than a few seconds measures nothing. Names of objects
// are made of name and machine, and a pod's host name has 63 characters at most.
const (
	shortestBudget  = 5 * time.Second
	longestBudget   = 24 * time.Hour
	longestDeadline = 7 * 24 * time.Hour
	mostRepeats     = 50
	mostItems       = 500
	mostTop         = 10
	longestName     = 24
	longestMachine  = 16
)

// Pod limits. A campaign takes its budget, the time to convert and compare variants, and the finals
// that have begun when the budget ends.
const (
	podFactor = 2
	podExtra  = 5 * time.Minute
)

// PodDeadline returns the time after which a pod counts as hung.
func (f Fleet) PodDeadline() time.Duration { return podFactor*f.Budget + podExtra }

// ModelsDir is the folder of the models in a pod: each has a folder of its name there.
const ModelsDir = "/models"

// In returns the path of a model's file in a pod.
func (m Model) In() string {
	return ModelsDir + "/" + m.Name + "/" + strings.TrimPrefix(m.From.File, "/")
}
