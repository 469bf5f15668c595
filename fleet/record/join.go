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
}

// Progress counts the segments that an attempt has sent so far.
type Progress struct {
	UID      string
	Segments int
	Bytes    int64
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
		return nil
	}
	counts := Attempt{d.Item, d.Result.Attempt}
	for _, p := range d.Attempts {
		if p.UID != counts.UID {
			d.Discarded = append(d.Discarded, p.UID)
		}
	}
	var text []byte
	for i, s := range segments[counts] {
		if s.Ordinal != i || s.From != int64(len(text)) {
			return fmt.Errorf("cannot join the journal of %s: segment %d of attempt %s is missing", d.Item, i, counts.UID)
		}
		text = append(text, s.Text...)
	}
	if n := len(segments[counts]); n != d.Result.Segments || int64(len(text)) != d.Result.Bytes || sum(text) != d.Result.SHA256 {
		return fmt.Errorf("cannot join the journal of %s: %d segments with %d bytes are there, and the result says %d with %d: records were removed or changed",
			d.Item, n, len(text), d.Result.Segments, d.Result.Bytes)
	}
	d.Journal = text
	return nil
}
