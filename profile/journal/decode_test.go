package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
)

// written returns the text of a journal with a header and two more records.
func written(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	j, err := Create(dir, sampleHeader(), Entry{KindSession, Session{Tool: "1.2.3"}}, Entry{KindTrial, map[string]int{"n": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unsealed returns the same journal in the form of an earlier version without checksums.
func unsealed(t testing.TB) string {
	t.Helper()
	text := ""
	for line := range strings.Lines(written(t)) {
		open, _, ok := unseal([]byte(line))
		if !ok {
			t.Fatalf("%s has no seal", line)
		}
		text += string(open) + "}\n"
	}
	return strings.Replace(text, `"format":2`, `"format":1`, 1)
}

// checkDamage verifies that Read and Open of a text fail with an error about a line, and do not
// change the file.
func checkDamage(t *testing.T, text, want string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func() error{
		func() error { _, _, err := Read(dir); return err },
		func() error { _, _, err := Open(dir); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("got %v; want an error with %q", err, path+want)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != text {
		t.Errorf("the damaged file was changed to %q (%v)", after, err)
	}
}

func TestDamageIsAnErrorWithItsLine(t *testing.T) {
	t.Parallel()
	whole := written(t)
	lines := strings.SplitAfter(whole, "\n")
	other := strings.SplitAfter(strings.ReplaceAll(written(t), "Z", "1Z"), "\n") // with another time
	edited := func(old, by string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("%s has no %s", whole, old)
		}
		return strings.Replace(whole, old, by, 1)
	}
	resealed := func(text string) string { return string(Reseal([]byte(text))) }
	for name, test := range map[string]struct{ text, want string }{
		"empty":              {"", ":1: this is not a journal"},
		"foreign":            {"hello\n", ":1: this is not a journal"},
		"no header":          {resealed(`{"seq":1,"kind":"trial","data":{}}` + "\n"), ":1: unexpected record of kind \"trial\""},
		"second header":      {resealed(lines[0] + strings.Replace(lines[0], `"seq":1`, `"seq":2`, 1)), ":2: unexpected record of kind \"header\""},
		"garbled middle":     {lines[0] + "{\x00}\n" + lines[2], ":2: the record is damaged: "},
		"no data":            {resealed(lines[0] + `{"seq":2,"kind":"trial"}` + "\n"), ":2: record of kind \"trial\" has no data"},
		"newer format":       {resealed(edited(`"format":2`, `"format":9`)), ":1: journal has format 9"},
		"newer fields":       {resealed(edited(`"format":2`, `"format":9,"seed":"a"`)), ":1: journal has format 9"},
		"a figure":           {edited(`"n":1`, `"n":2`), ":3: the record is damaged: its checksum is wrong"},
		"a checksum":         {whole[:len(whole)-4] + "x\"}\n", ":3: the record is damaged: its checksum is wrong"},
		"no checksum":        {strings.Replace(whole, lines[1], strings.Replace(lines[1], `"sum"`, `"sun"`, 1), 1), ":2: the record is damaged"},
		"none in the header": {strings.Replace(whole, `"sum"`, `"sun"`, 1), ":1: this is not a journal, or its header is damaged"},
		"an older header":    {edited(`"format":2`, `"format":1`), ":1: the record is damaged"},
		"missing line":       {lines[0] + lines[2], ":2: record has the number 3, not 2"},
		"doubled line":       {lines[0] + lines[1] + lines[1], ":3: record has the number 2, not 3"},
		"swapped lines":      {lines[0] + lines[2] + lines[1], ":2: record has the number 3, not 2"},
		"mixed journals":     {lines[0] + lines[1] + other[2], ":3: the record is damaged: its checksum is wrong"},
		"another header":     {other[0] + lines[1] + lines[2], ":1: the record is damaged"},
		"garbled end":        {whole[:len(whole)-1] + "x", ":3: the record is damaged"},
		"an empty line":      {whole + "\n", ":4: the record is damaged"},
		"an unknown field":   {resealed(edited(`"fingerprint":"f"`, `"fingerprints":"f"`)), ":1: cannot read record 1 (header) of the journal"},
		"another case":       {resealed(edited(`"fingerprint":"f"`, `"Fingerprint":"f"`)), ":1: cannot read record 1 (header) of the journal"},
		"the same twice":     {resealed(edited(`"fingerprint":"f"`, `"fingerprint":"f","fingerprint":"g"`)), ":1: cannot read record 1 (header) of the journal"},
		"the profile":        {resealed(edited("model: ", "modal: ")), ":1: the header is damaged: spec.sha256 is not the digest of spec.text"},
		"a field of records": {resealed(lines[0] + strings.Replace(lines[1], `"at"`, `"as"`, 1)), ":2: the record is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkDamage(t, test.text, test.want)
		})
	}
}

// An error has a remedy.
func TestDamageHasARemedy(t *testing.T) {
	t.Parallel()
	whole := written(t)
	checkDamage(t, strings.Replace(whole, `"n":1`, `"n":2`, 1), ":3: the record is damaged: its checksum is wrong. It was changed or moved, a line before it is missing, or it is from another journal; "+
		"restore a copy of the file, or keep only its first 2 lines, which are whole")
	checkDamage(t, strings.Replace(whole, `"seed":9`, `"seed":8`, 1), ":1: the record is damaged: its checksum is wrong. It was changed or moved, a line before it is missing, or it is from another journal; "+
		"restore a copy of the file, or remove it to start over")
}

// The first lines of a damaged journal are a valid journal, as the error says.
func TestFirstLinesAreWhole(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(written(t), "\n")
	for n := 1; n < len(lines); n++ {
		c, err := decode("journal.jsonl", []byte(strings.Join(lines[:n], "")))
		if err != nil || len(c.records) != n {
			t.Errorf("%d lines: %d records, %v", n, len(c.records), err)
		}
	}
}

// A journal without checksums can be read and continued. Its new records have seals that cover all
// records.
func TestUnsealedJournalGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	old := unsealed(t)
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	header, records, err := Read(dir)
	if err != nil || header.Format != 1 || header.HasChecksums() || len(records) != 3 || records[2].IsSealed {
		t.Fatalf("format %d, %d records, %v; want 3 without seal", header.Format, len(records), err)
	}
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(KindTrial, "a"), j.Append(KindTrial, "b"), j.Close()); err != nil {
		t.Fatal(err)
	}
	j, records, err = Open(dir)
	if err != nil || len(records) != 5 || !records[3].IsSealed || !records[4].IsSealed {
		t.Fatalf("%d records, %v; want 5, the last two with seals", len(records), err)
	}
	if err := errors.Join(j.Append(KindTrial, "c"), j.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), old) {
		t.Fatalf("the old lines were changed (%v): %s", err, text)
	}
	edited := func(old, by string) string { return strings.Replace(string(text), old, by, 1) }
	checkDamage(t, edited(`"n":1`, `"n":2`), ":4: the record is damaged: its checksum is wrong") // the first seal covers all before it
	checkDamage(t, edited(`"a"`, `"x"`), ":4: the record is damaged")
	checkDamage(t, edited(`"c"`, `"x"`), ":6: the record is damaged")
	checkDamage(t, strings.Replace(string(text), `,"sum":`, `,"sun":`, 1), ":4: the record is damaged")
	lines := strings.SplitAfter(string(text), "\n")
	open, _, _ := unseal([]byte(lines[5]))
	checkDamage(t, strings.Join(lines[:5], "")+string(open)+"}\n", ":6: the record is damaged: it ends without its checksum")
}

// implausible is a value that cannot have been recorded.
type implausible struct{ N int }

func (v implausible) Check() error {
	if v.N < 0 {
		return errors.New("it is below 0")
	}
	return nil
}

// Implausible values are neither written nor read.
func TestImplausibleRecords(t *testing.T) {
	t.Parallel()
	j, dir := newJournal(t, 0)
	if err := j.Append(KindTrial, implausible{-1}); err == nil || !strings.Contains(err.Error(), "below 0") {
		t.Errorf("it was written: %v", err)
	}
	if err := errors.Join(j.Append(KindTrial, map[string]int{"N": -1}), j.Append(KindTrial, implausible{1})); err != nil {
		t.Fatal(err)
	}
	_, records, err := Read(dir)
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	var v implausible
	if err := records[1].Decode(&v); err == nil || !strings.Contains(err.Error(), "record 2 (trial)") {
		t.Errorf("it was read: %v", err)
	}
	if err := records[2].Decode(&v); err != nil || v.N != 1 {
		t.Errorf("a plausible one is read as %v, %v", v, err)
	}
}

// Unknown fields are ignored in records of earlier versions, and an error in others.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for text, isKnown := range map[string]bool{`{"N":1}`: true, `{"N":1,"M":2}`: false, `{"n":1}`: false} {
		for _, isSealed := range []bool{false, true} {
			var v implausible
			err := Record{Seq: 2, Data: json.RawMessage(text), IsSealed: isSealed}.Decode(&v)
			if isError := isSealed && !isKnown; (err != nil) != isError || !isError && v.N != 1 {
				t.Errorf("%s, sealed %t: %+v, %v", text, isSealed, v, err)
			}
		}
	}
	h := Header{Format: 2, Facts: json.RawMessage(`{"M":2}`)}
	var v implausible
	if err := h.DecodeFacts(&v); err == nil {
		t.Error("facts with an unknown field are read")
	}
	h.Format = 1
	if err := errors.Join(h.DecodeFacts(&v), Header{}.DecodeFacts(&v)); err != nil {
		t.Error(err)
	}
}

