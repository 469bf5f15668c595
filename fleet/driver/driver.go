// Package driver carries a fleet through from the user's side: it creates the objects, watches the
// campaigns, lets campaigns on lost nodes be replaced, and collects what was delivered.
//
// It keeps no state of its own. The objects and records in the cluster are the state, so any laptop can
// go on, and two can watch the same run. Package cluster asks and changes the cluster; package results
// writes what was delivered.
package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/fleet"
	"tuner/fleet/cluster"
	"tuner/fleet/objects"
	"tuner/fleet/record"
	"tuner/fleet/results"
	"tuner/internal/exit"
	"tuner/internal/words"
)

// Reader asks the cluster. Each method blocks for one question, and ends with its context.
type Reader interface {
	Objects(ctx context.Context, run string) (cluster.Objects, error)
	Results(ctx context.Context, run string) ([]record.ConfigMap, error) // without segments
	Records(ctx context.Context, run string) ([]record.ConfigMap, error) // with them
}

// Lister lists what a run has beside its records. Each method blocks for one question, and ends with its context.
type Lister interface {
	Sent(ctx context.Context, run string) ([]record.Sent, error)           // the segments without their content
	Further(ctx context.Context, stage string) ([]record.ConfigMap, error) // the plans of further campaigns of a stage
}

// Changer changes the fleet's own objects. Each method blocks for one change, and ends with its context.
type Changer interface {
	Apply(ctx context.Context, documents []byte) error
	Delete(ctx context.Context, run string) (names []string, err error)
}

// Rescuer frees campaigns on nodes that do not answer. Its methods block, and end with their context.
type Rescuer interface {
	NodeState(ctx context.Context, name string) cluster.Node
	Rescue(ctx context.Context, pod string) error
}

// Driver carries a fleet through. Its fields do not change while it works.
type Driver struct {
	Plan   fleet.Plan
	Read   Reader
	List   Lister
	Change Changer
	Rescue Rescuer
	End    Ender
	Replay results.Analyzer // analyzes what has been delivered of a campaign
	Harden bool             // create the policy too
	// Blind: free a campaign also where the user may not see whether its node answers
	Blind bool
	Say   func(line string) // tells the user what has happened, in order; not retained
}

// every is the time between two questions about the state. Each costs the API server two lists.
const every = 10 * time.Second

// patience is the time after the fleet's deadline in which the cluster ends its jobs by itself.
const patience = 2 * time.Minute

// longestQuestion bounds one question to the cluster, so that a silent one is asked again.
const longestQuestion = 2 * time.Minute

func (d Driver) sayf(format string, args ...any) { d.Say(fmt.Sprintf(format, args...)) }

// Run creates what is not there, and returns the states when nothing more will come. What was
// delivered by then is collected. The end of the context ends the watch, and not the fleet.
func (d Driver) Run(ctx context.Context) ([]cluster.Status, error) {
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	w := newWatch(d)
	limit := time.Now().Add(d.Plan.Fleet.Deadline + patience)
	for {
		err := w.round(ctx)
		if errors.As(err, new(*filesError)) {
			return w.states, err
		}
		w.complain(ctx, err)
		switch {
		case err == nil && w.isOver():
			return w.states, w.damage
		case time.Now().After(limit):
			return w.states, exit.With(exit.Inconclusive, fmt.Errorf("the fleet's deadline of %s is over, and %s have no result; `tuner fleet status` says why, and `tuner fleet delete` ends them",
				d.Plan.Fleet.Deadline, words.Count(w.open(), "campaign")))
		}
		select {
		case <-ctx.Done():
			return w.states, exit.With(exit.Interrupted, errors.New("the watch has ended, and the fleet goes on in the cluster"))
		case <-time.After(every):
		}
	}
}

