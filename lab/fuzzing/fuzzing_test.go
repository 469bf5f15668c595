package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a/b/one_test.go", "func FuzzOne(f *testing.F) {}\n\nfunc FuzzTwo(f *testing.F) {}\n")
	write("a/b/two.go", "func FuzzNone(f *testing.F) {}\n")        // no test
	write("a/testdata/three_test.go", "func FuzzThree(f *F) {}\n") // Go does not build it
	write(".peers/four_test.go", "func FuzzFour(f *F) {}\n")
	write("c_test.go", "\tfunc FuzzNot()\n// func FuzzNeither()\nfunc TestNone() {}\n")
	list, err := find(root)
	if want := []target{{"a/b", "FuzzOne"}, {"a/b", "FuzzTwo"}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v; want %v", list, err, want)
	}
}

func TestParseProgress(t *testing.T) {
	t.Parallel()
	got, ran := parseProgress(`fuzz: elapsed: 0s, gathering baseline coverage: 0/27 completed
fuzz: elapsed: 0s, gathering baseline coverage: 27/27 completed, now fuzzing with 1 workers
fuzz: elapsed: 3s, execs: 4096 (1365/sec), new interesting: 2 (total: 29)
fuzz: elapsed: 5m1s, execs: 123456 (410/sec), new interesting: 5 (total: 32)
PASS
`)
	if want := (turns{Time: 301 * time.Second, Executions: 123456, Corpus: 32}); got != want || !ran {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, ran := parseProgress("no such target"); got != (turns{}) || ran {
		t.Errorf("%+v, %t of a run that did not begin", got, ran)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.csv")
	had, err := readLedger(path)
	if err != nil || len(had) > 0 {
		t.Fatalf("%v, %v of a ledger that is not there", had, err)
	}
	day := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	had["b.FuzzB"] = turns{90 * time.Second, 1000, 12, 1, day}
	had["a.FuzzA"] = turns{0, 0, 0, 0, day}
	if err := writeLedger(path, had); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "target,seconds,executions,corpus,failed,last\na.FuzzA,0,0,0,0,2026-11-27\nb.FuzzB,90,1000,12,1,2026-11-27\n"; string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	again, err := readLedger(path)
	if err != nil || !maps.Equal(again, had) {
		t.Errorf("%v, %v; want %v", again, err, had)
	}
	refuse := func(old, damage, want string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, damage, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readLedger(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q instead of %q: %v; want %q", damage, old, err, want)
		}
	}
	refuse("seconds", "minutes", "its first line")
	refuse("90", "-90", "seconds of b.FuzzB")
	refuse("1,2026-11-27", "1,2026-13-27", "last of b.FuzzB")
	refuse(",2026-11-27", "", "wrong number of fields")
}

// Of targets that neither run nor have had enough, the one that has run least is next.
func TestNext(t *testing.T) {
	t.Parallel()
	a, b, c := target{"a", "FuzzA"}, target{"b", "FuzzB"}, target{"c", "FuzzC"}
	q := &queue{targets: []target{a, b, c}, running: map[target]bool{}, enough: time.Minute, had: map[string]turns{
		a.name(): {Time: 30 * time.Second}, b.name(): {Time: time.Minute}, c.name(): {Time: 20 * time.Second}}}
	ledger := filepath.Join(t.TempDir(), "ledger.csv")
	check := func(want target, wantOK bool) {
		t.Helper()
		if got, ok := q.next(); got != want || ok != wantOK {
			t.Errorf("%v, %t; want %v, %t", got, ok, want, wantOK)
		}
	}
	check(c, true)
	check(a, true)
	check(target{}, false) // b has had enough
	if err := q.add(a, turns{Time: 20 * time.Second}, ledger); err != nil {
		t.Fatal(err)
	}
	check(a, true) // 50 s; c still runs
	if err := q.add(a, turns{Time: 10 * time.Second}, ledger); err != nil {
		t.Fatal(err)
	}
	check(target{}, false)
	if err := q.add(c, turns{Failed: 1}, ledger); err != nil {
		t.Fatal(err)
	}
	check(target{}, false) // c failed
	if want := "2 of 3 targets have had 1m0s; all together: 2m20s, 0 executions, 1 failed turns"; q.sum() != want {
		t.Errorf("%s; want %s", q.sum(), want)
	}
}
