package paflags

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/perf"
	"tuner/runner/wire"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		address string
		secure  bool
	}{
		"":                     {"localhost:8000", false},
		"host":                 {"host:8000", false},
		"host:9":               {"host:9", false},
		"http://host:9/":       {"host:9", false},
		"HTTPS://host":         {"host:8000", true},
		"10.0.0.1":             {"10.0.0.1:8000", false},
		"[::1]:9":              {"[::1]:9", false},
		"::1":                  {"[::1]:8000", false},
		"https://[fe80::1]:99": {"[fe80::1]:99", true},
	} {
		address, secure, err := parseURL(text, "8000")
		if err != nil || address != want.address || secure != want.secure {
			t.Errorf("%q: %q, %v, %v", text, address, secure, err)
		}
	}
	for _, text := range []string{"host:", "host:x", "host:99999", ":80", "ftp://host", "host/path", "host:80/v2"} {
		if address, _, err := parseURL(text, "8000"); err == nil {
			t.Errorf("%q: %q", text, address)
		}
	}
}

func TestParseLevels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]perf.Levels{
		"":        {Start: 1, End: 1, Step: 1},
		"4":       {Start: 4, End: 4, Step: 1},
		"1:8":     {Start: 1, End: 8, Step: 1},
		"1:8:2":   {Start: 1, End: 8, Step: 2},
		"2:0":     {Start: 2, Step: 1, Open: true},
		"10.5:11": {Start: 10.5, End: 11, Step: 1},
	} {
		if got, err := parseLevels("x", text, false); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "-1", "a", "1:", ":8", "8:1", "1:8:0", "1:2:3:4", "nan", "inf", "1:inf"} {
		if got, err := parseLevels("x", text, false); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseWith(t *testing.T) {
	t.Parallel()
	got, err := parseWith("bert:2,concurrency=3,batch=4,shape=ids:1,32,input-data=a.json,input-data=b.json,shape=mask:32")
	if err != nil || got.Model != "bert" || got.Version != "2" || got.Load != (measure.Load{Concurrency: 3, BatchSize: 4}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := cmp.Diff(map[string][]int64{"ids": {1, 32}, "mask": {32}}, got.Source.Shapes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a.json", "b.json"}, got.Source.Data); d != "" || got.Source.Batch != 4 {
		t.Error(d, got.Source.Batch)
	}
	for _, text := range []string{"", "concurrency=1", "m", "m,rate=0", "m,rate=x", "m,concurrency=1,rate=1", "m,concurrency=1,batch=0", "m,rate=1,shape=x"} {
		if got, err := parseWith(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseParameters(t *testing.T) {
	t.Parallel()
	got, err := parseParameters([]string{"a:1:int", "b:x:y:string", "c:true:bool"})
	want := []wire.Parameter{{Name: "a", Value: int64(1)}, {Name: "b", Value: "x:y"}, {Name: "c", Value: true}}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseCPUs(t *testing.T) {
	t.Parallel()
	if got, err := parseCPUs("0-2,4"); err != nil || cmp.Diff([]int{0, 1, 2, 4}, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "a", "2-1", "1-", "-1", "0,,1"} {
		if got, err := parseCPUs(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
