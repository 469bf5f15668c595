package record

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outlineOf reads records as a list without contents has them.
func outlineOf(records []ConfigMap) ([]Delivery, error) {
	var sent []Sent
	var results []ConfigMap
	for _, m := range records {
		if m.Metadata.Labels[LabelKind] != KindSegment {
			results = append(results, m)
			continue
		}
		end, _ := strconv.ParseInt(m.Metadata.Labels[LabelEnd], 10, 64) // the comparison finds a wrong one
		sent = append(sent, Sent{m.Metadata.Name, end})
	}
	return Outline(results, sent)
}

// Without any journal, the outline has the results and the progress that all records have.
func TestOutlineIsThatOfAllRecords(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		var records []ConfigMap
		for i := range random.IntN(4) {
			uid := fmt.Sprintf("%08d", i) // as short as in names
			var parts []string
			for range 1 + random.IntN(4) {
				parts = append(parts, strings.Repeat("x", random.IntN(50))+"\n")
			}
			segments, result := delivered(t, uid, parts...)
			records = append(records, segments...)
			if i == 0 && random.IntN(2) == 0 {
				records = append(records, result)
			}
		}
		random.Shuffle(len(records), func(i, k int) { records[i], records[k] = records[k], records[i] })
		want, err := Join(records)
		if err != nil {
			t.Fatal(err)
		}
		got, err := outlineOf(records)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		for i := range want {
			if diff := cmp.Diff(Delivery{Item: want[i].Item, Result: want[i].Result, Attempts: want[i].Attempts}, got[i]); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// A record with another name is said, and the rest is counted.
func TestOutlineOfForeignRecords(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "x", "-seg-", "a-1-seg-b", "a-1-seg-b-1", "a-b-seg-c-0001", "a-01-seg-c-0001", "a-1-seg-c-00001"} {
		list, err := Outline(nil, []Sent{{Name: name, End: 3}, {Name: "q3-1-s1-c7i-2-seg-aaaaaaaa-0007", End: 9}})
		want := []Delivery{{Item: item, Attempts: []Progress{{"aaaaaaaa", 1, 9}}}}
		if diff := cmp.Diff(want, list); diff != "" || err == nil || !strings.Contains(err.Error(), strconv.Quote(name)) {
			t.Errorf("%q: %v\n%s", name, err, diff)
		}
	}
}
