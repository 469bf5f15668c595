package modelanalyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec/document"
	"tuner/spec/goals"
)

// concurrentField puts the models of a file under load at once.
const concurrentField = "run_config_profile_models_concurrently_enable"

// weightField is a model's weight among several. Model Analyzer's default is 1.
const weightField = "weighting"

// isTogether reports whether a file's models are under load at once. It warns about weights of models
// that are not.
func (r *reader) isTogether(models []model) bool {
	if r.isSaid(concurrentField) && len(models) > 1 {
		return true
	}
	for _, m := range models {
		if v, has := m.given[weightField]; has && v.isSaid() {
			r.warn(v, "weighs models that are under load at once; here each has a server of its own")
		}
	}
	return false
}

// nameOf joins the names of models, as a campaign of several models does.
func nameOf(models []model) string {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.name
	}
	return strings.Join(names, "+")
}

// together translates the file for all its models at once, and has the result read.
func (r *reader) together(models []model) (Campaign, bool) {
	before := len(r.errors)
	n, first := newNative(), models[0]
	n.text(first.at, r.relativePath(r.campaignFolder(nameOf(models))), "output")
	r.runner(n, first)
	for _, m := range models[1:] {
		r.runner(newNative(), m) // for its mistakes and warnings
	}
	r.checkSame(models, "triton_server_flags", "triton_server_environment")
	r.searchTogether(n, models)
	traffic := r.traffic(n, models)
	for i, m := range models {
		r.member(n, m, traffic[i])
	}
	r.objectiveTogether(n, models)
	return r.finish(n, analysis{at: first.at, folder: nameOf(models)}, before)
}

// member writes one of several models: its file, space, load and limits. Limits on figures of the
// server go to the top.
func (r *reader) member(n *native, m model, t traffic) {
	own := newNative()
	r.modelFile(own, m)
	r.space(own, m)
	batch := r.oneBatch(m)
	own.word(batch, batch.node.Value, "load", "client_batch_size")
	own.word(t.at, t.first, "load", t.field)
	r.inputs(own, r.clientFlags(m))
	r.limits(own, m)
	for _, e := range own.takeServersLimits() {
		n.tighten(e)
	}
	n.graft(own, "models", m.name)
	n.origins["models."+m.name] = m.at
}

// oneBatch returns the client batch of a model, and reports several.
func (r *reader) oneBatch(m model) value {
	_, list := r.batchValues(m)
	if len(list) > 1 {
		r.fail(list[1], document.Error{Problem: "is a second client batch, and models that are under load at once have one each", Hint: "keep one of them"})
	}
	return list[0]
}

// checkSame reports fields that differ between models of one server.
func (r *reader) checkSame(models []model, names ...string) {
	for _, name := range names {
		first, _ := r.of(models[0], name)
		for _, m := range models[1:] {
			v, has := r.of(m, name)
			at := v
			if !has {
				at = m.at
			}
			if fullText(v) != fullText(first) {
				r.fail(at, document.Error{Problem: fmt.Sprintf("%s differ from those of %s, and both models are on one server", name, models[0].name), Hint: "write them once, outside of profile_models"})
			}
		}
	}
}

// fullText prints a value; "" without one.
func fullText(v value) string {
	if v.node == nil {
		return ""
	}
	text, err := yaml.Marshal(v.node)
	if err != nil {
		return ""
	}
	return string(text)
}

// searchTogether writes how the space of several models is searched.
func (r *reader) searchTogether(n *native, models []model) {
	strategy := plan.OfSeveralFor(search.Goal{})[0] // of weights: Model Analyzer seeks no scale
	at, mode := r.mode(models[0], strategy)
	isAutomatic := func(m model) bool { return !r.isManual(m) }
	if mode == "brute" || mode == "" && !slices.ContainsFunc(models, isAutomatic) {
		strategy = plan.Grid
	}
	n.word(at, strategy, "search", "strategy")
	n.word(at, strconv.Itoa(unlimited), "search", "budget", "trials")
	var window value
	for _, m := range models {
		v, has := r.clientFlags(m)["measurement-interval"]
		switch {
		case !has || !v.isSaid():
		case window.node == nil:
			window = v
			n.text(v, v.node.Value+"ms", "search", "window")
		case v.node.Value != window.node.Value:
			r.fail(v, document.Error{Problem: "differs from that of another model, and the windows of all models have the same edges", Hint: "write it once, outside of profile_models"})
		}
	}
}

// traffic is the load of one of several models at scale 1.
type traffic struct {
	field string // of load: concurrency or request_rate
	at    value
	first string
}

