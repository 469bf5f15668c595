package html

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"tuner/analyze/analyzetest"
)

func TestFigure(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]float64{
		"614.75": 614.75, "12346": 12345.6, "2.9e+08": 290e6, "0.031187": 0.0311869, "0": 0, "null": math.NaN(), "-0.37": -0.37, "0.99999": 0.99999,
	} {
		if got, err := json.Marshal(figure(v)); err != nil || string(got) != want {
			t.Errorf("%v is %s, %v; want %s", v, got, err, want)
		}
	}
	if got, err := json.Marshal(figure(math.Inf(-1))); err != nil || string(got) != "null" {
		t.Errorf("−∞ is %s, %v; want null", got, err)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for want, list := range map[string]figures{"null": nil, "[]": {}, "[614.75]": {614.75}, "[1,null,2.9e+08]": {1, figure(math.NaN()), 290e6}} {
		if got, err := json.Marshal(list); err != nil || string(got) != want {
			t.Errorf("%v are %s, %v; want %s", list, got, err, want)
		}
	}
}

// The style and the script stand in elements that only their own end may close.
func TestAssetsStayInTheirElements(t *testing.T) {
	t.Parallel()
	entries, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"page.html": true, "page.css": true}
	for _, name := range scripts {
		known[name] = true
	}
	for _, e := range entries {
		if !known[e.Name()] {
			t.Errorf("%s is in no list: it would never run", e.Name())
		}
		text, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == "page.html" {
			continue
		}
		for _, forbidden := range []string{"</", "<!--", "innerHTML", "eval("} {
			if strings.Contains(strings.ToLower(string(text)), strings.ToLower(forbidden)) {
				t.Errorf("%s has %q", e.Name(), forbidden)
			}
		}
	}
}

// many is a page of n configurations.
func many(t testing.TB, n int) Page {
	p := Page{Result: analyzetest.Large(t, n)}
	p.Titles = make([]string, len(p.Result.Configs))
	return p
}

// Ten thousand configurations at four loads each are some megabytes: 170 bytes for a point, and 300 for what a configuration is.
func TestManyConfigurationsAreCompact(t *testing.T) {
	t.Parallel()
	const n, most = 1000, 1_000_000
	var size counter
	if err := Write(&size, many(t, n)); err != nil {
		t.Fatal(err)
	}
	if size > most {
		t.Errorf("%d configurations take %d bytes, more than %d", n, size, most)
	}
}

type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func BenchmarkWrite10000(b *testing.B) {
	p := many(b, 10_000)
	var size counter
	for b.Loop() {
		size = 0
		if err := Write(&size, p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "bytes")
}
