// Package webpage makes pages for browsers. Each page is one file with its style, script and data.
// It runs only its own script, and requests nothing over a network. A page that a server of tuner's
// sends may ask that server alone.
//
// The package has the common parts of the pages: style, figures as text, and interactive charts. It
// does not know any page's content. Foreign text enters a page as text, through html/template, or
// as JSON.
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

// The files that all pages share; a page's own files follow them. parts.html has the templates
// head, theme, chart, foot, and table: it takes a Title, Columns with a Title and whether their text is
// on the right, and Rows of texts.
const (
	sharedTemplates = "parts.html"
	sharedStyle     = "base.css"
)

// The files of the page of a text.
const (
	textTemplate = "text.html"
	textStyle    = "text.css"
	textScript   = "text.js"
)

// sharedScripts are in the order in which they run.
var sharedScripts = [...]string{"format.js", "plot.js", "chart.js", "theme.js"}

// Source is a page's own part.
type Source struct {
	Files    fs.FS    // with a folder assets, which has all of the following
	Template string   // html/template; it may use the shared ones
	Style    string   // CSS, after the shared style
	Scripts  []string // JavaScript, after the shared scripts and in this order
	IsServed bool     // the script may ask the server that sent the page
}

// Parts has the values for the shared templates. A page's own view embeds it.
type Parts struct {
	Policy string // content security policy, see policy
	Style  template.CSS
	Script template.JS
	Data   template.JS
}

// Write writes a page. data is the data of its script. view makes the template's value from the
// parts. The same files, data and view give the same bytes.
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

// textPage is the page of a text.
type textPage struct {
	Parts
	Title, Text string
}

// WriteText writes a page that has a text as it is, in letters of one width.
func WriteText(w io.Writer, title, text string) error {
	source := Source{Files: assets, Template: textTemplate, Style: textStyle, Scripts: []string{textScript}}
	return Write(w, source, struct{}{}, func(parts Parts) any { return textPage{parts, title, text} })
}

// withoutTurns replaces the characters that change the direction of writing. With them, a name
// could look like another one.
func withoutTurns(c rune) rune {
	if unicode.Is(unicode.Bidi_Control, c) {
		return unicode.ReplacementChar
	}
	return c
}

// path returns a file's path in a file system of assets.
func path(name string) string { return "assets/" + name }

// parts reads style and scripts, and encodes the data. It escapes every <, > and & in the data like
// package json, so that no text in it can end its element.
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
		Policy: policy(style.String(), script.String(), s.IsServed), Style: template.CSS(style.String()), Script: template.JS(script.String()), Data: template.JS(encoded),
	}, nil
}

// join appends the text of files.
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

// policy returns a Content Security Policy. It allows the page's own style and script, by their
// digests, and forbids all other scripts and every request over a network. A served page may ask
// its own server.
func policy(style, script string, isServed bool) string {
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	asks := ""
	if isServed {
		asks = "; connect-src 'self'"
	}
	return fmt.Sprintf("default-src 'none'; img-src data:; style-src %s; script-src %s; base-uri 'none'; form-action 'none'%s",
		digest(style), digest(script), asks)
}
