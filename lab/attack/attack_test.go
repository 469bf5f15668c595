package main

import (
	"strings"
	"testing"
	"time"
)

// The verdict is an error if an attack succeeded, and if none was made.
func TestTable(t *testing.T) {
	t.Parallel()
	one := func(s state) result {
		return result{attack{row: "A1", name: "a", want: "w"}, s, "x | y\nz", time.Second}
	}
	for name, tc := range map[string]struct {
		results []result
		want    string // in the error; empty: no error
	}{
		"held":              {[]result{one(passed)}, ""},
		"held and not run":  {[]result{one(passed), one(skipped)}, ""},
		"one failed":        {[]result{one(passed), one(failed)}, "1 attacks were not withstood"},
		"nothing was run":   {[]result{one(skipped)}, "no attack was made"},
		"nothing was there": {nil, "no attack was made"},
	} {
		var out strings.Builder
		err := table(&out, tc.results)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if len(tc.results) > 0 && !strings.Contains(out.String(), "| A1 | a | w | "+string(tc.results[0].state)+" | x / y z |\n") {
			t.Errorf("%s: the table is\n%s", name, out.String())
		}
	}
}

// Every attack names its finding, and all names are distinct.
func TestCorpus(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, a := range attacks() {
		if a.row == "" || a.want == "" || a.run == nil || seen[a.name] {
			t.Errorf("attack %q of row %q: a field is missing, or the name is there twice", a.name, a.row)
		}
		seen[a.name] = true
	}
}

// A refusal needs the exit code and the words, for any line breaks in the message.
func TestRefused(t *testing.T) {
	t.Parallel()
	o := outcome{code: 2, out: "tuner: cannot\n  read"}
	if _, err := o.refused(2, "cannot read"); err != nil {
		t.Error(err)
	}
	if _, err := o.refused(1, "cannot read"); err == nil {
		t.Error("another exit code is no error")
	}
	if _, err := o.refused(2, "cannot write"); err == nil {
		t.Error("missing words are no error")
	}
}
