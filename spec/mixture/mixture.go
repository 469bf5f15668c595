// Package mixture reads the mix of shapes that a file or a flag asks for: weighted shapes, or a
// distribution of one dimension. Package model/mix has the kinds that become of it, and package
// profile checks them against the model.
package mixture

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/measure/arrivals"
	"tuner/model/mix"
	"tuner/spec/document"
)

// Mix describes requests of several shapes: weighted shapes, or a distribution of one dimension.
// The zero value is requests of one shape.
type Mix struct {
	// Shapes have weights as their shares. Inputs that they do not name have the shape in
	// Inputs.Shape.
	Shapes []mix.Kind
	// Dimension is a symbol of the model, whose sizes are one of those below; "" with Shapes.
	Dimension string
	Values    []mix.Size
	Histogram string // path of a CSV file with size,weight
	Lognormal mix.Lognormal
	// OfTrace means that each request has the size that the trace of the arrivals has for it
	OfTrace bool
}

// IsZero reports whether all requests have one shape.
func (m Mix) IsZero() bool { return len(m.Shapes) == 0 && m.Dimension == "" }

// Read reads a list of weighted shapes, or a distribution of a dimension. file reads the name of a
// file.
func Read(v document.Value, file func(document.Value, *string)) (m Mix) {
	if v.Node.Kind == yaml.MappingNode {
		return distribution(v, file)
	}
	if v.Node.Kind != yaml.SequenceNode {
		v.Fail(document.Error{Problem: "must be a list of shapes, or a distribution of a dimension",
			Allowed: "[{weight: 3, shape: {NAME: [16]}}, …], {dimension: NAME, values: {16: 3, 64: 1}}"})
		return m
	}
	total := 0.0
	for _, e := range v.List() {
		k := mix.Kind{}
		given := e.Mapping([]document.Field{
			{Name: "weight", Read: func(v document.Value) { k.Share, _ = weight(v) }},
			{Name: "shape", Read: func(v document.Value) { k.Shapes = Shapes(v) }},
		}, nil)
		for _, name := range []string{"weight", "shape"} {
			if _, has := given[name]; !has && e.Node.Kind == yaml.MappingNode {
				e.Require(name, "{weight: 3, shape: {NAME: [16]}}", "")
			}
		}
		total += k.Share
		m.Shapes = append(m.Shapes, k)
	}
	checkTotal(v, total)
	return m
}

// checkTotal reports weights that sum to zero.
func checkTotal(v document.Value, total float64) {
	if total == 0 && v.Mistakes() == 0 {
		v.Fail(document.Error{Problem: "has weights that sum to zero", Hint: "give at least one a weight above 0"})
	}
}

// weight reads a weight: a number from 0 on.
func weight(v document.Value) (float64, bool) {
	x, ok := v.Float()
	if !ok || x < 0 {
		v.Fail(document.Error{Problem: "is not a weight", Allowed: "numbers from 0 on: 6, 0.25"})
		return 0, false
	}
	return x, true
}

// Shapes reads a mapping of inputs to shapes.
func Shapes(v document.Value) map[string][]int64 {
	shapes := map[string][]int64{}
	v.Mapping(nil, func(key, v document.Value) bool {
		if dims, ok := v.Shape(); ok {
			shapes[key.Node.Value] = dims
		}
		return true
	})
	return shapes
}

// Values reads a mapping of inputs to whole numbers.
func Values(v document.Value) map[string]int64 {
	values := map[string]int64{}
	v.Mapping(nil, func(key, v document.Value) bool {
		if n, ok := v.Whole(math.MinInt32, math.MaxInt64); ok {
			values[key.Node.Value] = n
		}
		return true
	})
	return values
}

// forms are the fields of a distribution, of which one is given.
const forms = "values, histogram, lognormal or sizes"

// distribution reads the sizes of a dimension with their weights.
func distribution(v document.Value, file func(document.Value, *string)) (m Mix) {
	given := v.Mapping([]document.Field{
		{Name: "dimension", Read: func(v document.Value) { m.Dimension, _ = v.Text() }},
		{Name: "values", Read: func(v document.Value) { m.Values = sizes(v) }},
		{Name: "histogram", Read: func(v document.Value) { file(v, &m.Histogram) }},
		{Name: "lognormal", Read: func(v document.Value) { m.Lognormal = lognormal(v) }},
		{Name: "sizes", Read: func(v document.Value) {
			if m.OfTrace = v.Node.Value == string(arrivals.TraceKind); !m.OfTrace {
				v.Fail(document.Error{Problem: "is no source of sizes", Allowed: "trace: those in the trace of load.arrivals"})
			}
		}},
	}, nil)
	_, hasDimension := given["dimension"]
	if !hasDimension {
		v.Require("dimension", "a symbol in the shapes of the model's inputs", "`tuner init MODEL` shows them")
	}
	if n := len(given); hasDimension && n != 2 {
		v.Fail(document.Error{Problem: fmt.Sprintf("has %d of %s", n-1, forms), Hint: "give one of them"})
	}
	return m
}

