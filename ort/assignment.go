package ort

// #include "shim.h"
import "C"

import (
	"fmt"
	"slices"
	"unsafe"
)

// recordAssignment is the session entry that makes ONNX Runtime record which provider took which
// node.
const recordAssignment = "session.record_ep_graph_assignment_info"

// Assigned is the part of a session's model that one execution provider runs.
type Assigned struct {
	Provider string // name as in Runtime.Providers
	Nodes    int    // 0: the provider runs no node
	// nodes by operator; operators outside ONNX's own domain are written domain:Operator
	Ops map[string]int
}

// Assignment returns the part of each provider of the session, in order of preference, cpu last. It
// includes providers that took no node. The nodes are those that were left when ONNX Runtime
// partitioned the graph, after its basic optimizations (C API, Session_GetEpGraphAssignmentInfo).
// The session must have been made with RecordAssignment; otherwise ONNX Runtime returns an error.
func (s *Session) Assignment() ([]Assigned, error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.session == nil {
		return nil, fmt.Errorf("cannot read which provider runs which node: %w", ErrClosed)
	}
	list := make([]Assigned, 0, len(s.providers))
	for _, name := range s.providers {
		list = append(list, Assigned{Provider: name, Ops: map[string]int{}})
	}
	var subgraphs *unsafe.Pointer
	var count C.size_t
	if err := s.runtime.check(C.api_subgraphs(s.runtime.api, s.session, &subgraphs, &count)); err != nil {
		return nil, fmt.Errorf("cannot read which provider runs which node: %w", err)
	}
	for _, subgraph := range unsafe.Slice(subgraphs, int(count)) {
		var err error
		if list, err = s.runtime.addSubgraph(list, subgraph); err != nil {
			return nil, fmt.Errorf("cannot read which provider runs which node: %w", err)
		}
	}
	return list, nil
}

// addSubgraph counts the nodes of one part of the graph.
func (r *Runtime) addSubgraph(list []Assigned, subgraph unsafe.Pointer) ([]Assigned, error) {
	var class *C.char
	var nodes *unsafe.Pointer
	var count C.size_t
	if err := r.check(C.api_subgraph(r.api, subgraph, &class, &nodes, &count)); err != nil {
		return nil, err
	}
	name := r.nameOf(C.GoString(class))
	i := slices.IndexFunc(list, func(a Assigned) bool { return a.Provider == name })
	if i < 0 {
		list, i = append(list, Assigned{Provider: name, Ops: map[string]int{}}), len(list)
	}
	for _, node := range unsafe.Slice(nodes, int(count)) {
		op, err := r.operator(node)
		if err != nil {
			return nil, err
		}
		list[i].Nodes++
		list[i].Ops[op]++
	}
	return list, nil
}

// operator returns the name of a node's operator.
func (t table) operator(node unsafe.Pointer) (string, error) {
	var domain, operator *C.char
	if err := t.check(C.api_node(t.api, node, &domain, &operator)); err != nil {
		return "", err
	}
	if d := C.GoString(domain); d != "" && d != "ai.onnx" {
		return d + ":" + C.GoString(operator), nil
	}
	return C.GoString(operator), nil
}
