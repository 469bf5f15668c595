package paflags

import (
	"fmt"
	"strconv"
	"strings"

	"tuner/internal/problems"
	"tuner/model/onnx/inputs"
)

// checkData reads the source of the inputs.
func (o *Options) checkData(p *problems.List, plan *Plan) {
	s := &plan.Source
	s.Data, s.StringLength, s.StringData, s.Batch, s.Seed = o.data, o.stringLength, o.stringData, o.batch, plan.Settings.Seed
	if o.batch < 1 || o.stringLength < 0 {
		p.Addf("-b must be 1 or more, and --string-length not below 0")
	}
	var err error
	s.Shapes, err = inputs.ParseShapes(o.shapes)
	p.Add(err)
	s.Ranges, err = parseRanges(o.ranges)
	p.Add(err)
	for _, format := range []struct {
		flag, value string
		json        *bool
	}{{"input", o.inputFormat, &plan.Format.JSONInputs}, {"output", o.outputFormat, &plan.Format.JSONOutputs}} {
		switch {
		case format.value != "binary" && format.value != "json":
			p.Addf("--%s-tensor-format %q: allowed are binary and json", format.flag, format.value)
		case format.value == "json" && strings.EqualFold(o.protocol, "grpc"):
			p.Addf("--%s-tensor-format json is for HTTP", format.flag)
		}
		*format.json = format.value == "json"
	}
	for _, text := range o.with {
		other, err := parseWith(text)
		p.Add(err)
		plan.With = append(plan.With, other)
	}
}

// parseRanges reads NAME:LOWEST:BELOW. The name ends at the last colon but one.
func parseRanges(list []string) (map[string]inputs.Range, error) {
	ranges := map[string]inputs.Range{}
	for _, text := range list {
		parts := strings.Split(text, ":")
		n := len(parts)
		if n < 3 || strings.Join(parts[:n-2], ":") == "" {
			return nil, fmt.Errorf("--input-range %q: want NAME:LOWEST:BELOW, such as ids:0:30522", text)
		}
		lowest, err1 := strconv.ParseInt(parts[n-2], 10, 64)
		below, err2 := strconv.ParseInt(parts[n-1], 10, 64)
		if err1 != nil || err2 != nil || below <= lowest {
			return nil, fmt.Errorf("--input-range %q: want two whole numbers, the second above the first", text)
		}
		ranges[strings.Join(parts[:n-2], ":")] = inputs.Range{Lo: lowest, Hi: below}
	}
	return ranges, nil
}

// parseWith reads MODEL[:VERSION],KEY=VALUE,…. A part without a key belongs to the value before it,
// such as sizes of a shape.
func parseWith(text string) (With, error) {
	bad := func(format string, args ...any) (With, error) {
		return With{}, fmt.Errorf("--with %q: %s", text, fmt.Sprintf(format, args...))
	}
	parts := strings.Split(text, ",")
	var w With
	w.Model, w.Version, _ = strings.Cut(parts[0], ":")
	if w.Model == "" || strings.Contains(parts[0], "=") {
		return bad("it begins with the name of a model")
	}
	w.Load.BatchSize = 1
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
			w.Load.Concurrency, err = strconv.Atoi(value)
		case "rate":
			w.Load.RequestRate, err = strconv.ParseFloat(value, 64)
		case "batch":
			w.Load.BatchSize, err = strconv.Atoi(value)
		case "input-data":
			w.Source.Data = append(w.Source.Data, value)
		case "shape":
			shapes = append(shapes, value)
		default:
			return bad("%q is not known; known are concurrency=, rate=, batch=, input-data= and shape=", setting)
		}
		if err != nil {
			return bad("%s=%q is not a number", key, value)
		}
	}
	if l := w.Load; l.BatchSize < 1 || (l.Concurrency > 0) == (l.RequestRate > 0) {
		return bad("there must be one of concurrency=N and rate=R, above 0, and a batch of 1 or more")
	}
	var err error
	if w.Source.Shapes, err = inputs.ParseShapes(shapes); err != nil {
		return bad("%v", err)
	}
	w.Source.Batch = w.Load.BatchSize
	return w, nil
}
