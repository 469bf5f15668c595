package record

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Delivery joins the records of a run about one item.
type Delivery struct {
	Item      Item
	Result    *Result // of the attempt that counts; nil without one so far
	Journal   []byte  // of the attempt that counts; empty without one so far
	Attempts  []Progress
	Discarded []string // attempts that delivered and do not count, by UID
	Part      *Part    // without a result: what has arrived of the attempt that has sent most; else nil
}

// Part is the beginning of a journal whose attempt has not ended.
type Part struct {
	Attempt
	Segments int
	Journal  []byte
}

// End makes the result with which the user's side ends an item early. The part is its journal.
func (p Part) End(run, model, machine string, repeat int, why string) (ConfigMap, error) {
	return Result{Job: p.Job, Index: p.Index, Attempt: p.UID, Model: model, Machine: machine, Repeat: repeat, Hopeless: why,
		Bytes: int64(len(p.Journal)), Segments: p.Segments, SHA256: Digest(p.Journal)}.ConfigMap(run)
}

// Progress counts the segments that an attempt has sent so far.
type Progress struct {
	UID      string
	Segments int
	Bytes    int64
}

// Results reads the results among the records of a run. The deliveries have no journals.
func Results(records []ConfigMap) ([]Delivery, error) {
	var list []Delivery
	var errs []error
	for _, c := range records {
		if c.Metadata.Labels[LabelKind] != KindResult {
			continue
		}
		r, err := c.result()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, Delivery{Item: r.Of(), Result: &r})
	}
	slices.SortFunc(list, func(a, b Delivery) int { return compareItems(&a, &b) })
	return list, errors.Join(errs...)
}

// Join reads the records of a run. Each item with a record has one delivery; they are ordered by job
// and index. The journal of an item is complete, or the error names what is missing: a result is
// written after all its segments, so a gap means that records were removed.
func Join(records []ConfigMap) ([]Delivery, error) {
	segments := map[Attempt][]Segment{}
	items := map[Item]*Delivery{}
	of := func(i Item) *Delivery {
		if items[i] == nil {
			items[i] = &Delivery{Item: i}
		}
		return items[i]
	}
	var errs []error
	for _, c := range records {
		switch c.Metadata.Labels[LabelKind] {
		case KindSegment:
			s, err := c.segment()
			if err != nil {
				errs = append(errs, err)
				continue
			}
			segments[s.Attempt] = append(segments[s.Attempt], s)
		case KindResult:
			r, err := c.result()
			if err != nil {
				errs = append(errs, err)
				continue
			}
			of(r.Of()).Result = &r
		}
	}
	for a, list := range segments {
		slices.SortFunc(list, func(a, b Segment) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
		d, p := of(a.Item), Progress{UID: a.UID, Segments: len(list)}
		for _, s := range list {
			p.Bytes += int64(len(s.Text))
		}
		d.Attempts = append(d.Attempts, p)
	}
	var list []Delivery
	for _, d := range slices.SortedFunc(maps.Values(items), compareItems) {
		slices.SortFunc(d.Attempts, func(a, b Progress) int { return cmp.Compare(a.UID, b.UID) })
		if err := d.join(segments); err != nil {
			errs = append(errs, err)
		}
		list = append(list, *d)
	}
	return list, errors.Join(errs...)
}

func compareItems(a, b *Delivery) int {
	return cmp.Or(cmp.Compare(a.Item.Job, b.Item.Job), cmp.Compare(a.Item.Index, b.Item.Index))
}

// join joins the segments of the attempt that counts, and names the others.
func (d *Delivery) join(segments map[Attempt][]Segment) error {
	if d.Result == nil {
		d.Part = d.farthest(segments)
		return nil
	}
	counts := Attempt{d.Item, d.Result.Attempt}
	for _, p := range d.Attempts {
		if p.UID != counts.UID {
			d.Discarded = append(d.Discarded, p.UID)
		}
	}
	list := segments[counts]
	if d.Result.Hopeless != "" { // it was ended while it sent
		list = list[:min(len(list), d.Result.Segments)]
	}
	text, n := joined(list)
	switch {
	case n < len(list):
		return fmt.Errorf("cannot join the journal of %s: segment %d of attempt %s is missing", d.Item, n, counts.UID)
	case n != d.Result.Segments || int64(len(text)) != d.Result.Bytes || sum(text) != d.Result.SHA256:
		return fmt.Errorf("cannot join the journal of %s: %d segments with %d bytes are there, and the result says %d with %d: records were removed or changed",
			d.Item, n, len(text), d.Result.Segments, d.Result.Bytes)
	}
	d.Journal = text
	return nil
}

// joined joins segments up to the first one that is missing, and counts them.
func joined(list []Segment) (text []byte, n int) {
	for i, s := range list {
		if s.Ordinal != i || s.From != int64(len(text)) {
			return text, i
		}
		text = append(text, s.Text...)
	}
	return text, len(list)
}

// farthest returns the longest beginning of a journal; nil without one.
func (d *Delivery) farthest(segments map[Attempt][]Segment) *Part {
	var best *Part
	for _, p := range d.Attempts {
		a := Attempt{d.Item, p.UID}
		if text, n := joined(segments[a]); n > 0 && (best == nil || len(text) > len(best.Journal)) {
			best = &Part{a, n, text}
		}
	}
	return best
}