// traffic returns the loads of several models at scale 1, and writes the scales. Each model has its
// lowest load at scale 1. The scales multiply the loads of all, so all must list the same multiples.
func (r *reader) traffic(n *native, models []model) []traffic {
	list := make([]traffic, len(models))
	var scales []float64
	var scalesAt value
	for i, m := range models {
		field, at, levels := r.seriesOf(m)
		list[i] = traffic{field, at, levels[0].node.Value}
		own, ok := multiples(levels)
		switch {
		case !ok: // package spec reports the value
		case scales == nil:
			scales, scalesAt = own, at
		case !slices.Equal(own, scales):
			r.fail(at, document.Error{Problem: "does not list the same multiples of its lowest load as " + models[0].name + " does, and one scale multiplies the traffic of all models",
				Hint: "list one load for each model, or the same for all"})
		}
	}
	if scales != nil {
		node := sequence(scalesAt)
		for _, s := range scales {
			node.Content = append(node.Content, scalar(scalesAt, strconv.FormatFloat(s, 'g', -1, 64), false))
		}
		n.set(scalesAt, node, "scale")
	}
	return list
}

// multiples returns ascending numbers as multiples of the lowest. It returns false if one is no
// positive number.
func multiples(levels []value) ([]float64, bool) {
	list := make([]float64, len(levels))
	for i, v := range levels {
		x, err := strconv.ParseFloat(v.node.Value, 64)
		if err != nil || !(x > 0) {
			return nil, false
		}
		list[i] = x
	}
	slices.Sort(list)
	for i, x := range slices.Backward(list) {
		list[i] = x / list[0]
	}
	return slices.Compact(list), true
}

// seriesOf returns the loads of a model, the lowest first: those that are listed, or the automatic
// ones, which double.
func (r *reader) seriesOf(m model) (field string, at value, levels []value) {
	field, v := r.levels(m, r.clientFlags(m))
	switch {
	case v.node != nil:
		levels = slices.Clone(r.numbers(v))
		slices.SortStableFunc(levels, byNumber)
		at = v
	case r.isSaid("run_config_search_disable"):
		field, at = "concurrency", m.at
	case r.searchesRate():
		field, at = "request_rate", m.at
		levels = r.doubled(m, span{"request_rate", 16, 8192, true})
	default:
		field, at = "concurrency", m.at
		levels = r.doubled(m, span{"concurrency", 1, 1024, true})
	}
	if len(levels) == 0 { // the search is disabled, or there was a mistake, which was reported
		levels = []value{{scalar(m.at, "1", false), m.at.path}}
	}
	return field, at, levels
}

// byNumber orders texts of numbers. What is no number is 0.
func byNumber(a, b value) int {
	x, _ := a.whole()
	y, _ := b.whole()
	return cmp.Compare(x, y)
}

// doubled lists the numbers of an automatic range. It reports a range without any.
func (r *reader) doubled(m model, s span) []value {
	at, ends := m.at, [2]int64{s.low, s.high}
	for i, end := range []string{"min", "max"} {
		v, has := r.said("run_config_search_" + end + "_" + s.field)
		if !has {
			continue
		}
		n, ok := v.whole()
		if !ok || n < 1 || n > largestNumber {
			r.fail(v, document.Error{Problem: "must be a whole number", Allowed: fmt.Sprintf("whole numbers from 1 to %d", largestNumber)})
			return nil
		}
		at, ends[i] = v, n
	}
	if ends[0] > ends[1] {
		r.fail(at, document.Error{Problem: "makes an empty range: min is greater than max"})
	}
	var list []value
	for n := ends[0]; n <= ends[1]; n *= 2 {
		list = append(list, value{scalar(at, strconv.FormatInt(n, 10), false), at.path})
	}
	return list
}

// objectiveTogether writes the weights of several models' metrics. Model Analyzer adds the scores of
// models by their weights, and within a model those of its metrics by theirs, both as shares of their sum.
func (r *reader) objectiveTogether(n *native, models []model) {
	at := models[0].at
	var order []string
	sums := map[string]float64{}
	for _, m := range models {
		if !search.IsModelName(m.name) { // package spec reports it once
			continue
		}
		weight := 1.0
		if v, has := m.given[weightField]; has && v.isSaid() {
			x, ok := v.whole()
			if !ok || x < 1 {
				r.fail(v, document.Error{Problem: "must be a weight", Allowed: "whole numbers from 1"})
				continue
			}
			weight = float64(x)
		}
		terms := []term{{string(measure.Throughput), 1}}
		if v, has := r.of(m, "objectives"); has {
			at, terms = v, r.terms(v)
		}
		all := 0.0
		for _, t := range terms {
			all += t.weight
		}
		for _, t := range terms {
			metric := metricOf(t.tag)
			if !goals.IsServers(metric) {
				metric = metric.Of(m.name)
			}
			if _, known := sums[string(metric)]; !known {
				order = append(order, string(metric))
			}
			sums[string(metric)] += weight * t.weight / all
		}
	}
	weights := mapping(at)
	for _, metric := range order {
		weights.Content = append(weights.Content, scalar(at, metric, true), scalar(at, strconv.FormatFloat(sums[metric], 'g', 4, 64), false))
	}
	if len(order) > 0 {
		n.set(at, weights, "weights")
	}
}

