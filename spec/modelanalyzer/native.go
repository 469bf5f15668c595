package modelanalyzer

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/spec/document"
)

// native is a file of tuner's own under construction, with the origin of each of its places. Only
// its text is passed on, so all other code is independent of the foreign format. A campaign's
// journal has this text, and can be read without Model Analyzer's file.
type native struct {
	root    *yaml.Node
	origins map[string]value // by path in the native file
}

func newNative() *native {
	return &native{root: &yaml.Node{Kind: yaml.MappingNode}, origins: map[string]value{}}
}

// set stores a node at a path of keys. from is its origin.
func (n *native) set(from value, node *yaml.Node, keys ...string) {
	at := n.root
	for _, key := range keys[:len(keys)-1] {
		at = child(at, key)
	}
	last := keys[len(keys)-1]
	at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: last}, node)
	n.recordOrigin(from, node, strings.Join(keys, "."), from.path)
}

// text is set for a text.
func (n *native) text(from value, text string, keys ...string) {
	n.set(from, scalar(from, text, true), keys...)
}

// word is set for a number, a boolean or a word.
func (n *native) word(from value, word string, keys ...string) {
	n.set(from, scalar(from, word, false), keys...)
}

// child returns the mapping under a key, and makes it if it is missing.
func child(at *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Value == key {
			return at.Content[i+1]
		}
	}
	made := &yaml.Node{Kind: yaml.MappingNode}
	at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, made)
	return made
}

// hasKey reports whether a mapping has a key.
func hasKey(at *yaml.Node, key string) bool {
	for i := 0; i < len(at.Content); i += 2 {
		if at.Content[i].Value == key {
			return true
		}
	}
	return false
}

// recordOrigin records the origin of a node and all nodes below it. Those below have the same names
// in both files.
func (n *native) recordOrigin(from value, node *yaml.Node, path, foreign string) {
	line := from.node.Line
	if node.Line > 0 {
		line = node.Line
	}
	n.origins[path] = value{&yaml.Node{Kind: yaml.ScalarNode, Line: line}, foreign}
	for i, c := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			index := fmt.Sprintf("[%d]", i)
			n.recordOrigin(from, c, path+index, foreign+index)
		case node.Kind == yaml.MappingNode && i%2 == 1:
			name := "." + node.Content[i-1].Value
			n.recordOrigin(from, c, path+name, foreign+name)
		}
	}
}

// print returns the file's text, after a line that names its origin.
func (n *native) print() ([]byte, error) {
	text, err := yaml.Marshal(n.root)
	if err != nil {
		return nil, fmt.Errorf("cannot print what the file means: %w", err)
	}
	return append([]byte("# What Model Analyzer's file means to tuner.\n"), text...), nil
}

// translate converts the mistakes that package spec finds in the native text into mistakes of the
// foreign file.
func (r *reader) translate(n *native, err error) {
	var mistakes document.Errors
	if !errors.As(err, &mistakes) {
		if err != nil {
			r.addError(document.Error{File: r.path, Line: 1, Problem: err.Error()})
		}
		return
	}
	for _, e := range mistakes {
		e.File, e.Line = r.path, 1
		for at := e.Path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
			if from, known := n.origins[at]; known {
				e.Line, e.Path = max(from.node.Line, 1), from.path+e.Path[len(at):]
				break
			}
		}
		r.addError(e)
	}
}
