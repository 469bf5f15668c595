// Package results has what a fleet measured, on the user's disk: it writes the journals that pods
// delivered, and ranks the types of machines with them. Reading the same records again writes the
// same files. It asks no cluster.
package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/durable"
	"tuner/profile/journal"
)

// FileName is the name of the list of campaigns in a fleet's output folder.
const FileName = "fleet.json"

// Format is the version of the list's format.
const Format = 1

// List is the content of fleet.json.
type List struct {
	Format    int        `json:"format"`    // version of this format
	Run       string     `json:"run"`       // name of the run
	Campaigns []Campaign `json:"campaigns"` // one for each item of the plan, in its order
}

// Campaign is one item of a fleet: a model on a machine.
type Campaign struct {
	Model     string         `json:"model"`               // name of the model
	Machine   string         `json:"machine"`             // name of the machine type
	Repeat    int            `json:"repeat"`              // number of the machine of the type, from 1
	Folder    string         `json:"folder,omitempty"`    // output folder of the campaign, relative to this file; absent without a result
	Result    *record.Result `json:"result,omitempty"`    // of the attempt that counts; absent without one so far
	Discarded []string       `json:"discarded,omitempty"` // attempts that delivered and do not count: UIDs of their pods
	Price     float64        `json:"price,omitempty"`     // of an hour of the pod; absent if unknown
}

// folderOf returns the folder of an item below the fleet's.
func folderOf(part fleet.Part, i fleet.Item, repeats int) string {
	folder := filepath.Join(part.Machine, i.Model)
	if repeats > 1 || i.Repeat > 1 {
		folder = filepath.Join(folder, strconv.Itoa(i.Repeat))
	}
	return folder
}

// Collect writes the journals of the deliveries into the fleet's output folder, and the list. A journal
// that is there already must be the same: another run needs another folder. What was collected of the run before
// stays: a cluster has no records of a run that was deleted, and another cluster never had them.
func Collect(p fleet.Plan, deliveries []record.Delivery) (List, error) {
	list := List{Format: Format, Run: p.Run, Campaigns: []Campaign{}}
	of := map[record.Item]record.Delivery{}
	for _, d := range deliveries {
		of[d.Item] = d
	}
	before, err := collected(p)
	if err != nil {
		return list, err
	}
	var errs []error
	for _, part := range p.Parts {
		for index, item := range part.Items {
			d := of[record.Item{Job: record.JobName(p.Run, part.Machine), Index: index}]
			c := Campaign{Model: item.Model, Machine: part.Machine, Repeat: item.Repeat, Discarded: d.Discarded, Price: part.Hourly}
			was := find(before, part, item)
			if d.Result != nil && len(d.Journal) > 0 {
				c.Folder, c.Result = folderOf(part, item, p.Fleet.Repeats), d.Result
				errs = append(errs, writeJournal(filepath.Join(p.Fleet.Output, c.Folder), d.Journal))
			} else if was >= 0 {
				c = before[was]
			}
			list.Campaigns = append(list.Campaigns, c)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return list, err
	}
	return list, list.write(p.Fleet.Output)
}

// collected returns the campaigns of a plan's run that the fleet's output folder has. Those of
// another run there are an error.
func collected(p fleet.Plan) ([]Campaign, error) {
	list, err := Read(p.Fleet.Output)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list.Campaigns = slices.DeleteFunc(list.Campaigns, func(c Campaign) bool {
		_, err := os.Stat(filepath.Join(p.Fleet.Output, c.Folder, journal.FileName))
		return c.Result == nil || err != nil // a journal that was removed is collected again
	})
	if len(list.Campaigns) > 0 && list.Run != p.Run {
		return nil, fmt.Errorf("cannot write %q: it has the campaigns of run %s; choose another `output:`, or remove it", filepath.Join(p.Fleet.Output, FileName), list.Run)
	}
	return list.Campaigns, nil
}

// WithCollected adds the results that the fleet's output folder has to those that a cluster has. It returns an error if
// the folder has another run's.
func WithCollected(p fleet.Plan, delivered []record.Delivery) ([]record.Delivery, error) {
	before, err := collected(p)
	if err != nil {
		return nil, err
	}
	for _, part := range p.Parts {
		for index, item := range part.Items {
			own := record.Item{Job: record.JobName(p.Run, part.Machine), Index: index}
			has := func(d record.Delivery) bool { return d.Item == own && d.Result != nil }
			if was := find(before, part, item); was >= 0 && !slices.ContainsFunc(delivered, has) {
				delivered = append(delivered, record.Delivery{Item: own, Result: before[was].Result})
			}
		}
	}
	return delivered, nil
}

// find returns the index of an item's campaign in a list; -1 without one.
func find(list []Campaign, part fleet.Part, i fleet.Item) int {
	return slices.IndexFunc(list, func(c Campaign) bool { return c.Model == i.Model && c.Machine == part.Machine && c.Repeat == i.Repeat })
}

// writeJournal writes a journal unless it is there.
func writeJournal(dir string, text []byte) error {
	path := filepath.Join(dir, journal.FileName)
	was, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(was, text):
		return nil
	case err == nil:
		return fmt.Errorf("cannot write %q: it has the journal of another campaign; choose another `output:`, or remove it", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot read %q: %w", path, durable.Cause(err))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the folder %q: %w", dir, durable.Cause(err))
	}
	if err := durable.WriteFile(path, durable.Bytes(text)); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, durable.Cause(err))
	}
	return nil
}

func (l List) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the folder %q: %w", dir, durable.Cause(err))
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the list of campaigns: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if err := durable.WriteFile(path, durable.Bytes(append(text, '\n'))); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, durable.Cause(err))
	}
	return nil
}

// Read reads the list in a fleet's output folder.
func Read(dir string) (List, error) {
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		return List{}, fmt.Errorf("cannot read the campaigns of a fleet in %q: %w; `tuner fleet collect` writes them", dir, durable.Cause(err))
	}
	var l List
	if err := json.Unmarshal(text, &l); err != nil {
		return List{}, fmt.Errorf("%s: this is not the list of a fleet's campaigns: %w", path, err)
	}
	if l.Format != Format {
		return List{}, fmt.Errorf("%s: the list has format %d; this version of tuner reads format %d", path, l.Format, Format)
	}
	for _, c := range l.Campaigns {
		if c.Folder != "" && !filepath.IsLocal(c.Folder) {
			return List{}, fmt.Errorf("%s: the folder %q is not below it", path, c.Folder)
		}
	}
	return l, nil
}

// Missing returns the number of campaigns without a result.
func (l List) Missing() int {
	n := 0
	for _, c := range l.Campaigns {
		if c.Result == nil {
			n++
		}
	}
	return n
}
