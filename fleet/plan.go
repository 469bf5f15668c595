package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tuner/internal/durable"
)

// Plan lists for each type of machine the campaigns that the fleet's pods run.
type Plan struct {
	Fleet Fleet
	Run   string // name of the run: the fleet's name and a digest of all that is measured
	Stage string // of further campaigns of a stage: name of the stage's run; else ""
	Parts []Part // of each type of machine, in the file's order
}

// PlanFormat is the version of a Part's JSON.
const PlanFormat = 1

// Part is the plan of one type of machine, as its pods read it. The pod of index i runs Items[i].
type Part struct {
	Format    int       `json:"format"`    // version of this format
	Run       string    `json:"run"`       // name of the run
	Machine   string    `json:"machine"`   // name of the machine type
	CPUs      int       `json:"cpus"`      // whole cores of a pod
	Exclusive string    `json:"exclusive"` // what a pod must have: node, cores or shared
	Hourly    float64   `json:"hourly"`    // price of an hour of a pod; 0: unknown
	Models    []PodPlan `json:"models"`    // campaigns, one for each model
	Items     []Item    `json:"items"`     // what each index of the job does
	// Avoid: nodes on which its pods do not run
	Avoid []string `json:"avoid,omitempty"`
}

// PodPlan is one campaign on one type of machine.
type PodPlan struct {
	Model   string `json:"model"`            // name of the model
	File    string `json:"file"`             // path of the model file in the pod
	SHA256  string `json:"sha256,omitempty"` // digest that the file must have; absent: any
	Profile string `json:"profile"`          // text of its profile.yaml
}

// Item is one campaign on one machine.
type Item struct {
	Model  string `json:"model"`  // name of the model
	Repeat int    `json:"repeat"` // number of the machine of the type, from 1
}

// Of returns the campaign of an item.
func (p Part) Of(i Item) (PodPlan, bool) {
	for _, m := range p.Models {
		if m.Model == i.Model {
			return m, true
		}
	}
	return PodPlan{}, false
}

// NewPlan makes the plan of a fleet. read reads a profile's file. All mistakes of all profiles are
// reported together. Those of a second stage with all types of machines are among them: before the first stage is paid.
func NewPlan(f Fleet, read func(path string) ([]byte, error)) (Plan, error) {
	all := func(string, string) (Space, bool) { return nil, true }
	p, err := newPlan(f, read, all)
	if err != nil || f.Confirm == nil {
		return p, err
	}
	if _, err := ConfirmPlan(f, read, all); err != nil {
		return Plan{}, fmt.Errorf("the second stage, with all types of machines: %w", err)
	}
	return p, nil
}

// Space has the values to which knobs of a profile are restricted, by knob; nil: the profile's own.
type Space map[string][]string

// confirmDir is the folder of the second stage below the fleet's output.
const confirmDir = "confirm"

// second returns the fleet of the second stage, with all types of machines.
func (f Fleet) second() Fleet {
	f.Output = filepath.Join(f.Output, confirmDir)
	f.Repeats, f.Budget, f.First, f.Confirm = f.Confirm.Machines, f.Confirm.Budget, 0, nil
	return f
}

// ConfirmPlan makes the plan of the second stage. left returns the space of a model on a type of
// machine, and false if that type is not measured again for the model. The run has another name than
// the first stage's, and another output folder.
func ConfirmPlan(f Fleet, read func(path string) ([]byte, error), left func(machine, model string) (Space, bool)) (Plan, error) {
	second := f.second()
	second.Machines = slices.DeleteFunc(slices.Clone(f.Machines), func(m Machine) bool {
		return !slices.ContainsFunc(f.Models, func(model Model) bool { _, ok := left(m.Name, model.Name); return ok })
	})
	return newPlan(second, read, left)
}

func newPlan(f Fleet, read func(path string) ([]byte, error), of func(machine, model string) (Space, bool)) (Plan, error) {
	p := Plan{Fleet: f}
	texts, told := map[string][]byte{}, map[string]bool{}
	var errs []error
	for _, m := range f.Models {
		text, err := read(m.Profile)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: models.%s.profile: cannot read %q: %w", f.Path, m.Name, m.Profile, durable.Cause(err)))
			continue
		}
		texts[m.Name] = text
	}
	for _, on := range f.Machines {
		part := Part{Format: PlanFormat, Machine: on.Name, CPUs: on.CPUs, Exclusive: f.Cluster.Exclusive, Hourly: on.Hourly()}
		for _, m := range f.Models {
			space, ok := of(on.Name, m.Name)
			if texts[m.Name] == nil || !ok {
				continue
			}
			text, err := f.inPod(m, on, space, texts[m.Name])
			if err != nil && !told[m.Name] { // the same for all types
				errs, told[m.Name] = append(errs, err), true
			}
			part.Models = append(part.Models, PodPlan{Model: m.Name, File: m.In(), SHA256: m.SHA256, Profile: text})
		}
		for repeat := range f.Repeats {
			for _, m := range part.Models {
				part.Items = append(part.Items, Item{m.Model, repeat + 1})
			}
		}
		p.Parts = append(p.Parts, part)
	}
	if err := errors.Join(errs...); err != nil {
		return Plan{}, err
	}
	return p.named()
}

