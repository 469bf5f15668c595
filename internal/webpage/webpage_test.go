package webpage

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	markup "golang.org/x/net/html"

	"tuner/internal/webpage/webpagetest"
)

func TestSharedAssets(t *testing.T) {
	t.Parallel()
	webpagetest.CheckAssets(t, assets, append(sharedScripts[:], sharedTemplates, sharedStyle, textTemplate, textStyle, textScript)...)
}

// page is a small page that uses every shared template.
func page() Source {
	return Source{
		Files: fstest.MapFS{
			"assets/own.html": {Data: []byte(`<!doctype html><html><head>{{template "head" .}}<title>{{.Title}}</title></head>` +
				`<body>{{template "theme"}}{{template "chart" "one"}}{{template "foot" .}}</body></html>`)},
			"assets/own.css": {Data: []byte("p { color: red; }\n")},
			"assets/a.js":    {Data: []byte("const a = 1;\n")},
			"assets/b.js":    {Data: []byte("const b = a;\n")},
		},
		Template: "own.html", Style: "own.css", Scripts: []string{"a.js", "b.js"},
	}
}

func write(t *testing.T, s Source, title string, data any) (string, error) {
	t.Helper()
	var b bytes.Buffer
	err := Write(&b, s, data, func(p Parts) any {
		return struct {
			Parts
			Title string
		}{p, title}
	})
	return b.String(), err
}

// The page's own style and scripts come after the shared ones, in their order. Nothing else may
// run.
func TestWrite(t *testing.T) {
	t.Parallel()
	text, err := write(t, page(), "a title", map[string]int{"n": 3})
	if err != nil {
		t.Fatal(err)
	}
	root, err := markup.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	webpagetest.CheckSelfContained(t, root)
	last := 0
	for _, part := range []string{"<title>", `id="theme"`, `id="one"`, `id="data">{"n":3}<`, "function linearTicks(", "const a = 1;", "const b = a;\n})();"} {
		at := strings.Index(text, part)
		if at < last {
			t.Errorf("%q stands at %d, want it behind %d", part, at, last)
		}
		last = at
	}
	if shared, own := strings.Index(text, "--page:"), strings.Index(text, "p { color: red; }"); shared < 0 || own < shared {
		t.Errorf("the page's own style stands at %d, the shared one at %d", own, shared)
	}
	again, err := write(t, page(), "a title", map[string]int{"n": 3})
	if err != nil || again != text {
		t.Errorf("the same page has other bytes the second time (%v)", err)
	}
}

// A text keeps its lines and its spaces, and is no markup.
func TestWriteText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteText(&b, "a <title>", "value  gain\n  1.5  <b>+3 %</b>\n"); err != nil {
		t.Fatal(err)
	}
	root, err := markup.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	webpagetest.CheckSelfContained(t, root)
	texts := map[string]string{}
	for n := range root.Descendants() {
		if n.Type == markup.ElementNode && n.FirstChild != nil && n.FirstChild == n.LastChild {
			texts[n.Data] = n.FirstChild.Data
		}
	}
	if texts["title"] != "a <title>" || texts["pre"] != "value  gain\n  1.5  <b>+3 %</b>\n" {
		t.Errorf("title %q, text %q", texts["title"], texts["pre"])
	}
}

// Foreign text stays text, in markup and in data.
func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	const hostile = `</script></title><script>pwned=1</script><img src=x onerror=pwned=1>'"<!--{{.}}` + "\u2028"
	text, err := write(t, page(), hostile, map[string]string{hostile: hostile})
	if err != nil {
		t.Fatal(err)
	}
	root, err := markup.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	webpagetest.CheckSelfContained(t, root)
	if strings.Contains(text, "<img") {
		t.Error("a text became an image")
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	check := func(what string, change func(*Source), data any) {
		t.Helper()
		s := page()
		change(&s)
		if _, err := write(t, s, "", data); err == nil || !strings.HasPrefix(err.Error(), "cannot write HTML: ") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	check("a script that is not there", func(s *Source) { s.Scripts = []string{"none.js"} }, nil)
	check("a template that is not there", func(s *Source) { s.Template = "none.html" }, nil)
	check("data that is no JSON", func(*Source) {}, func() {})
	s := page()
	s.Style = "none.css"
	if _, err := write(t, s, "", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a style that is not there: error %v", err)
	}
}

// Text that changes the direction of writing could make a name look like another one.
func TestDirectionStays(t *testing.T) {
	t.Parallel()
	text, err := write(t, page(), "a\u202etitle", map[string]string{"n": "x\u2066y\u200e"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text, "\u202e\u2066\u200e") || !strings.Contains(text, "a\ufffdtitle") || !strings.Contains(text, "x\ufffdy\ufffd") {
		t.Errorf("the page begins with %q", text[:300])
	}
}
