// Package webpage makes the pages that are written for browsers: each is one file with its style, script and data inside, which asks for nothing
// over a network and runs nothing but its own script. It holds what the pages have in common: style, figures as text, and charts that a reader
// points at. It knows no page's content. What comes from outside enters a page as text, through html/template, or as JSON.
package webpage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
	"unicode"

	json "github.com/go-json-experiment/json/v1"
)

//go:embed assets
var assets embed.FS

// The files that all pages have, before their own. parts.html has the templates head, theme, chart and foot.
const (
	sharedTemplates = "parts.html"
	sharedStyle     = "base.css"
)

// sharedScripts are in the order in which they run.
var sharedScripts = [...]string{"format.js", "plot.js", "chart.js", "theme.js"}

// Source is a page's own part.
type Source struct {
	Files    fs.FS    // with a folder assets, which has all of the following
	Template string   // html/template; it may use the shared ones
	Style    string   // CSS, behind the shared style
	Scripts  []string // JavaScript, behind the shared scripts and in this order
}

// Parts is what the shared templates are filled with: a page's own view embeds it.
type Parts struct {
	Policy string // of the content, see policy
	Style  template.CSS
	Script template.JS
	Data   template.JS
}

// Write writes a page. data is what its script works on; view makes what its template is filled with of the parts. The same files, data and view
// give the same bytes.
func Write(w io.Writer, s Source, data any, view func(Parts) any) error {
	parts, err := s.parts(data)
	if err != nil {
		return fmt.Errorf("cannot write HTML: %w", err)
	}
	t, err := template.ParseFS(assets, path(sharedTemplates))
	if err == nil {
		t, err = t.ParseFS(s.Files, path(s.Template))
	}
	var page bytes.Buffer
	if err == nil {
		err = t.ExecuteTemplate(&page, s.Template, view(parts))
	}
	if err == nil {
		_, err = w.Write(bytes.Map(withoutTurns, page.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("cannot write HTML: %w", err)
	}
	return nil
}

// withoutTurns replaces the characters that turn the direction of writing: with them a name could look like another one.
func withoutTurns(c rune) rune {
	if unicode.Is(unicode.Bidi_Control, c) {
		return unicode.ReplacementChar
	}
	return c
}

// path is a file's name in a file system of assets.
func path(name string) string { return "assets/" + name }

// parts reads style and scripts, and encodes the data. In it every <, > and & is escaped, as package json does, so that no text in it can end the
// element that it stands in.
func (s Source) parts(data any) (Parts, error) {
	var style, script strings.Builder
	script.WriteString("\"use strict\";\n(() => {\n")
	err := errors.Join(
		join(&style, assets, sharedStyle), join(&style, s.Files, s.Style),
		join(&script, assets, sharedScripts[:]...), join(&script, s.Files, s.Scripts...))
	script.WriteString("})();\n")
	if err != nil {
		return Parts{}, err
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return Parts{}, err
	}
	return Parts{
		Policy: policy(style.String(), script.String()), Style: template.CSS(style.String()), Script: template.JS(script.String()), Data: template.JS(encoded),
	}, nil
}

// join adds the text of files.
func join(b *strings.Builder, files fs.FS, names ...string) error {
	for _, name := range names {
		text, err := fs.ReadFile(files, path(name))
		if err != nil {
			return err
		}
		b.Write(text)
	}
	return nil
}

// policy is a Content Security Policy that lets the page's own style and script run, by their digests, and forbids all else:
// other scripts, and every request over a network.
func policy(style, script string) string {
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return fmt.Sprintf("default-src 'none'; img-src data:; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", digest(style), digest(script))
}
