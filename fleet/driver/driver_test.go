package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tuner/fleet"
	"tuner/fleet/cluster"
	"tuner/fleet/objects"
	"tuner/fleet/record"
	"tuner/internal/exit"
)

const digest = "669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1669ed7b1"

// plan has one model on two types of machines.
func plan(t *testing.T) fleet.Plan {
	t.Helper()
	f, err := fleet.Parse("fleet.yaml", []byte(`name: q3
models: {m: {profile: m.yaml, from: pvc://models/m.onnx}}
machines:
  a: {select: {type: a}, cpus: 1, memory: 1Gi}
  b: {select: {type: b}, cpus: 2, memory: 1Gi}
search: {budget: 10s}
deadline: 10m
cluster: {image: "tuner@sha256:`+digest+`"}
output: `+filepath.Join(t.TempDir(), "out")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := fleet.NewPlan(f, func(string) ([]byte, error) { return []byte("model: m.onnx\n"), nil })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fake is a cluster whose objects change with time: at asks every question.
type fake struct {
	plan    fleet.Plan
	began   time.Time
	applied []string // documents
	rescued map[string]time.Duration
	node    cluster.Node
	at      func(f *fake, after time.Duration) (cluster.Objects, []record.ConfigMap, error)
	deleted bool
	further []record.ConfigMap // plans of further campaigns
}

func (f *fake) Objects(context.Context, string) (cluster.Objects, error) {
	if len(f.applied) == 0 {
		return cluster.Objects{}, nil
	}
	o, _, err := f.at(f, time.Since(f.began))
	return o, err
}

func (f *fake) Records(context.Context, string) ([]record.ConfigMap, error) {
	_, r, err := f.at(f, time.Since(f.began))
	return r, err
}

func (f *fake) Results(ctx context.Context, run string) ([]record.ConfigMap, error) {
	if len(f.applied) == 0 {
		return nil, nil
	}
	return f.Records(ctx, run)
}

func (f *fake) Further(context.Context, string) ([]record.ConfigMap, error) { return f.further, nil }

func (f *fake) Sent(ctx context.Context, run string) (list []record.Sent, err error) {
	records, err := f.Records(ctx, run)
	for _, r := range records {
		if r.Metadata.Labels[record.LabelKind] == record.KindSegment {
			end, _ := strconv.ParseInt(r.Metadata.Labels[record.LabelEnd], 10, 64) // the test compares it
			list = append(list, record.Sent{Name: r.Metadata.Name, End: end})
		}
	}
	return list, err
}

func (f *fake) Apply(_ context.Context, documents []byte) error {
	f.applied = append(f.applied, string(documents))
	return nil
}

func (f *fake) Delete(context.Context, string) ([]string, error) {
	f.deleted = true
	return []string{"job/a"}, nil
}

func (f *fake) NodeState(context.Context, string) cluster.Node { return f.node }

func (f *fake) Rescue(_ context.Context, pod string) error {
	f.rescued[pod] = time.Since(f.began)
	return nil
}

// jobs returns the jobs of both types.
func (f *fake) jobs() cluster.Objects {
	var o cluster.Objects
	for _, machine := range []string{"a", "b"} {
		var j cluster.Job
		j.Metadata.Name = record.JobName(f.plan.Run, machine)
		o.Jobs = append(o.Jobs, j)
	}
	return o
}

func (f *fake) pod(machine, name, phase string) cluster.Pod {
	var p cluster.Pod
	p.Metadata.Name = name
	p.Metadata.Labels = map[string]string{"batch.kubernetes.io/job-name": record.JobName(f.plan.Run, machine)}
	p.Metadata.Annotations = map[string]string{"batch.kubernetes.io/job-completion-index": "0"}
	p.Spec.NodeName, p.Status.Phase = "node-"+machine, phase
	return p
}

// delivered returns the records of a machine's item.
func (f *fake) delivered(t *testing.T, machine string) []record.ConfigMap {
	t.Helper()
	item, text := record.Item{Job: record.JobName(f.plan.Run, machine)}, []byte("{"+machine+"}\n")
	segment, _, err := record.Segment{Attempt: record.Attempt{Item: item, UID: "u"}, Text: text}.ConfigMap(f.plan.Run, machine)
	result, second := record.Result{Job: item.Job, Attempt: "u", Machine: machine, Model: "m", Bytes: int64(len(text)), Segments: 1, SHA256: record.Digest(text)}.ConfigMap(f.plan.Run)
	if err := errors.Join(err, second); err != nil {
		t.Fatal(err)
	}
	return []record.ConfigMap{segment, result}
}

func newFake(t *testing.T, at func(*fake, time.Duration) (cluster.Objects, []record.ConfigMap, error)) (*fake, Driver, *[]string) {
	t.Helper()
	p := plan(t)
	f := &fake{plan: p, began: time.Now(), rescued: map[string]time.Duration{}, at: at}
	said := new([]string)
	return f, Driver{Plan: p, Read: f, List: f, Change: f, Rescue: f, Say: func(line string) { *said = append(*said, line) }}, said
}

// A run creates what is not there, says what changes, and collects each result as it comes. The same
// command creates nothing again.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, d, said := newFake(t, func(f *fake, after time.Duration) (cluster.Objects, []record.ConfigMap, error) {
			o := f.jobs()
			o.Pods = []cluster.Pod{f.pod("a", "pa", "Running"), f.pod("b", "pb", "Running")}
			var r []record.ConfigMap
			if after > 15*time.Second {
				r = f.delivered(t, "a")
				if _, err := os.Stat(filepath.Join(f.plan.Fleet.Output, "a", "m", "journal.jsonl")); after > 35*time.Second && err != nil {
					t.Error("a's journal waits for b's")
				}
			}
			if after > 55*time.Second {
				r = append(r, f.delivered(t, "b")...)
			}
			if after > 25*time.Second && after < 45*time.Second {
				return o, nil, errors.New("cannot ask: connection refused")
			}
			return o, r, nil
		})
		states, err := d.Run(t.Context())
		if err != nil || len(states) != 2 || states[0].State != cluster.StateDone || states[1].State != cluster.StateDone {
			t.Fatalf("%+v, %v", states, err)
		}
		// An account, its role and binding, and a plan and a job for each type.
		if len(f.applied) != 1 || strings.Count(f.applied[0], "\nkind: ") != 7 {
			t.Errorf("%d: %s", len(f.applied), f.applied)
		}
		want := []string{"run " + f.plan.Run + ": created 7 objects for a, b", "a m: running on node-a", "b m: running on node-b", "a m: done on node-a",
			"cannot ask: connection refused; asking again every 10s, and the pods measure on", "the cluster answers again", "b m: done on node-b"}
		if !slices.Equal(*said, want) {
			t.Errorf("%q", *said)
		}
		if _, err := d.Run(t.Context()); err != nil || len(f.applied) != 1 || !slices.Contains(*said, "run "+f.plan.Run+" is in the cluster; going on") {
			t.Errorf("%v, %q", err, *said)
		}
	})
}

