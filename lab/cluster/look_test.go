//go:build cluster

package cluster

import (
	"os"
	"path/filepath"
	"slices"
)

// of returns the pods of a namespace that this node has started, as they started.
func (n *Node) of(namespace string) []*process {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*process
	for _, p := range n.pods {
		if p.namespace == namespace {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *process) int { return a.began.Compare(b.began) })
	return list
}

// journal returns what its campaign has written so far.
func (p *process) journal() string {
	text, _ := os.ReadFile(filepath.Join(p.work, "out", "journal.jsonl")) // "" before there is one
	return string(text)
}