// metricOf returns the metric of a tag, or the one that has its name.
func metricOf(tag string) measure.Metric {
	return cmp.Or(goals.TagMetric(tag), measure.Metric(tag))
}

// term is a metric of an objective, by its tag, with its weight.
type term struct {
	tag    string
	weight float64
}

// terms reads the objectives of a model, like objectives.
func (r *reader) terms(v value) []term {
	read := newNative()
	r.objectives(read, v)
	var list []term
	if tag := child(read.root, "objective"); tag.Kind == yaml.ScalarNode {
		return []term{{tag.Value, 1}}
	}
	weights := child(read.root, "weights")
	for i := 0; i+1 < len(weights.Content); i += 2 {
		x, err := strconv.ParseFloat(weights.Content[i+1].Value, 64)
		if err != nil || !(x > 0) {
			r.fail(v, document.Error{Problem: "must have a weight above 0 for each metric"})
			return nil
		}
		list = append(list, term{weights.Content[i].Value, x})
	}
	return list
}

// serversLimit is a limit on a figure of the server.
type serversLimit struct {
	tag, side string
	node      *yaml.Node
	from      value
}

// takeServersLimits removes limits on figures of the server from those of a model, and returns them.
func (n *native) takeServersLimits() []serversLimit {
	if !hasKey(n.root, "constraints") {
		return nil
	}
	var taken []serversLimit
	limits := child(n.root, "constraints")
	var kept []*yaml.Node
	for i := 0; i+1 < len(limits.Content); i += 2 {
		key, sides := limits.Content[i], limits.Content[i+1]
		if !goals.IsServers(metricOf(key.Value)) {
			kept = append(kept, key, sides)
			continue
		}
		for k := 0; k+1 < len(sides.Content); k += 2 {
			side := sides.Content[k].Value
			taken = append(taken, serversLimit{key.Value, side, sides.Content[k+1], n.origins["constraints."+key.Value+"."+side]})
		}
	}
	if limits.Content = kept; len(kept) == 0 {
		n.root.Content = slices.DeleteFunc(n.root.Content, func(c *yaml.Node) bool { return c == limits || c.Kind == yaml.ScalarNode && c.Value == "constraints" })
	}
	return taken
}

// tighten sets a limit of the server. Of two models' limits on one figure the tighter counts.
func (n *native) tighten(l serversLimit) {
	if hasKey(n.root, "constraints") && hasKey(child(n.root, "constraints"), l.tag) && hasKey(child(child(n.root, "constraints"), l.tag), l.side) {
		earlier, errEarlier := strconv.ParseFloat(child(child(child(n.root, "constraints"), l.tag), l.side).Value, 64)
		x, err := strconv.ParseFloat(l.node.Value, 64)
		if errEarlier == nil && err == nil && (l.side == "max") == (x >= earlier) {
			return
		}
	}
	n.bound(l.from, l.node, l.tag, l.side)
}

// graft puts the content of another native file below keys.
func (n *native) graft(own *native, keys ...string) {
	at := n.root
	for _, key := range keys {
		at = child(at, key)
	}
	at.Content = append(at.Content, own.root.Content...)
	for path, from := range own.origins {
		n.origins[strings.Join(keys, ".")+"."+path] = from
	}
}

// goalTogether writes the goal of several models for the analysis of their campaign.
func (r *reader) goalTogether(n *native, models []model) {
	r.objectiveTogether(n, models)
	for _, m := range models {
		own := newNative()
		r.limits(own, m)
		for _, l := range own.takeServersLimits() {
			n.tighten(l)
		}
		if !hasKey(own.root, "constraints") {
			continue
		}
		limits := child(own.root, "constraints")
		for i := 0; i+1 < len(limits.Content); i += 2 {
			tag := limits.Content[i].Value
			n.set(own.origins["constraints."+tag], limits.Content[i+1], "constraints", m.name+"."+tag)
		}
	}
}
