package spec

import (
	"bytes"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// hidden stands in a journal for what may be a secret.
const hidden = "[hidden]"

var (
	secretName    = regexp.MustCompile(`(?i)token|secret|passw|credential|auth|restricted|(api|access|private)[-_]?key`)
	variableAlone = regexp.MustCompile(`^([A-Za-z-]+ )?\$(\w+|\{\w+\})$`)
	userOfURL     = regexp.MustCompile(`://[^/@]*@`)
	queryOfURL    = regexp.MustCompile(`\?.*`)
	optionOfName  = regexp.MustCompile(`(?s)^(--?[^=]+=)(.+)$`)
)

// WithoutSecrets is a profile's text as a journal keeps it: without the values of header fields but $NAME, of variables and options whose names say
// that they are secret, and without users and queries of URLs. A text that has none of these stays as it is; another one loses its layout.
func WithoutSecrets(text []byte) []byte {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return text // it is no profile, and is not kept
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
		return text // what was decoded is encoded
	}
	return b.Bytes()
}

// WithoutSecrets hides the same in what is compared of two runners.
func (r Runner) WithoutSecrets() Runner {
	var options []string
	for _, o := range r.Args {
		options = append(options, hideOption(o))
	}
	r.Args = options
	if r.Environment != nil {
		variables := make(map[string]string, len(r.Environment))
		for name, value := range r.Environment {
			variables[name] = hideVariable(name, value)
		}
		r.Environment = variables
	}
	return r
}

// hideIn hides what may be secret in the mapping of a runner, and reports whether there was anything.
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
		hide(value, func(text string) string { return hideVariable(name, text) })
	})
	if args := childOf(runner, "args"); args != nil && args.Kind == yaml.SequenceNode {
		for _, n := range args.Content {
			hide(n, hideOption)
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

func hideVariable(name, value string) string {
	if value == "" || !secretName.MatchString(name) {
		return value
	}
	return hidden
}

// hideOption hides the value of --NAME=VALUE.
func hideOption(option string) string {
	parts := optionOfName.FindStringSubmatch(option)
	if parts == nil {
		return option
	}
	return parts[1] + hideVariable(parts[1], parts[2])
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

// childOf is a value of a mapping; nil for none.
func childOf(mapping *yaml.Node, key string) (child *yaml.Node) {
	eachOf(mapping, func(name string, value *yaml.Node) {
		if name == key {
			child = resolve(value)
		}
	})
	return child
}

// eachOf goes through a mapping, as far as it is one.
func eachOf(mapping *yaml.Node, do func(key string, value *yaml.Node)) {
	if mapping = resolve(mapping); mapping == nil || mapping.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		do(mapping.Content[i].Value, mapping.Content[i+1])
	}
}