// A job that ended long ago is gone. It is created again only if a result of it is missing.
func TestRunAfterTheJobsAreGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, d, _ := newFake(t, func(f *fake, after time.Duration) (cluster.Objects, []record.ConfigMap, error) {
			r := f.delivered(t, "a")
			if len(f.applied) == 1 { // before this command
				return cluster.Objects{}, r, nil
			}
			return f.jobs(), append(r, f.delivered(t, "b")...), nil
		})
		f.applied = []string{"before"}
		if _, err := d.Run(t.Context()); err != nil || len(f.applied) != 2 || strings.Contains(f.applied[1], "plan-a") || !strings.Contains(f.applied[1], "plan-b") {
			t.Errorf("%v; %q", err, f.applied)
		}
	})
}

// After `delete` the cluster has nothing of the run. What was collected is not measured and paid once more. A folder with
// another run's results is found before anything is created.
func TestRunAfterDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		isDeleted := false
		f, d, said := newFake(t, func(f *fake, _ time.Duration) (cluster.Objects, []record.ConfigMap, error) {
			if isDeleted {
				return cluster.Objects{}, nil, nil
			}
			return f.jobs(), append(f.delivered(t, "a"), f.delivered(t, "b")...), nil
		})
		if _, err := d.Run(t.Context()); err != nil || len(f.applied) != 1 {
			t.Fatalf("%v; %q", err, f.applied)
		}
		isDeleted = true
		states, err := d.Run(t.Context())
		if err != nil || len(f.applied) != 1 || len(states) != 2 || states[1].State != cluster.StateDone {
			t.Errorf("%+v, %v; %q", states, err, *said)
		}
		if text := (*said)[len(*said)-3]; !strings.Contains(text, "has all its results; nothing is created") {
			t.Errorf("%q", *said)
		}
		d.Plan.Run += "x"
		if _, err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "choose another `output:`") || len(f.applied) != 1 {
			t.Errorf("%v; %q", err, f.applied)
		}
	})
}