// No change of a byte and no exchange of two lines stays undetected. Reading gives the written
// records or an error. If the change looks like an interrupted write, it gives all records except
// the last.
func TestEveryChangeOfAByteIsSeen(t *testing.T) {
	t.Parallel()
	text := []byte(written(t))
	want, err := decode("journal.jsonl", text)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for at := range text {
		for _, by := range []byte{text[at] ^ 1<<random.IntN(8), byte(random.IntN(256)), ' ', '\n', '"', 0} {
			changed := []byte(string(text))
			if changed[at] = by; by == text[at] {
				continue
			}
			if got, err := decode("journal.jsonl", changed); err == nil {
				t.Errorf("byte %d %q as %q is read without a word: %s", at, text[at], by, cmp.Diff(want.records, got.records))
			}
		}
	}
}

// Cutting and parsing give the same record. Only valid JSON is cut.
func TestCutRecordIsWhatParsingGives(t *testing.T) {
	t.Parallel()
	for line, isCut := range map[string]bool{
		`{"seq":2,"at":"2026-11-20T20:00:01Z","kind":"trial","data":{"a":[1,"}"]}}`:       true,
		`{"seq":2,"at":"2026-11-20T20:00:01Z","kind":"trial","data": "x" }`:               true,
		`{"seq":2,"kind":",","data":null}`:                                                true,
		`{"data":1,"seq":2,"kind":"a,\",\"data\":","data":3}`:                             false,
		`{"seq":2,"data":{},"kind":"trial"}`:                                              false,
		`{"kind":"trial","x":{"a":1,"data":2}}`:                                           false,
		`{"seq":"2","kind":"trial","data":{}}`:                                            false,
		`{"seq":2,"kind":"trial","data":5`:                                                false,
		`{"seq":2,"kind":"trial","data":}`:                                                false,
		`{"seq":2,"kind":"trial","data":{"a":1}`:                                          false,
		`{"seq":2},{"kind":"trial","data":{}}`:                                            false,
		`{"seq":2,"at":"2026-11-20T20:00:01Z","kind":"trial","data":{"a":1}} {"data":{}}`: false,
	} {
		var want Record
		err := json.Unmarshal([]byte(line), &want)
		open, isObject := unbrace([]byte(line + "\n"))
		got, ok := cutRecord(open)
		ok = ok && isObject
		if ok != isCut {
			t.Errorf("%s: cut: %t", line, ok)
		}
		if ok && (err != nil || cmp.Diff(want, got) != "") {
			t.Errorf("%s is cut as %+v, but read as %+v, %v", line, got, want, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	both, old := written(f), unsealed(f)
	line, _, _ := strings.Cut(both, "\n")
	for _, seed := range []string{"", "\n", "{}\n", line + "\n", both, both[:len(both)-3], both + "\n", both + "\x00\x00\x00", both + both, old, old[:len(old)-3], old + both} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		c, err := decode("journal.jsonl", data)
		if err != nil {
			return
		}
		if c.size() > int64(len(data)) || c.size() == 0 || data[c.size()-1] != '\n' {
			t.Fatalf("%d whole bytes of %d do not end a line", c.size(), len(data))
		}
		again, err := decode("journal.jsonl", data[:c.size()])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.records, again.records); diff != "" || again.sum() != c.sum() {
			t.Fatal("what was kept is read otherwise (-want +got):\n" + diff)
		}
		// The next record continues the checksum.
		next, _, err := encode(len(c.records)+1, KindTrial, 1, c.sum())
		if err != nil {
			t.Fatal(err)
		}
		longer, err := decode("journal.jsonl", fmt.Append(nil, string(data[:c.size()]), string(next)))
		if err != nil || len(longer.records) != len(c.records)+1 {
			t.Fatalf("with one more it has %d records of %d, %v", len(longer.records), len(c.records)+1, err)
		}
	})
}
