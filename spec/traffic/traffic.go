// Package traffic reads the course of a load over time that a file or a flag asks for: when the
// requests of an open loop arrive. Package measure/arrivals has the patterns that become of it. It
// reads no trace: only its file name.
package traffic

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/measure/arrivals"
	"tuner/spec/document"
)

// allowed describes the values of arrivals.
const allowed = "poisson, constant, {gamma: {cv: 2}}, {on_off: {on: 2s, off: 8s}}, {curve: {0s: 1, 30s: 3, 60s: 1}}, {trace: FILE}"

// Read reads a pattern of arrivals. file reads the name of a file. ok is false after a mistake.
func Read(v document.Value, file func(document.Value, *string)) (p arrivals.Pattern, ok bool) {
	before := v.Mistakes()
	if v.Node.Kind != yaml.MappingNode {
		switch arrivals.Kind(v.Node.Value) {
		case arrivals.PoissonKind:
			return arrivals.Pattern{}, true
		case arrivals.ConstantKind:
			return arrivals.Pattern{Kind: arrivals.ConstantKind}, true
		}
		v.Fail(document.Error{Problem: "is not a pattern of arrivals", Allowed: allowed})
		return p, false
	}
	given := v.Mapping([]document.Field{
		{Name: string(arrivals.GammaKind), Read: func(v document.Value) { p.CV = number(v, "cv", "{cv: 2}") }},
		{Name: string(arrivals.OnOffKind), Read: func(v document.Value) { onOff(v, &p) }},
		{Name: string(arrivals.CurveKind), Read: func(v document.Value) { curve(v, &p) }},
		{Name: string(arrivals.TraceKind), Read: func(v document.Value) { file(v, &p.File) }},
	}, nil)
	for name := range given {
		p.Kind = arrivals.Kind(name)
	}
	if v.Mistakes() > before {
		return p, false
	}
	if len(given) != 1 {
		v.Fail(document.Error{Problem: fmt.Sprintf("names %d patterns", len(given)), Allowed: "one of " + allowed})
		return p, false
	}
	if err := p.Check(); err != nil {
		given[string(p.Kind)].Fail(document.Error{Problem: err.Error()})
		return p, false
	}
	return p, true
}

// number reads a mapping with one required number.
func number(v document.Value, name, example string) (x float64) {
	given := v.Mapping([]document.Field{{Name: name, Read: func(v document.Value) { x, _ = v.Number("a number above 0") }}}, nil)
	if _, has := given[name]; !has && v.Node.Kind == yaml.MappingNode {
		v.Require(name, example, "")
	}
	return x
}

func onOff(v document.Value, p *arrivals.Pattern) {
	given := v.Mapping([]document.Field{
		{Name: "on", Read: func(v document.Value) { p.On, _ = v.DurationWithin(arrivals.ShortestPhase, arrivals.LongestPeriod) }},
		{Name: "off", Read: func(v document.Value) { p.Off, _ = v.DurationWithin(arrivals.ShortestPhase, arrivals.LongestPeriod) }},
	}, nil)
	for _, name := range []string{"on", "off"} {
		if _, has := given[name]; !has && v.Node.Kind == yaml.MappingNode {
			v.Require(name, "{on: 2s, off: 8s}", "")
		}
	}
}

// curve reads a mapping from instants to factors, in the file's order.
func curve(v document.Value, p *arrivals.Pattern) {
	v.Mapping(nil, func(key, v document.Value) bool {
		at, known := key.DurationWithin(0, arrivals.LongestPeriod)
		factor, isNumber := v.Float()
		if !isNumber {
			v.Fail(document.Error{Problem: "is not a factor of the rate", Allowed: "numbers from 0 on"})
		}
		if known && isNumber {
			p.Curve = append(p.Curve, arrivals.Point{At: at, Factor: factor})
		}
		return true
	})
}

// Parse reads the value of a flag, in the form that files have. The error names the flag.
func Parse(flag, text string) (p arrivals.Pattern, err error) {
	d := document.New("--"+flag, "")
	if root, ok := d.Open([]byte(text)); ok {
		p, _ = Read(root, func(v document.Value, name *string) { *name, _ = v.Text() })
	}
	var mistakes document.Errors
	switch err := d.Err(); {
	case errors.As(err, &mistakes):
		var list []string
		for _, e := range mistakes {
			list = append(list, words(e))
		}
		return p, fmt.Errorf("--%s %q: %s", flag, text, strings.Join(list, "; "))
	case err != nil:
		return p, fmt.Errorf("--%s %q: %w", flag, text, err)
	}
	return p, nil
}

// words describes a mistake without the place, which a flag does not have.
func words(e document.Error) string {
	text := e.Problem
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Allowed != "" {
		text += "; allowed: " + e.Allowed
	}
	return text
}
