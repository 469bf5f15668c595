// Package secrets hides what may be secret in the text of a profile, before a journal has it. It stands
// below package spec, and knows a profile's fields only by their names.
package secrets

import (
	"bytes"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// hidden replaces possible secrets in a journal.
const hidden = "[hidden]"

var (
	secretName    = regexp.MustCompile(`(?i)token|secret|passw|credential|auth|restricted|(api|access|private)[-_]?key`)
	variableAlone = regexp.MustCompile(`^([A-Za-z-]+ )?\$(\w+|\{\w+\})$`)
	userOfURL     = regexp.MustCompile(`://[^/@]*@`)
	queryOfURL    = regexp.MustCompile(`\?.*`)
	optionAlone   = regexp.MustCompile(`^--?[^=]+$`)
	optionOfName  = regexp.MustCompile(`(?s)^(--?[^=]+=)(.+)$`)
)

// Without returns a profile's text for a journal. It removes the values of header fields
// except $NAME, those of variables and options with secret-sounding names, and users and queries of
// URLs. A text without any of these does not change. Others lose their layout.
func Without(text []byte) []byte {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return text // not a profile, so it is not stored
	}
	root, isHiding := doc.Content[0], false
	for _, runner := range []*yaml.Node{childOf(root, "runner"), childOf(childOf(root, "finals"), "runner")} {
		isHiding = hideIn(runner) || isHiding
	}
	if !isHiding {
		return text
	}
	var b bytes.Buffer
	if err := yaml.NewEncoder(&b).Encode(&doc); err != nil {
		return text // decoded text can always be encoded
	}
	return b.Bytes()
}

// hideIn hides possible secrets in the mapping of a runner. It reports whether there were any.
func hideIn(runner *yaml.Node) bool {
	isHiding := false
	hide := func(n *yaml.Node, by func(string) string) {
		if n = resolve(n); n == nil || n.Kind != yaml.ScalarNode || by(n.Value) == n.Value {
			return
		}
		n.Value, n.Tag, n.Style, isHiding = by(n.Value), "!!str", yaml.DoubleQuotedStyle, true
	}
	hide(childOf(runner, "url"), hideURL)
	hide(childOf(runner, "metrics_url"), hideURL)
	eachOf(childOf(runner, "headers"), func(_ string, value *yaml.Node) { hide(value, hideHeader) })
	eachOf(childOf(runner, "environment"), func(name string, value *yaml.Node) {
		hide(value, func(text string) string { return Variable(name, text) })
	})
	if args := childOf(runner, "args"); args != nil {
		list := args.Content
		if args.Kind == yaml.ScalarNode { // a single argument needs no list
			list = []*yaml.Node{args}
		}
		words := make([]string, len(list))
		for i, n := range list {
			words[i] = resolve(n).Value
		}
		for i, word := range Arguments(words) {
			if word != words[i] { // an alias elsewhere stands for the hidden text then
				hide(list[i], func(string) string { return word })
			}
		}
	}
	return isHiding
}

func hideHeader(value string) string {
	if variableAlone.MatchString(value) {
		return value
	}
	return hidden
}

// Variable hides the value of a variable whose name sounds secret.
func Variable(name, value string) string {
	if value == "" || !secretName.MatchString(name) {
		return value
	}
	return hidden
}

// Arguments hides values of --NAME=VALUE, and of --NAME with the value behind it, where the name sounds
// secret.
func Arguments(list []string) []string {
	hiding := make([]string, len(list))
	for i, text := range list {
		hiding[i] = text
		if parts := optionOfName.FindStringSubmatch(text); parts != nil {
			hiding[i] = parts[1] + Variable(parts[1], parts[2])
		} else if i > 0 && optionAlone.MatchString(list[i-1]) && !strings.HasPrefix(text, "-") {
			hiding[i] = Variable(list[i-1], text)
		}
	}
	return hiding
}

func hideURL(url string) string {
	return queryOfURL.ReplaceAllString(userOfURL.ReplaceAllString(url, "://"+hidden+"@"), "?"+hidden)
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// childOf returns a value of a mapping; nil without one.
func childOf(mapping *yaml.Node, key string) (child *yaml.Node) {
	eachOf(mapping, func(name string, value *yaml.Node) {
		if name == key {
			child = resolve(value)
		}
	})
	return child
}

// eachOf calls do for each entry of a mapping. For other nodes it does nothing.
func eachOf(mapping *yaml.Node, do func(key string, value *yaml.Node)) {
	if mapping = resolve(mapping); mapping == nil || mapping.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		do(mapping.Content[i].Value, mapping.Content[i+1])
	}
}