// sizes reads a mapping of sizes to weights.
func sizes(v document.Value) []mix.Size {
	var list []mix.Size
	total := 0.0
	v.Mapping(nil, func(key, v document.Value) bool {
		n, sizeOK := key.Whole(1, math.MaxInt32)
		if w, ok := weight(v); ok && sizeOK {
			list, total = append(list, mix.Size{Size: n, Weight: w}), total+w
		}
		return true
	})
	checkTotal(v, total)
	return list
}

// lognormal reads the quantiles of a distribution.
func lognormal(v document.Value) mix.Lognormal {
	var l mix.Lognormal
	read := func(to *float64) func(document.Value) {
		return func(v document.Value) {
			if n, ok := v.Whole(1, math.MaxInt32); ok {
				*to = float64(n)
			}
		}
	}
	given := v.Mapping([]document.Field{
		{Name: "p50", Read: read(&l.P50)}, {Name: "p99", Read: read(&l.P99)},
		{Name: "max", Read: func(v document.Value) { l.Max, _ = v.Whole(1, math.MaxInt32) }},
	}, nil)
	for _, name := range []string{"p50", "p99"} {
		if _, has := given[name]; !has {
			v.Require(name, "{p50: 40, p99: 300, max: 512}", "")
		}
	}
	if l.P50 > 0 && l.P99 > 0 && l.P99 < l.P50 {
		v.Fail(document.Error{Problem: "has a p99 below its p50", Hint: "swap the two"})
	}
	return l
}

// Parse reads a distribution of a dimension from one line: DIM=SIZE:WEIGHT,… or DIM=FILE.csv or
// DIM=p50:SIZE,p99:SIZE[,max:SIZE].
func Parse(text string) (Mix, error) {
	name, rest, found := strings.Cut(text, "=")
	m := Mix{Dimension: strings.TrimSpace(name)}
	wrong := fmt.Errorf("%q is no mix; write DIMENSION=SIZE:WEIGHT,… such as sequence=16:6,64:3,256:1, or sequence=lengths.csv, or sequence=p50:40,p99:300,max:512", text)
	if !found || m.Dimension == "" || rest == "" {
		return Mix{}, wrong
	}
	if strings.HasSuffix(rest, ".csv") {
		m.Histogram = rest
		return m, nil
	}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(part), ":")
		x, err := strconv.ParseFloat(value, 64)
		if !found || err != nil {
			return Mix{}, wrong
		}
		switch key {
		case "p50":
			m.Lognormal.P50 = x
		case "p99":
			m.Lognormal.P99 = x
		case "max":
			m.Lognormal.Max = int64(x)
		default:
			size, err := strconv.ParseInt(key, 10, 64)
			if err != nil {
				return Mix{}, wrong
			}
			m.Values = append(m.Values, mix.Size{Size: size, Weight: x})
		}
	}
	if m.Lognormal != (mix.Lognormal{}) && m.Values != nil {
		return Mix{}, wrong
	}
	return m, nil
}

// YAML writes a distribution of a dimension as a profile has it, on one line.
func (m Mix) YAML() (string, error) {
	scalar := func(value any) *yaml.Node {
		node := &yaml.Node{}
		_ = node.Encode(value) // numbers and texts alone
		return node
	}
	form := &yaml.Node{Kind: yaml.MappingNode}
	add := func(to *yaml.Node, key any, value *yaml.Node) { to.Content = append(to.Content, scalar(key), value) }
	whole := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	add(whole, "dimension", scalar(m.Dimension))
	switch l := m.Lognormal; {
	case m.Histogram != "":
		add(whole, "histogram", scalar(m.Histogram))
	case m.Values != nil:
		for _, v := range m.Values {
			add(form, v.Size, scalar(v.Weight))
		}
		add(whole, "values", form)
	default:
		add(form, "p50", scalar(int64(l.P50)))
		add(form, "p99", scalar(int64(l.P99)))
		if l.Max > 0 {
			add(form, "max", scalar(l.Max))
		}
		add(whole, "lognormal", form)
	}
	text, err := yaml.Marshal(whole)
	return strings.Join(strings.Fields(string(text)), " "), err
}
