package modelanalyzer

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/spec/document"
)

// metricTags lists Model Analyzer's tags that tuner measures.
func metricTags() []string {
	return []string{"perf_throughput", "perf_latency_avg", "perf_latency_p90", "perf_latency_p95", "perf_latency_p99", "perf_server_queue",
		"perf_server_compute_input", "perf_server_compute_infer", "perf_server_compute_output", "cpu_used_ram", "gpu_used_memory", "gpu_utilization",
		"gpu_power_usage"}
}

// tag returns the tag for a name, or reports an unknown name.
func (r *reader) tag(key value) (string, bool) {
	name := key.node.Value
	switch {
	case slices.Contains(metricTags(), name):
		return name, true
	case name == "perf_latency": // in old versions
		return "perf_latency_p99", true
	case usedInstead(name) != "":
		r.warn(key, "tuner uses the memory in use instead: the less is used, the more is free")
		return usedInstead(name), true
	}
	e := document.Error{Problem: "is not measured", Allowed: strings.Join(metricTags(), ", ")}
	if strings.Contains(name, "token") {
		e.Problem = "is of generative models, which come in a later version"
	}
	r.fail(key, e)
	return "", false
}

// usedInstead returns the tag of the memory in use for one of free memory; "" for all others.
func usedInstead(name string) string {
	switch name {
	case "gpu_free_memory":
		return "gpu_used_memory"
	case "cpu_available_ram", "cpu_free_ram":
		return "cpu_used_ram"
	}
	return ""
}

// isLost reports whether a GPU metric cannot be measured on this machine. Model Analyzer does not
// fail because of it.
func (r *reader) isLost(tag string) bool {
	_, mode := r.text("triton_launch_mode", "")
	return strings.HasPrefix(tag, "gpu_") && r.machine.GPUs == 0 && mode != launchRemote
}

// goal writes the objective and the constraints.
func (r *reader) goal(n *native, m model) {
	if v, has := r.of(m, "objectives"); has {
		r.objectives(n, v)
	}
	r.limits(n, m)
}

// limits writes the constraints.
func (r *reader) limits(n *native, m model) {
	if v, has := r.of(m, "constraints"); has {
		r.constraints(n, v)
	}
	r.shorthand(n, "latency_budget", "perf_latency_p99", "max")
	r.shorthand(n, "min_throughput", "perf_throughput", "min")
}

// objectives reads a list of tags, each with weight 10, or a mapping from tags to weights. The weights
// of tags that mean one metric, such as free and used memory, are added.
func (r *reader) objectives(n *native, v value) {
	weights := mapping(v)
	lost := false
	names := map[string]bool{}
	add := func(key value, weight *yaml.Node) {
		tag, known := r.tag(key)
		switch {
		case !known:
		case r.isLost(tag):
			lost = true
			r.warn(key, "there is no GPU on this machine: the objective is left out")
		case !names[key.node.Value] && addWeight(weights, tag, weight): // a tag that is there twice is a mistake
		default:
			weights.Content = append(weights.Content, scalar(key, tag, true), weight)
		}
		names[key.node.Value] = true
	}
	if v.isMapping() {
		for _, e := range v.entries() {
			add(e.key, scalar(e.value, e.node.Value, false))
		}
	} else {
		for _, e := range v.words() {
			add(e, scalar(e, "10", false))
		}
	}
	switch len(weights.Content) {
	case 0:
		if lost {
			r.fail(v, document.Error{Problem: "has nothing but metrics of GPUs, and there is no GPU on this machine", Hint: "add perf_throughput"})
		}
	case 2:
		at := value{weights.Content[0], v.path}
		n.word(at, weights.Content[0].Value, "objective")
	default:
		n.set(v, weights, "weights")
	}
}

// addWeight adds to the weight of a tag. It returns false if the tag has none, or if one of the two is no number.
func addWeight(weights *yaml.Node, tag string, weight *yaml.Node) bool {
	if !hasKey(weights, tag) {
		return false
	}
	sum := child(weights, tag)
	a, errA := strconv.ParseFloat(sum.Value, 64)
	b, errB := strconv.ParseFloat(weight.Value, 64)
	if errA != nil || errB != nil {
		return false
	}
	sum.Value = strconv.FormatFloat(a+b, 'g', -1, 64)
	return true
}

// constraints reads {tag: {min | max}}.
func (r *reader) constraints(n *native, v value) {
	if !v.isMapping() {
		r.fail(v, document.Error{Problem: "must be a mapping (metric: {min or max: bound})"})
		return
	}
	for _, e := range v.entries() {
		if used := usedInstead(e.key.node.Value); used != "" && !r.isLost(used) { // a bound of it is none of the memory in use
			r.fail(e.key, document.Error{Problem: "cannot be limited: free memory is not measured", Hint: "limit the memory in use: " + used + ": {max: …}"})
			continue
		}
		tag, known := r.tag(e.key)
		switch {
		case !known:
		case r.isLost(tag):
			r.warn(e.key, "there is no GPU on this machine: the constraint is left out, as Model Analyzer does")
		case !e.isMapping():
			r.fail(e.value, document.Error{Problem: "must be a mapping", Allowed: "{min: …} or {max: …}"})
		default:
			for _, bound := range e.entries() {
				n.bound(bound.value, scalar(bound.value, withUnit(tag, bound.node.Value), false), tag, bound.name)
			}
		}
	}
}

// withUnit returns a bound with its unit, where a profile takes a bare number in another one: Model Analyzer has the use of
// GPUs in percent.
func withUnit(tag, bound string) string {
	if _, err := strconv.ParseFloat(bound, 64); err == nil && tag == "gpu_utilization" {
		return bound + "%"
	}
	return bound
}

// shorthand reads a constraint with its own field. It replaces the constraint on that metric.
func (r *reader) shorthand(n *native, field, tag, side string) {
	if v, has := r.said(field); has {
		n.bound(v, scalar(v, v.node.Value, false), tag, side)
	}
}

// bound sets a constraint and replaces an earlier one.
func (n *native) bound(from value, node *yaml.Node, tag, side string) {
	at := child(child(n.root, "constraints"), tag)
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Value == side {
			at.Content[i+1] = node
			n.recordOrigin(from, node, "constraints."+tag+"."+side, from.path)
			return
		}
	}
	n.set(from, node, "constraints", tag, side)
	n.origins["constraints."+tag] = value{&yaml.Node{Kind: yaml.ScalarNode, Line: from.node.Line}, strings.TrimSuffix(from.path, "."+side)}
}