// start creates the jobs that are not there. A job that has ended is removed by the cluster after a
// day, or by `delete`. It is not created again if all its results are there, or were collected before.
func (d Driver) start(ctx context.Context) error {
	have, delivered, err := d.ask(ctx)
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for _, s := range cluster.StatusOf(d.Plan, have, delivered, time.Now()) {
		if s.State == cluster.StateNotApplied {
			missing[s.Machine] = true
		}
	}
	switch {
	case len(missing) == 0 && len(have.Jobs) == 0:
		d.sayf("run %s has all its results; nothing is created. A fleet with another `name:` and `output:` measures again", d.Plan.Run)
		return nil
	case len(missing) == 0:
		d.sayf("run %s is in the cluster; going on", d.Plan.Run)
		return nil
	}
	list, err := objects.Of(d.Plan, objects.Options{Harden: d.Harden})
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o objects.Object) bool { return o.Machine() != "" && !missing[o.Machine()] })
	var b bytes.Buffer
	if err := objects.Write(&b, "Run "+d.Plan.Run+".", list...); err != nil {
		return err
	}
	if err := d.Change.Apply(ctx, b.Bytes()); err != nil {
		return err
	}
	d.sayf("run %s: created %s for %s", d.Plan.Run, words.Count(len(list), "object"), strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	return nil
}

// ask asks for the objects and the results of the run. Results that were collected before count, too.
func (d Driver) ask(ctx context.Context) (cluster.Objects, []record.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, longestQuestion)
	defer cancel()
	have, err := d.Read.Objects(ctx, d.Plan.Run)
	if err != nil {
		return have, nil, err
	}
	records, err := d.Read.Results(ctx, d.Plan.Run)
	if err != nil {
		return have, nil, err
	}
	delivered, err := record.Results(records)
	if err != nil {
		return have, delivered, err
	}
	if delivered, err = results.WithCollected(d.Plan, delivered); err != nil {
		return have, nil, &filesError{exit.OfFiles(err)}
	}
	return have, delivered, nil
}

// Deliveries reads what was delivered of each item. damage is about records that cannot be used.
func (d Driver) Deliveries(ctx context.Context) (list []record.Delivery, damage, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestQuestion)
	defer cancel()
	records, err := d.Read.Records(ctx, d.Plan.Run)
	if err != nil {
		return nil, nil, err
	}
	list, damage = record.Join(records)
	return list, damage, nil
}

// States asks what each campaign does, without its journal. damage is about records that cannot be used.
func (d Driver) States(ctx context.Context) (states []cluster.Status, damage, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestQuestion)
	defer cancel()
	var have cluster.Objects
	var records []record.ConfigMap
	var sent []record.Sent
	all, ctx := errgroup.WithContext(ctx) // three questions take as long as the longest of them
	all.Go(func() (err error) { have, err = d.Read.Objects(ctx, d.Plan.Run); return err })
	all.Go(func() (err error) { records, err = d.Read.Results(ctx, d.Plan.Run); return err })
	all.Go(func() (err error) { sent, err = d.List.Sent(ctx, d.Plan.Run); return err })
	if err := all.Wait(); err != nil {
		return nil, nil, err
	}
	delivered, damage := record.Outline(records, sent)
	return cluster.StatusOf(d.Plan, have, delivered, time.Now()), damage, nil
}

// filesError is one that the user must settle: what was delivered cannot be written.
type filesError struct{ err error }

func (e *filesError) Error() string { return e.err.Error() }
func (e *filesError) Unwrap() error { return e.err }

// collect writes what was delivered. damage is about records that cannot be used.
func (d Driver) collect(ctx context.Context) (list results.List, damage, err error) {
	deliveries, damage, err := d.Deliveries(ctx)
	if err != nil {
		return list, nil, err
	}
	if list, err = results.Collect(d.Plan, deliveries); err != nil {
		return list, damage, &filesError{exit.OfFiles(err)}
	}
	return list, damage, nil
}

// Delete collects what was delivered, and then deletes the run from the cluster. With uncollected, it
// deletes it also if something that was delivered cannot be collected. It returns what it deleted.
func (d Driver) Delete(ctx context.Context, uncollected bool) ([]string, error) {
	list, damage, err := d.collect(ctx)
	if err := errors.Join(damage, err); err != nil && !uncollected {
		return nil, fmt.Errorf("nothing is deleted, since not all that was delivered can be collected; --uncollected deletes it: %w", err)
	}
	if n := len(list.Campaigns) - list.Missing(); n > 0 {
		d.sayf("collected %s of %d in %s", words.Count(n, "campaign"), len(list.Campaigns), d.Plan.Fleet.Output)
	}
	return d.Change.Delete(ctx, d.Plan.Run)
}
