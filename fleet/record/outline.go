package record

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Sent is an entry in a list of segments. It has no content, so a list of thousands is small.
type Sent struct {
	Name string // of its record
	End  int64  // bytes of the journal up to its end; 0: the list does not say
}

// Outline reads the results among the records of a run, and counts the segments that were sent. Each item with a
// record has one delivery, in the order of Join. The deliveries have no journals, and the UIDs of their attempts are
// as short as in names.
func Outline(records []ConfigMap, sent []Sent) ([]Delivery, error) {
	list, err := Results(records)
	errs := []error{err}
	items := map[Item]Delivery{}
	for _, d := range list {
		items[d.Item] = d
	}
	attempts := map[Attempt]Progress{}
	for _, s := range sent {
		a, err := s.attempt()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p := attempts[a]
		attempts[a] = Progress{a.UID, p.Segments + 1, max(p.Bytes, s.End)}
	}
	for a, p := range attempts {
		d := items[a.Item]
		d.Item, d.Attempts = a.Item, append(d.Attempts, p)
		items[a.Item] = d
	}
	list = slices.SortedFunc(maps.Values(items), func(a, b Delivery) int { return compareItems(&a, &b) })
	for _, d := range list {
		slices.SortFunc(d.Attempts, func(a, b Progress) int { return cmp.Compare(a.UID, b.UID) })
	}
	return list, errors.Join(errs...)
}

// attempt returns the attempt in the name of a segment's record.
func (s Sent) attempt() (Attempt, error) {
	item, attempt := cutLast(s.Name, segmentMark)
	job, number := cutLast(item, "-")
	uid, count := cutLast(attempt, "-")
	index, err := strconv.Atoi(number)
	ordinal, second := strconv.Atoi(count)
	a := Attempt{Item{job, index}, uid}
	if err != nil || second != nil || a.segmentName(ordinal) != s.Name {
		return Attempt{}, fmt.Errorf("cannot use the ConfigMap %q, which has the labels of a record: this is not the name of a segment", s.Name)
	}
	return a, nil
}

// cutLast cuts a text around the last of a mark; without one, after is empty.
func cutLast(text, mark string) (before, after string) {
	i := strings.LastIndex(text, mark)
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i+len(mark):]
}