// An output folder that cannot be is found before anything is created, with the exit code of a wrong file.
func TestRunWithoutAFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, d, _ := newFake(t, func(f *fake, _ time.Duration) (cluster.Objects, []record.ConfigMap, error) { return f.jobs(), nil, nil })
	d.Plan.Fleet.Output = filepath.Join(file, "out")
	if _, err := d.Run(t.Context()); exit.CodeOf(err) != exit.Usage || len(f.applied) != 0 {
		t.Errorf("%v with exit code %d; %q", err, exit.CodeOf(err), f.applied)
	}
}

// hanging is a cluster in which the node of b is lost: its pod should have ended by second 40.
func hanging(f *fake, _ time.Duration) (cluster.Objects, []record.ConfigMap, error) {
	o := f.jobs()
	p := f.pod("b", "pb", "Running")
	due := f.began.Add(40 * time.Second)
	p.Metadata.DeletionTimestamp = &due
	o.Pods = []cluster.Pod{p}
	if len(f.rescued) > 0 {
		next := f.pod("b", "pb2", "Running")
		next.Metadata.CreationTimestamp = time.Now()
		o.Pods[0].Status.Phase = "Failed"
		o.Pods = append(o.Pods, next)
	}
	return o, nil, nil
}

// A pod on a lost node is said to be over after its grace and another minute that this program has seen,
// and only if its node is known to be silent, or with the user's consent.
func TestRescue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node   cluster.Node
		blind  bool
		rescue bool
		say    string
	}{
		"silent":                  {cluster.NodeSilent, false, true, "b m: node node-b does not answer; pod pb counts as over"},
		"it answers":              {cluster.NodeReady, true, false, "b m: hangs on node-b"},
		"unknown":                 {cluster.NodeUnknown, false, false, "--rescue-unseen does that"},
		"unknown, with a consent": {cluster.NodeUnknown, true, true, "b m: node node-b does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, d, said := newFake(t, hanging)
				f.node, d.Blind = c.node, c.blind
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				_, err := d.Run(ctx)
				if exit.CodeOf(err) != exit.Interrupted {
					t.Error(err)
				}
				// It is first seen ending at second 0, so two minutes are over in the round of second 120.
				if at, ok := f.rescued["pb"]; ok != c.rescue || ok && at != 2*time.Minute {
					t.Errorf("rescued %t, after %s", ok, at)
				}
				count := 0
				for _, line := range *said {
					if strings.Contains(line, c.say) {
						count++
					}
				}
				if count != 1 {
					t.Errorf("%d × %q in %q", count, c.say, *said)
				}
			})
		})
	}
}

