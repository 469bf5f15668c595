package modelanalyzer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/spec/document"
)

// longestSeries is the largest number of values in a range.
const longestSeries = 1000

// largestNumber is the largest number in a range, as in tuner's own files.
const largestNumber = math.MaxInt32

// numbers reads a series of whole numbers in all forms: one number, a list, "1,2,4", {start, stop,
// step} with both ends included, and perf_analyzer's start:stop:step. It keeps other values, which
// package spec reports.
func (r *reader) numbers(v value) []value {
	if v.isMapping() {
		return r.spanNumbers(v)
	}
	var list []value
	for _, e := range v.words() {
		if parts := strings.Split(e.node.Value, ":"); len(parts) > 1 {
			list = append(list, r.counted(e, parts)...)
			continue
		}
		list = append(list, e)
	}
	return list
}

// spanNumbers reads {start, stop, step}.
func (r *reader) spanNumbers(v value) []value {
	parts := []string{"", "", "1"}
	for _, e := range v.entries() {
		switch e.name {
		case "start":
			parts[0] = e.node.Value
		case "stop":
			parts[1] = e.node.Value
		case "step":
			parts[2] = e.node.Value
		default:
			r.fail(e.key, document.Error{Problem: "unknown field", Allowed: "start, stop, step"})
			return nil
		}
	}
	return r.counted(v, parts)
}

// counted counts from start to stop. Both are included. stop may be omitted.
func (r *reader) counted(v value, parts []string) []value {
	bounds := []int64{0, 0, 1}
	for i, part := range parts {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || i > 2 || n < 1 || n > largestNumber {
			r.fail(v, document.Error{Problem: fmt.Sprintf("is not a range of whole numbers from 1 to %d", largestNumber), Allowed: "{start: 1, stop: 8, step: 1}, or 1:8:1"})
			return nil
		}
		bounds[i] = n
	}
	if len(parts) == 1 {
		bounds[1] = bounds[0]
	}
	if bounds[1] < bounds[0] || (bounds[1]-bounds[0])/bounds[2] >= longestSeries {
		r.fail(v, document.Error{Problem: "is a range without numbers, or with more than 1000", Hint: "correct its ends, or use a greater step"})
		return nil
	}
	var list []value
	for n := bounds[0]; n <= bounds[1]; n += bounds[2] {
		list = append(list, value{scalar(v, strconv.FormatInt(n, 10), false), v.path})
	}
	return list
}

// numbersNode returns numbers as a list.
func (r *reader) numbersNode(v value) *yaml.Node {
	list := sequence(v)
	for _, e := range r.numbers(v) {
		text, isText := e.node.Value, true
		if _, ok := e.whole(); ok {
			isText = false
		}
		list.Content = append(list.Content, scalar(e, text, isText))
	}
	return list
}

// load writes the load of the clients.
func (r *reader) load(n *native, m model, batch value) {
	n.word(batch, batch.node.Value, "load", "client_batch_size")
	flags := r.clientFlags(m)
	field, v := r.levels(m, flags)
	switch {
	case v.node != nil:
		n.set(v, r.numbersNode(v), "load", field)
	case r.isSaid("run_config_search_disable"):
		n.set(m.at, sequence(m.at, scalar(m.at, "1", false)), "load", "concurrency")
	case r.searchesRate():
		r.span(n, m, span{"request_rate", 16, 8192, true}, "load", "request_rate")
	default:
		r.span(n, m, span{"concurrency", 1, 1024, true}, "load", "concurrency")
	}
	r.inputs(n, flags)
}

// inputs writes what the requests carry.
func (r *reader) inputs(n *native, flags map[string]value) {
	data, hasData := flags["input-data"]
	if hasData = hasData && r.data(n, data); hasData {
		return // its rows have their own shape
	}
	if v, has := flags["shape"]; has && v.isSaid() {
		r.shapes(n, v)
	}
}

// data reads the file of requests, and reports whether there is one. perf_analyzer's words random
// and zero stand for made values, which are random here.
func (r *reader) data(n *native, v value) bool {
	list := v.elements()
	if len(list) == 0 || len(list) == 1 && slices.Contains([]string{"random", ""}, list[0].node.Value) {
		return false
	}
	if len(list) == 1 && list[0].node.Value == "zero" {
		r.warn(v, "requests carry random inputs that are valid for the model, not zeros")
		return false
	}
	if len(list) > 1 {
		r.fail(v, document.Error{Problem: "names several files", Allowed: "one file or folder, random, zero", Hint: "put all steps into one file"})
		return false
	}
	n.text(list[0], r.relativePath(list[0].node.Value), "load", "inputs", "data")
	return true
}

func (r *reader) isSaid(name string) bool {
	_, has := r.said(name)
	return has
}

// searchesRate reports whether the automatic search varies the request rate.
func (r *reader) searchesRate() bool {
	return r.isSaid("request_rate_search_enable") || r.isSaid("run_config_search_min_request_rate") || r.isSaid("run_config_search_max_request_rate")
}

// levels finds the listed loads. perf_analyzer's own flags take precedence over the model's
// parameters, and these over the file's. A value without a node means none.
func (r *reader) levels(m model, flags map[string]value) (field string, v value) {
	for _, f := range [][2]string{{"concurrency-range", "concurrency"}, {"request-rate-range", "request_rate"}} {
		if v, has := flags[f[0]]; has && v.isSaid() {
			return f[1], v
		}
	}
	own := map[string]value{}
	if p, has := m.given["parameters"]; has {
		own = r.mapping(p, Parameters)
	}
	for _, given := range []map[string]value{own, r.given} {
		rate, hasRate := given["request_rate"]
		concurrency, hasConcurrency := given["concurrency"]
		hasRate, hasConcurrency = hasRate && rate.isSaid(), hasConcurrency && concurrency.isSaid()
		switch {
		case hasRate && hasConcurrency:
			r.fail(rate, document.Error{Problem: "contradicts concurrency", Hint: "keep one of the two"})
			return "request_rate", rate
		case hasRate:
			return "request_rate", rate
		case hasConcurrency:
			return "concurrency", concurrency
		}
	}
	return "", value{}
}

// shapes reads "input:1,3,224", or a list of these.
func (r *reader) shapes(n *native, v value) {
	for _, e := range v.elements() {
		at := strings.LastIndex(e.node.Value, ":")
		if at <= 0 {
			r.fail(e, document.Error{Problem: "is not an input with its shape", Allowed: "NAME:3,224,224, without the batch dimension"})
			continue
		}
		name, dims := e.node.Value[:at], value{scalar(e, e.node.Value[at+1:], true), e.path}
		n.set(e, r.numbersNode(dims), "load", "inputs", "shape", name)
	}
}
