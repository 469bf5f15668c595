// Package webpagetest checks the rules that every page must follow. Only tests use it.
package webpagetest

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	markup "golang.org/x/net/html"
)

// CheckSelfContained finds everything that a page, as a browser reads it, would request over a
// network or run besides its own script.
func CheckSelfContained(t testing.TB, root *markup.Node) {
	t.Helper()
	scripts, policy := 0, ""
	for n := range root.Descendants() {
		if n.Type != markup.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "src", a.Key == "style":
				t.Errorf("<%s> has an attribute %s=%q", n.Data, a.Key, a.Val)
			case a.Key == "href" && !strings.HasPrefix(a.Val, "#") && a.Val != "data:,":
				t.Errorf("<%s> leads to %q", n.Data, a.Val)
			}
		}
		switch {
		case n.Data == "script":
			if scripts++; scripts == 1 && attribute(n, "type") != "application/json" {
				t.Error("the first script is not the data")
			}
		case n.Data == "meta" && attribute(n, "http-equiv") == "Content-Security-Policy":
			policy = attribute(n, "content")
		}
	}
	if scripts != 2 {
		t.Errorf("there are %d scripts, want the data and one script", scripts)
	}
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Count(policy, "'sha256-") != 2 {
		t.Errorf("the Content Security Policy is %q", policy)
	}
}

func attribute(n *markup.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// CheckAssets finds unnamed files in a page's folder assets. It also finds styles and scripts that
// could end their element, or turn text into markup or code.
func CheckAssets(t testing.TB, files fs.FS, names ...string) {
	t.Helper()
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			t.Errorf("%s is in no list: it would never run", e.Name())
		}
		text, err := fs.ReadFile(files, "assets/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), ".html") {
			continue
		}
		for _, forbidden := range []string{"</", "<!--", "innerHTML", "eval("} {
			if strings.Contains(strings.ToLower(string(text)), strings.ToLower(forbidden)) {
				t.Errorf("%s has %q", e.Name(), forbidden)
			}
		}
	}
}
