package cli

import (
	"fmt"
	"strconv"
	"strings"

	"tuner/measure"
	"tuner/onnx/inputs"
	"tuner/payload"
)

// checkData finds where the inputs come from.
func (o perfOptions) checkData(p *problems, plan *perfPlan) {
	s := &plan.source
	s.Data, s.StringLength, s.StringData, s.Batch, s.Seed = o.data, o.stringLength, o.stringData, o.batch, plan.settings.Seed
	if o.batch < 1 || o.stringLength < 0 {
		p.addf("-b must be 1 or more, and --string-length not below 0")
	}
	var err error
	s.Shapes, err = parseShapes(o.shapes)
	p.add(err)
	s.Ranges, err = parseRanges(o.ranges)
	p.add(err)
	for _, format := range []struct {
		flag, value string
		json        *bool
	}{{"input", o.inputFormat, &plan.format.JSONInputs}, {"output", o.outputFormat, &plan.format.JSONOutputs}} {
		switch {
		case format.value != "binary" && format.value != "json":
			p.addf("--%s-tensor-format %q: allowed are binary and json", format.flag, format.value)
		case format.value == "json" && strings.EqualFold(o.protocol, "grpc"):
			p.addf("--%s-tensor-format json is for HTTP", format.flag)
		}
		*format.json = format.value == "json"
	}
	for _, text := range o.with {
		other, err := parseWith(text)
		p.add(err)
		plan.with = append(plan.with, other)
	}
}

// parseRanges reads NAME:LOWEST:BELOW, the name up to the last colon but one.
func parseRanges(list []string) (map[string]inputs.Range, error) {
	ranges := map[string]inputs.Range{}
	for _, text := range list {
		parts := strings.Split(text, ":")
		n := len(parts)
		if n < 3 || strings.Join(parts[:n-2], ":") == "" {
			return nil, fmt.Errorf("--input-range %q: expected is NAME:LOWEST:BELOW, such as ids:0:30522", text)
		}
		lowest, err1 := strconv.ParseInt(parts[n-2], 10, 64)
		below, err2 := strconv.ParseInt(parts[n-1], 10, 64)
		if err1 != nil || err2 != nil || below <= lowest {
			return nil, fmt.Errorf("--input-range %q: expected are two whole numbers, the second above the first", text)
		}
		ranges[strings.Join(parts[:n-2], ":")] = inputs.Range{Lo: lowest, Hi: below}
	}
	return ranges, nil
}

// withLoad is the load on another model.
type withLoad struct {
	model, version string
	load           measure.Load
	source         payload.Source
}

// parseWith reads MODEL[:VERSION],KEY=VALUE,…; a part without a key goes on with the value before it, as sizes of a shape do.
func parseWith(text string) (withLoad, error) {
	bad := func(format string, args ...any) (withLoad, error) {
		return withLoad{}, fmt.Errorf("--with %q: %s", text, fmt.Sprintf(format, args...))
	}
	parts := strings.Split(text, ",")
	var w withLoad
	w.model, w.version, _ = strings.Cut(parts[0], ":")
	if w.model == "" || strings.Contains(parts[0], "=") {
		return bad("it begins with the name of a model")
	}
	w.load.BatchSize = 1
	var settings []string
	for _, part := range parts[1:] {
		if strings.Contains(part, "=") || len(settings) == 0 {
			settings = append(settings, part)
			continue
		}
		settings[len(settings)-1] += "," + part
	}
	var shapes []string
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		var err error
		switch key {
		case "concurrency":
			w.load.Concurrency, err = strconv.Atoi(value)
		case "rate":
			w.load.RequestRate, err = strconv.ParseFloat(value, 64)
		case "batch":
			w.load.BatchSize, err = strconv.Atoi(value)
		case "input-data":
			w.source.Data = append(w.source.Data, value)
		case "shape":
			shapes = append(shapes, value)
		default:
			return bad("%q is not known; known are concurrency=, rate=, batch=, input-data= and shape=", setting)
		}
		if err != nil {
			return bad("%s=%q is no number", key, value)
		}
	}
	if l := w.load; l.BatchSize < 1 || (l.Concurrency > 0) == (l.RequestRate > 0) {
		return bad("there must be one of concurrency=N and rate=R, above 0, and a batch of 1 or more")
	}
	var err error
	if w.source.Shapes, err = parseShapes(shapes); err != nil {
		return bad("%v", err)
	}
	w.source.Batch = w.load.BatchSize
	return w, nil
}