// What waits until the deadline ends the run without a verdict. The scheduler's words are kept although
// the pods are gone.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, d, _ := newFake(t, func(f *fake, after time.Duration) (cluster.Objects, []record.ConfigMap, error) {
			o := f.jobs()
			if after < time.Minute {
				p := f.pod("b", "pb", "Pending")
				p.Status.Conditions = append(p.Status.Conditions, struct {
					Type    string `json:"type"`
					Status  string `json:"status"`
					Reason  string `json:"reason"`
					Message string `json:"message"`
				}{"PodScheduled", "False", "Unschedulable", "0/2 nodes are available"})
				o.Pods = []cluster.Pod{p}
			} else {
				o.Jobs[1].Status.Conditions = append(o.Jobs[1].Status.Conditions, struct {
					Type    string `json:"type"`
					Status  string `json:"status"`
					Message string `json:"message"`
				}{"Failed", "True", "was active longer than its deadline"})
			}
			return o, f.delivered(t, "a"), nil
		})
		states, err := d.Run(t.Context())
		if err != nil || states[1].State != cluster.StateGivenUp || states[1].Reason != "was active longer than its deadline; it waited: 0/2 nodes are available" {
			t.Errorf("%+v, %v", states, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f, d, _ := newFake(t, func(f *fake, _ time.Duration) (cluster.Objects, []record.ConfigMap, error) {
			o := f.jobs()
			o.Jobs[0].Spec.Suspend = true // a queue that admits nothing
			return o, nil, nil
		})
		_, err := d.Run(t.Context())
		if over := time.Since(f.began); exit.CodeOf(err) != exit.Inconclusive || over < 12*time.Minute || over > 13*time.Minute {
			t.Errorf("%v after %s", err, over)
		}
	})
}

// nodes are those that the cluster has.
type nodes struct {
	names []string
	err   error
}

func (n nodes) Nodes(context.Context, map[string]string) ([]string, error) { return n.names, n.err }

// Further campaigns run where the cluster may have another machine. That none is found is no error.
func TestMore(t *testing.T) {
	t.Parallel()
	list := []fleet.More{{Machine: "a", Model: "m", Machines: 1, Avoid: []string{"n1"}}}
	for name, c := range map[string]struct {
		nodes nodes
		found bool // a machine, in time
		say   string
		runs  bool
	}{
		"another machine":        {nodes{names: []string{"n1", "n2"}}, true, "a m #2: done on node-a", true},
		"no other machine":       {nodes{names: []string{"n1"}}, false, "a m: others disturbed its machines, and the cluster has no other one of the type than n1", false},
		"nodes may not be seen":  {nodes{err: errors.New("forbidden")}, true, "a m #2: done on node-a", true},
		"it does not come":       {nodes{names: []string{"n1", "n2"}}, false, "the answer is that of the machines so far", true},
		"a type that is no more": {nodes{names: []string{"n9"}}, false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, d, said := newFake(t, func(f *fake, after time.Duration) (cluster.Objects, []record.ConfigMap, error) {
					o := f.jobs()
					if after < 30*time.Second || !c.found {
						o.Jobs[0].Spec.Suspend = !c.found
						return o, nil, nil
					}
					o.Pods = []cluster.Pod{f.pod("a", "pa", "Running")}
					return o, f.delivered(t, "a"), nil
				})
				asked := list
				if name == "a type that is no more" {
					asked = []fleet.More{{Machine: "c", Model: "m", Machines: 1}}
				}
				more, err := d.Plan.More(list)
				if err != nil {
					t.Fatal(err)
				}
				f.plan.Run = more.Run // the run that the cluster then has
				if err := d.More(t.Context(), c.nodes, asked); err != nil {
					t.Error(err)
				}
				if (len(f.applied) == 1) != c.runs || !strings.Contains(strings.Join(*said, "\n"), c.say) {
					t.Errorf("%d applied; %q", len(f.applied), *said)
				}
				_, missing := os.Stat(filepath.Join(f.plan.Fleet.Output, "more", "a", "m", "2", "journal.jsonl"))
				if (missing == nil) != c.found {
					t.Error(missing)
				}
			})
		})
	}
}

