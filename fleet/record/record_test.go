package record

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
)

var item = Item{"q3-1-s1-c7i", 2}

// delivered makes the records of an attempt that sends parts of a journal, and its result.
func delivered(t testing.TB, uid string, parts ...string) (segments []ConfigMap, result ConfigMap) {
	t.Helper()
	a, all := Attempt{item, uid}, ""
	for i, part := range parts {
		m, fits, err := Segment{a, i, int64(len(all)), []byte(part)}.ConfigMap("q3-1", "c7i")
		if err != nil || !fits {
			t.Fatal(fits, err)
		}
		segments, all = append(segments, throughJSON(t, m)), all+part
	}
	r := Result{Job: item.Job, Index: item.Index, Attempt: uid, Machine: "c7i", Model: "m", Bytes: int64(len(all)), Segments: len(parts), SHA256: Digest([]byte(all))}
	m, err := r.ConfigMap("q3-1")
	if err != nil {
		t.Fatal(err)
	}
	return segments, throughJSON(t, m)
}

// throughJSON sends a record to the API server and back.
func throughJSON(t testing.TB, m ConfigMap) ConfigMap {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var again ConfigMap
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

// The journal of the attempt with the result is joined, in whatever order records are listed. Other
// attempts are named.
func TestJoin(t *testing.T) {
	t.Parallel()
	first, result := delivered(t, "aaaaaaaa-1", "{header}\n", "{a}\n{b}\n", "{c}\n")
	second, _ := delivered(t, "bbbbbbbb-2", "{header}\n", "{x}\n")
	other := ConfigMap{Metadata: Metadata{Name: "foreign"}}
	all := append(append(slices.Clone(first), second...), result, other)
	for range 20 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		got, err := Join(all)
		if err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		d := got[0]
		if string(d.Journal) != "{header}\n{a}\n{b}\n{c}\n" || d.Item != item || d.Result.Attempt != "aaaaaaaa-1" {
			t.Errorf("%s of %+v", d.Journal, d.Result)
		}
		if diff := cmp.Diff([]string{"bbbbbbbb-2"}, d.Discarded); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]Progress{{"aaaaaaaa-1", 3, 21}, {"bbbbbbbb-2", 2, 13}}, d.Attempts); diff != "" {
			t.Error(diff)
		}
	}
	got, err := Join(second) // while it runs
	if err != nil || got[0].Result != nil || len(got[0].Journal) != 0 || got[0].Attempts[0].Bytes != 13 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What has arrived of an item without a result is a part: whole, of the attempt that is farthest. With it
// the item can be ended, and what arrives later does not count.
func TestPart(t *testing.T) {
	t.Parallel()
	first, result := delivered(t, "aaaaaaaa-1", "{header}\n", "{a}\n", "{b}\n")
	other, _ := delivered(t, "bbbbbbbb-2", "{header}\n")
	gap := []ConfigMap{first[0], first[2], other[0]}
	d, err := Join(gap)
	if err != nil || len(d) != 1 || d[0].Part == nil || d[0].Part.UID != "aaaaaaaa-1" || string(d[0].Part.Journal) != "{header}\n" || d[0].Part.Segments != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	end, err := d[0].Part.End("q3-1", "m", "c7i", 1, "it costs too much")
	if err != nil || end.Metadata.Name != result.Metadata.Name {
		t.Fatalf("%q, %v", end.Metadata.Name, err)
	}
	d, err = Join(append(slices.Clone(first), other[0], throughJSON(t, end)))
	if err != nil || string(d[0].Journal) != "{header}\n" || d[0].Result.Hopeless != "it costs too much" || d[0].Part != nil || len(d[0].Discarded) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// A journal that is not whole is never taken for one.
func TestJoinRefuses(t *testing.T) {
	t.Parallel()
	check := func(name, want string, change func(segments []ConfigMap, result *ConfigMap) []ConfigMap) {
		t.Helper()
		segments, result := delivered(t, "aaaaaaaa-1", "{header}\n", "{a}\n", "{b}\n")
		got, err := Join(append(change(segments, &result), result))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
		for _, d := range got {
			if len(d.Journal) > 0 {
				t.Errorf("%s: a journal of %d bytes", name, len(d.Journal))
			}
		}
	}
	check("the first is gone", "segment 0 of attempt aaaaaaaa-1 is missing", func(s []ConfigMap, _ *ConfigMap) []ConfigMap { return s[1:] })
	check("one between is gone", "segment 1 of attempt", func(s []ConfigMap, _ *ConfigMap) []ConfigMap { return []ConfigMap{s[0], s[2]} })
	check("the last is gone", "records were removed or changed", func(s []ConfigMap, _ *ConfigMap) []ConfigMap { return s[:2] })
	check("renamed", "it says that it is", func(s []ConfigMap, _ *ConfigMap) []ConfigMap {
		s[1].Metadata.Name += "x"
		return s
	})
	check("another content", "its content has not the digest", func(s []ConfigMap, _ *ConfigMap) []ConfigMap {
		s[1].BinaryData = s[2].BinaryData
		return s
	})
	check("no content", "cannot use the ConfigMap", func(s []ConfigMap, _ *ConfigMap) []ConfigMap {
		s[1].BinaryData = nil
		return s
	})
	check("a result under another name", "it says that it is", func(s []ConfigMap, r *ConfigMap) []ConfigMap {
		r.Metadata.Name = "q3-1-s1-c7i-3-result"
		return s
	})
}

// What does not fit into a ConfigMap is said, and not cut.
func TestSegmentTooLarge(t *testing.T) {
	t.Parallel()
	noise := make([]byte, MostBytes+1) // that no compression makes smaller
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise)
	if _, fits, err := (Segment{Attempt: Attempt{item, "a"}, Text: noise}).ConfigMap("r", "m"); fits || err != nil {
		t.Errorf("%t, %v", fits, err)
	}
	m, fits, err := Segment{Attempt: Attempt{item, "a"}, Text: noise[:MostBytes-4096]}.ConfigMap("r", "m")
	text, _ := json.Marshal(m)
	// base64 makes 4 bytes of 3. The API server counts the bytes themselves, of which it takes 1 MiB.
	if !fits || err != nil || len(m.BinaryData[keyJournal]) > 1<<20-64<<10 || len(text) > 1.5e6 {
		t.Errorf("%d bytes, %t, %v", len(text), fits, err)
	}
}

// Foreign records neither fill the memory nor become a journal that nobody sent.
func FuzzRecord(f *testing.F) {
	segments, result := delivered(f, "aaaaaaaa-1", "{header}\n", "{a}\n")
	for _, m := range append(segments, result) {
		f.Add(m.Metadata.Name, m.Data[keyMeta], m.BinaryData[keyJournal], m.Data[keyResult])
	}
	f.Fuzz(func(t *testing.T, name, meta string, packed []byte, result string) {
		defer alloctest.Bound(t, len(meta)+len(result)+2000*len(packed))()
		m := ConfigMap{Metadata: Metadata{Name: name}, Data: map[string]string{keyMeta: meta, keyResult: result}, BinaryData: map[string][]byte{keyJournal: packed}}
		if s, err := m.segment(); err == nil && s.segmentName(s.Ordinal) != name {
			t.Errorf("%q is read as %q", name, s.segmentName(s.Ordinal))
		}
		if r, err := m.result(); err == nil && r.Of().resultName() != name {
			t.Errorf("%q is read as %q", name, r.Of().resultName())
		}
	})
}
