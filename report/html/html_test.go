package html

import (
	"encoding/json"
	"math"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/webpage/webpagetest"
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
	for want, list := range map[string]numerals{"null": nil, "[]": {}, "[614.75]": {figure(614.7512)}, "[1,null,614.7512]": {figure(1), figure(math.NaN()), exact(614.7512)}} {
		if got, err := json.Marshal(list); err != nil || string(got) != want {
			t.Errorf("%v are %s, %v; want %s", list, got, err, want)
		}
	}
}

// Counts survive encoding and decoding.
func TestExact(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]float64{"614.7512345678902": 614.7512345678902, "2.90000123e+08": 290000123, "0.1": 0.1, "null": math.NaN()} {
		if got, err := json.Marshal(exact(v)); err != nil || string(got) != want {
			t.Errorf("%v is %s, %v; want %s", v, got, err, want)
		}
	}
}

// Each member of a large group names only the first hundred others. The page still shows one group.
func TestLargeGroupIsOneTie(t *testing.T) {
	t.Parallel()
	const size, known = 150, 100
	p := many(t, size)
	for i := range size {
		c := &p.Result.Configs[i]
		for j := range size {
			if j != i && len(c.TiedWith) < known {
				c.TiedWith = append(c.TiedWith, p.Result.Configs[j].Name)
			}
		}
	}
	d := newDocument(p)
	for i, c := range d.Configurations {
		want := 1
		if i >= size {
			want = 0
		}
		if c.Tie != want {
			t.Fatalf("configuration %d is tied with rank %d, want %d", i, c.Tie, want)
		}
	}
}

// Style and script must not contain the end tag of their element.
func TestAssetsStayInTheirElements(t *testing.T) {
	t.Parallel()
	webpagetest.CheckAssets(t, assets, append(scripts[:], "page.html", "page.css")...)
}

// The parts of the script share one scope, also with the parts that all pages have. A name may be
// declared once in it. Otherwise the browser runs none of the script.
func TestScriptsDeclareNamesOnce(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	if err := writePage(&page, many(t, 2)); err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^(?:async )?(?:function|class|const|let) (\w+)`).FindAllStringSubmatch(page.String(), -1) {
		if declared[found[1]] {
			t.Errorf("%s is declared twice", found[1])
		}
		declared[found[1]] = true
	}
	if len(declared) < 100 {
		t.Errorf("%d declarations were found", len(declared))
	}
}

// Knobs of one of several models are printed as those of a single model.
func TestScriptPrintsKnobs(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node.js")
	}
	script, err := assets.ReadFile("assets/words.js")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), node, "-")
	command.Stdin = strings.NewReader(string(script) + `
for (const [knob, value] of [["intra_op_threads", "0"], ["encoder.intra_op_threads", "0"], ["encoder.max_queue_delay", "100us"], ["encoder.instance_count", "0"],
  ["encoder.preferred_batch_size", "[]"]]) console.log(valueText(knob, value));`)
	got, err := command.CombinedOutput()
	if want := "all cores\nall cores\n100 µs\n0\nnone\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// All members of a group have its first rank. This also holds for a large group, whose members name
// only the first of the others.
func TestTies(t *testing.T) {
	t.Parallel()
	r := analyze.Result{Configs: []analyze.Config{
		{Name: "best", Rank: 1}, {Name: "a", Rank: 2, TiedWith: []string{"b"}}, {Name: "b", Rank: 3, TiedWith: []string{"a"}},
		{Name: "c", Rank: 4, TiedWith: []string{"a"}}, {Name: "d", Rank: 5, TiedWith: []string{"e"}}, {Name: "e", Rank: 6, TiedWith: []string{"d"}},
	}}
	b := builder{page: Page{Result: r}, configurations: map[string]int{}}
	for i, c := range r.Configs {
		b.configurations[c.Name] = i
	}
	for i, want := range []int{0, 2, 2, 2, 5, 5} {
		if got := b.tie(r.Configs[i]); got != want {
			t.Errorf("%s is tied at rank %d, want %d", r.Configs[i].Name, got, want)
		}
	}
}

// many makes a page of n configurations.
func many(t testing.TB, n int) Page {
	p := Page{Result: analyzetest.Large(t, n)}
	p.Titles = make([]string, len(p.Result.Configs))
	return p
}

// Ten thousand configurations at four loads each take some megabytes: 200 bytes per point, and 300
// per configuration.
func TestManyConfigurationsAreCompact(t *testing.T) {
	t.Parallel()
	const n, most = 1000, 1_250_000
	var size counter
	if err := writePage(&size, many(t, n)); err != nil {
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
		if err := writePage(&size, p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "bytes")
}