// Further campaigns that the cluster has go on, also if a late result asks for others by now, or for none. A second
// run of further campaigns is never created.
func TestFurtherGoesOn(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string][]fleet.More{"none": nil, "others": {{Machine: "b", Model: "m", Machines: 2, Avoid: []string{"n1"}}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, d, said := newFake(t, func(f *fake, _ time.Duration) (cluster.Objects, []record.ConfigMap, error) {
					o := f.jobs()
					o.Pods = []cluster.Pod{f.pod("a", "pa", "Running")}
					return o, f.delivered(t, "a"), nil
				})
				before, err := d.Plan.More([]fleet.More{{Machine: "a", Model: "m", Machines: 1, Avoid: []string{"n1"}}})
				if err != nil {
					t.Fatal(err)
				}
				text, err := before.Parts[0].JSON()
				if err != nil {
					t.Fatal(err)
				}
				f.further = []record.ConfigMap{{Data: map[string]string{objects.PlanFile: string(text)}}, {}}
				f.plan.Run, f.applied = before.Run, []string{"the further campaigns"}
				if err := d.More(t.Context(), nodes{names: []string{"n1", "n2"}}, asked); err != nil {
					t.Error(err)
				}
				if len(f.applied) != 1 || !strings.Contains(strings.Join(*said, "\n"), before.Run+" is in the cluster; going on") {
					t.Errorf("%d applied; %q", len(f.applied), *said)
				}
				if _, err := os.Stat(filepath.Join(f.plan.Fleet.Output, "more", "a", "m", "2", "journal.jsonl")); err != nil {
					t.Error(err)
				}
				list, err := d.Further(t.Context())
				if err != nil || len(list) != 1 || list[0].Run != before.Run {
					t.Errorf("%+v, %v", list, err)
				}
				f.further[0].Data[objects.PlanFile] = "{"
				if _, err := d.Further(t.Context()); err == nil {
					t.Error("a broken plan is none")
				}
			})
		})
	}
}

// The states have what has arrived of each campaign, from lists without journals. A record that cannot be used is
// said beside them.
func TestStates(t *testing.T) {
	t.Parallel()
	f, d, _ := newFake(t, func(f *fake, _ time.Duration) (cluster.Objects, []record.ConfigMap, error) {
		o := f.jobs()
		o.Pods = []cluster.Pod{f.pod("b", "pb", "Running")}
		broken := record.ConfigMap{Metadata: record.Metadata{Name: "x", Labels: map[string]string{record.LabelKind: record.KindSegment}}}
		return o, append(f.delivered(t, "a"), f.delivered(t, "b")[0], broken), nil
	})
	f.applied = []string{"the objects"}
	states, damage, err := d.States(t.Context())
	if err != nil || damage == nil || !strings.Contains(damage.Error(), `"x"`) || len(states) != 2 {
		t.Fatalf("%+v, %v, %v", states, damage, err)
	}
	// Both journals have 4 bytes: {a} or {b}, and a line's end.
	if a, b := states[0], states[1]; a.State != cluster.StateDone || a.Bytes != 4 || b.State != cluster.StateRunning || b.Bytes != 4 || b.Attempts != 1 {
		t.Errorf("%+v", states)
	}
}

// Nothing is deleted before it is collected, unless the user says so.
func TestDelete(t *testing.T) {
	t.Parallel()
	for _, isDamaged := range []bool{false, true} {
		f, d, _ := newFake(t, func(f *fake, _ time.Duration) (cluster.Objects, []record.ConfigMap, error) {
			r := f.delivered(t, "a")
			if isDamaged {
				r = r[1:] // the segment is gone
			}
			return f.jobs(), r, nil
		})
		_, err := d.Delete(t.Context(), false)
		_, missing := os.Stat(filepath.Join(f.plan.Fleet.Output, "a", "m", "journal.jsonl"))
		if f.deleted == isDamaged || (err != nil) != isDamaged || (missing != nil) != isDamaged {
			t.Errorf("damaged %t: deleted %t, %v, %v", isDamaged, f.deleted, err, missing)
		}
		if _, err := d.Delete(t.Context(), true); err != nil || !f.deleted {
			t.Errorf("with a consent: %t, %v", f.deleted, err)
		}
	}
}