// largestPart is the size of a part's JSON: a ConfigMap holds 1 MiB, and has other fields.
const largestPart = 900 << 10

// journalRate is the size of a campaign's journal after gzip, in bytes per minute of its budget: a campaign of three
// minutes with 70 trials had 84 kB.
const journalRate = 28_000

// mostJournals is the most room of a run's journals in the cluster, in bytes: a quarter of etcd's usual room of 2 GiB
// (--quota-backend-bytes), in which all other objects of the cluster are too.
const mostJournals = 512 << 20

// JournalBytes returns about what the journals of the plan take in the cluster if no attempt fails. They are there until the
// run is deleted.
func (p Plan) JournalBytes() int64 {
	items := 0
	for _, part := range p.Parts {
		items += len(part.Items)
	}
	return int64(float64(items) * p.Fleet.Budget.Minutes() * journalRate)
}

// named gives the plan its name, which depends on all that is measured and on where.
func (p Plan) named() (Plan, error) {
	f := p.Fleet
	if n := p.JournalBytes(); n > mostJournals {
		return Plan{}, fmt.Errorf("%s: the journals of these campaigns would take about %d MB in the cluster's etcd, and %d MB are allowed; lower search.budget or confirm.budget, or split the fleet into several files, and delete each run before the next",
			f.Path, n/1_000_000, mostJournals/1_000_000)
	}
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode([]any{p.Parts, f.Machines, f.Cluster.Image}); err != nil {
		return Plan{}, fmt.Errorf("cannot compute the digest of the plan: %w", err)
	}
	p.Run = f.Name + "-" + hex.EncodeToString(hash.Sum(nil)[:4])
	for i := range p.Parts {
		p.Parts[i].Run = p.Run
		text, err := p.Parts[i].JSON()
		if err != nil {
			return Plan{}, err
		}
		if len(text) > largestPart {
			return Plan{}, fmt.Errorf("%s: the profiles of machine %q take %d bytes, and an object of Kubernetes holds %d; split the fleet into several files",
				f.Path, p.Parts[i].Machine, len(text), largestPart)
		}
	}
	return p, nil
}

// JSON returns the part as its pods read it.
func (p Part) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return nil, fmt.Errorf("cannot encode the plan of machine %q: %w", p.Machine, err)
	}
	return text, nil
}

// ReadPart reads the plan of a pod from a file.
func ReadPart(path string) (Part, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Part{}, fmt.Errorf("cannot read the plan %q: %w", path, durable.Cause(err))
	}
	return ParsePart(path, text)
}

// ParsePart reads the JSON of a part. path is for errors.
func ParsePart(path string, text []byte) (Part, error) {
	var p Part
	if err := json.Unmarshal(text, &p); err != nil {
		return Part{}, fmt.Errorf("%s: this is not the plan of a fleet: %w", path, err)
	}
	if p.Format != PlanFormat {
		return Part{}, fmt.Errorf("%s: the plan has format %d; this version of tuner reads format %d: use the image of the version that wrote it", path, p.Format, PlanFormat)
	}
	for _, item := range p.Items {
		if _, ok := p.Of(item); !ok {
			return Part{}, fmt.Errorf("%s: the plan has no campaign for model %q", path, item.Model)
		}
	}
	return p, nil
}

// Attempts is the number of times that an item is tried at most.
const Attempts = 3

// Cost has the costs of the tuning itself on a type of machine.
type Cost struct {
	Machine     string
	Pods        int           // campaigns
	Least, Most time.Duration // machine time of all pods: their budgets, and all attempts until they count as hung
	Hourly      float64       // of a pod; 0: unknown
}

// Price returns the cost of a machine time. 0: unknown.
func (c Cost) Price(of time.Duration) float64 { return c.Hourly * of.Hours() }

// Costs returns the cost of each type of machine.
func (p Plan) Costs() []Cost {
	var list []Cost
	for i, part := range p.Parts {
		n := time.Duration(len(part.Items))
		list = append(list, Cost{Machine: part.Machine, Pods: len(part.Items), Hourly: p.Fleet.Machines[i].Hourly(),
			Least: n * p.Fleet.Budget, Most: n * Attempts * p.Fleet.PodDeadline()})
	}
	return list
}
