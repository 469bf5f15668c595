package reporttest

import (
	"encoding/json"
	"strings"
	"testing"

	markup "golang.org/x/net/html"
)

// Elements returns the elements with a name, anywhere in a page.
func Elements(root *markup.Node, name string) []*markup.Node {
	var list []*markup.Node
	for n := range root.Descendants() {
		if n.Type == markup.ElementNode && n.Data == name {
			list = append(list, n)
		}
	}
	return list
}

// Attribute returns the value of an attribute; "" without it.
func Attribute(n *markup.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// TextOf returns the text in an element.
func TextOf(n *markup.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == markup.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// DataOfPage returns the data object of the page.
func DataOfPage(t *testing.T, root *markup.Node) map[string]any {
	t.Helper()
	for _, s := range Elements(root, "script") {
		if Attribute(s, "id") == "data" {
			var data map[string]any
			if err := json.Unmarshal([]byte(TextOf(s)), &data); err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatal("the page carries no data")
	return nil
}
