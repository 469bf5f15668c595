package floors

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Every relative link of a document leads to an existing file of the repository, and to an existing
// heading.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	files := listFiles(t)
	pages, links := map[string]page{}, 0
	for file := range files {
		if isDocument(file) {
			pages[file] = readPage(t, file)
		}
	}
	for file, p := range pages {
		for _, link := range p.links {
			links++
			if problem := checkLink(file, link, files, pages); problem != "" {
				t.Errorf("%s: link %q: %s", file, link, problem)
			}
		}
	}
	if links < 100 {
		t.Errorf("found %d links, expected hundreds: the test no longer sees them", links)
	}
}

// Every page of the shelves that code, scripts and examples name exists.
func TestNamedPagesExist(t *testing.T) {
	t.Parallel()
	files := listFiles(t)
	named := regexp.MustCompile(`docs/(?:tutorials|how-to|reference|explanation|design|images)/[\w./-]*\.\w+`)
	for file := range files {
		if !hasComments(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(text), -1) {
			if !files[name] {
				t.Errorf("%s names %s: there is no such page", file, name)
			}
		}
	}
}

// Anchors follow GitHub's rule for headings.
func TestAnchorOf(t *testing.T) {
	t.Parallel()
	for heading, want := range map[string]string{
		"Exit codes":                       "exit-codes",
		"The `--at` flag, explained":       "the---at-flag-explained",
		"\"63 %\": what now?":              "63--what-now",
		"[Fields](#fields) of ModelConfig": "fields-of-modelconfig",
		"report.html":                      "reporthtml",
		"config.pbtxt and instance_group":  "configpbtxt-and-instance_group",
	} {
		if got := anchorOf(heading); got != want {
			t.Errorf("anchorOf(%q) = %q, want %q", heading, got, want)
		}
	}
}

// listFiles returns the files of the repository, and its folders, to which links may lead too.
func listFiles(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("cannot list the files: %v", err)
	}
	files := map[string]bool{}
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.IsDir() {
			continue // deleted but not committed
		}
		for name := file; name != "."; name = path.Dir(name) {
			files[name] = true
		}
	}
	return files
}

// isDocument reports whether a file is a page for readers. Tests write the pages in testdata.
func isDocument(file string) bool {
	return path.Ext(file) == ".md" && !strings.Contains(file, "testdata/")
}

// hasComments reports whether a file may refer readers to a page.
func hasComments(file string) bool {
	switch path.Ext(file) {
	case ".go", ".js", ".sh", ".yaml", ".yml", ".tmpl", ".json", ".md":
		return !strings.Contains(file, "testdata/") && path.Base(file) != "links_test.go"
	}
	return path.Base(file) == "Makefile"
}

// page has the links and anchors of a document.
type page struct {
	links   []string
	anchors map[string]bool
}

var (
	linkPattern    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	sourcePattern  = regexp.MustCompile(`<(?:img|a)\s[^>]*(?:src|href)="([^"]+)"`)
	codePattern    = regexp.MustCompile("`[^`]*`")
	headingPattern = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	bracketPattern = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// readPage returns the links and the anchors of a document, outside of code.
func readPage(t *testing.T, file string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	p, fenced := page{anchors: map[string]bool{}}, false
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if m := headingPattern.FindStringSubmatch(line); m != nil {
			p.addAnchor(anchorOf(m[1]))
		}
		for _, pattern := range []*regexp.Regexp{linkPattern, sourcePattern} {
			for _, m := range pattern.FindAllStringSubmatch(codePattern.ReplaceAllString(line, "code"), -1) {
				p.links = append(p.links, m[1])
			}
		}
	}
	return p
}

// addAnchor adds the anchor of a heading. The second heading with the same text gets -1, the third
// -2.
func (p page) addAnchor(name string) {
	unique := name
	for i := 1; p.anchors[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	p.anchors[unique] = true
}

// anchorOf returns GitHub's anchor of a heading: lower case, without punctuation, with hyphens for
// spaces.
func anchorOf(heading string) string {
	heading = bracketPattern.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// checkLink describes the error of a link in a file; "" if it is valid.
func checkLink(file, link string, files map[string]bool, pages map[string]page) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	target, anchor, _ := strings.Cut(link, "#")
	target, err := url.PathUnescape(target)
	if err != nil {
		return err.Error()
	}
	to := file
	if target != "" {
		to = path.Join(path.Dir(file), target)
	}
	if to != "." && !files[to] {
		return "there is no such file in the repository"
	}
	if p, ok := pages[to]; anchor != "" && ok && !p.anchors[anchor] {
		return "the page has no such heading"
	}
	return ""
}
