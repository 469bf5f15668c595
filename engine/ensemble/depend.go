package ensemble

import (
	"fmt"
	"slices"
)

// Order arranges models so that each comes after those that it depends on: the models of a level
// depend on earlier levels alone. steps returns the models that a model depends on. Models of a
// circle are in no level, and neither are those that depend on one; circular has them, with the reason.
func Order(names []string, steps func(name string) []string) (levels [][]string, circular map[string]error) {
	o := order{steps: steps, level: map[string]int{}, circular: map[string]error{}}
	for _, name := range names {
		o.visit(name)
	}
	for name, level := range o.level {
		if o.circular[name] != nil {
			continue
		}
		for len(levels) <= level {
			levels = append(levels, nil)
		}
		levels[level] = append(levels[level], name)
	}
	for _, level := range levels {
		slices.Sort(level)
	}
	return levels, o.circular
}

type order struct {
	steps    func(string) []string
	level    map[string]int
	circular map[string]error
	path     []string // the models that are being visited
}

// visit sets the level of a model and of all that it depends on. Each is visited once.
func (o *order) visit(name string) {
	if _, done := o.level[name]; done || o.circular[name] != nil {
		return
	}
	if at := slices.Index(o.path, name); at >= 0 {
		for k, member := range o.path[at:] {
			before := o.path[len(o.path)-1]
			if k > 0 {
				before = o.path[at+k-1]
			}
			o.circular[member] = fmt.Errorf("circular dependency between ensembles: %s -> ... -> %s -> %s", member, before, member)
		}
		return
	}
	o.path = append(o.path, name)
	level := 0
	var broken error
	for _, below := range o.steps(name) {
		o.visit(below)
		if err := o.circular[below]; err != nil && o.circular[name] == nil {
			broken = err
		}
		level = max(level, o.level[below]+1)
	}
	o.path = o.path[:len(o.path)-1]
	if o.circular[name] == nil && broken != nil {
		o.circular[name] = broken
	}
	o.level[name] = level
}
