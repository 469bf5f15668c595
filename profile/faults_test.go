package profile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"tuner/internal/durable/faulty"
	"tuner/profile/journal"
	"tuner/search"
)

// runOn continues a campaign of three trials until the disk fails.
func runOn(t *testing.T, disk *faulty.Disk, dir string) (err error) {
	t.Helper()
	j, err := journal.On(disk).Create(dir, journal.Header{Spec: journal.NewSpecFile("p.yaml", nil)})
	var past []search.Event
	if errors.Is(err, fs.ErrExist) {
		var records []journal.Record
		if j, records, err = journal.On(disk).Open(dir); err == nil {
			past = trialsIn(t, records)
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	campaign, _, _, _, clock := newCampaign(1, 4, 2)
	if n := len(past); n > 0 {
		clock.now = clock.now.Add(past[n-1].Elapsed)
	}
	campaign.Recorder, campaign.Past = j, past
	_, err = campaign.Run(t.Context())
	return err
}

// trialsIn returns the events in a journal.
func trialsIn(t *testing.T, records []journal.Record) []search.Event {
	t.Helper()
	var events []search.Event
	for _, r := range records {
		if r.Kind != journal.KindTrial {
			continue
		}
		var e search.Event
		if err := r.Decode(&e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// After any fault at any operation, the next run continues the campaign. In the end it has each
// trial once and in order. At most the current trial was lost.
func TestCampaignAtEveryFault(t *testing.T) {
	t.Parallel()
	for _, fault := range faulty.All() {
		for at := 1; ; at++ {
			dir := t.TempDir()
			disk := &faulty.Disk{At: at, Fault: fault}
			err := runOn(t, disk, dir)
			if disk.Operations() < at {
				if err != nil {
					t.Errorf("without a fault: %v", err)
				}
				break
			}
			if err := runOn(t, &faulty.Disk{}, dir); err != nil {
				t.Errorf("%v at operation %d: the next run: %v", fault, at, err)
				continue
			}
			checkCampaign(t, fmt.Sprintf("%v at operation %d", fault, at), dir)
		}
	}
}

// checkCampaign verifies that a journal has the three trials of runOn, and an end.
func checkCampaign(t *testing.T, what, dir string) {
	t.Helper()
	_, records, err := journal.Read(dir)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	var levels []int
	for _, e := range trialsIn(t, records) {
		levels = append(levels, e.Trial.Load.Concurrency)
	}
	if last := records[len(records)-1]; !slices.Equal(levels, []int{1, 4, 2}) || last.Kind != journal.KindEnd {
		t.Errorf("%s: the trials are at %v, and the last record is of kind %s", what, levels, last.Kind)
	}
}
