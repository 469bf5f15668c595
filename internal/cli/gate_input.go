package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/internal/durable"
	"tuner/spec"
)

// readGate reads the file, or makes what the flags stand for.
func readGate(o gateOptions) (spec.Gate, error) {
	path, text := fromFlags, []byte(nil)
	var err error
	if o.file != "" {
		for _, flag := range []string{"baseline", "candidate", "metric", "limit", "concurrency", "request-rate", "shape"} {
			if o.given(flag) {
				return spec.Gate{}, usageErrorf("--%s contradicts -f: the file says it", flag)
			}
		}
		path = filepath.Clean(o.file)
		if text, err = os.ReadFile(o.file); err != nil {
			return spec.Gate{}, usageErrorf("cannot read %q: %v", o.file, durable.Cause(err))
		}
	} else if text, err = o.text(); err != nil {
		return spec.Gate{}, err
	}
	g, err := spec.ParseGate(path, text)
	if err != nil {
		if o.file == "" {
			err = namingFlags(err)
		}
		return spec.Gate{}, withExit(exitUsage, err)
	}
	if o.given("budget") {
		g.Budget = o.budget
	}
	if o.inconclusive != "" {
		g.Inconclusive = o.inconclusive
	}
	if o.folder != "" {
		if g.History == filepath.Join(g.Output, filepath.Base(g.History)) {
			g.History = filepath.Join(o.folder, filepath.Base(g.History))
		}
		g.Output = o.folder
	}
	return g, nil
}

// limitText is the form of --limit.
var limitText = regexp.MustCompile(`^\s*([A-Za-z0-9_.]+)\s*(<=|>=)\s*(.+?)\s*$`)

// text is the gate.yaml that the flags stand for; it is read like any other.
func (o gateOptions) text() ([]byte, error) {
	if o.candidate == "" {
		return nil, usageErrorf("no candidate given: use --candidate MODEL, or -f gate.yaml")
	}
	file := map[string]any{"candidate": o.candidate}
	if o.baseline != "" {
		file["baseline"] = o.baseline
	}
	var metrics []any
	for _, text := range o.metrics {
		name, margin, hasMargin := strings.Cut(text, "=")
		if !hasMargin {
			metrics = append(metrics, name)
			continue
		}
		metrics = append(metrics, map[string]string{"name": name, "margin": margin})
	}
	if len(metrics) > 0 {
		file["metrics"] = metrics
	}
	limits := map[string]map[string]string{}
	for _, text := range o.limits {
		m := limitText.FindStringSubmatch(text)
		if m == nil {
			return nil, usageErrorf("--limit %q: write METRIC<=BOUND or METRIC>=BOUND, such as latency_p99<=30ms", text)
		}
		if limits[m[1]] == nil {
			limits[m[1]] = map[string]string{}
		}
		side := map[string]string{"<=": "max", ">=": "min"}[m[2]]
		if other, given := limits[m[1]][side]; given {
			return nil, usageErrorf("--limit %q contradicts --limit '%s%s%s': keep one of the two", text, m[1], m[2], other)
		}
		limits[m[1]][side] = m[3]
	}
	if len(limits) > 0 {
		file["limits"] = limits
	}
	load, err := o.load()
	if err != nil {
		return nil, err
	}
	if len(load) > 0 {
		file["load"] = load
	}
	return gateText(file)
}

// gateText prints a gate.yaml. Numbers among the texts are written without quotes, as a user would.
func gateText(file map[string]any) ([]byte, error) {
	var node yaml.Node
	if err := node.Encode(file); err != nil {
		return nil, fmt.Errorf("cannot write the gate's file: %w", err)
	}
	plain(&node)
	text, err := yaml.Marshal(&node)
	if err != nil {
		return nil, fmt.Errorf("cannot write the gate's file: %w", err)
	}
	return text, nil
}

// plain takes the quotes off all values, so that "200" is a number.
func plain(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Style == yaml.DoubleQuotedStyle {
		n.Style, n.Tag = 0, ""
	}
	for _, c := range n.Content {
		plain(c)
	}
}

// load is the section of the load.
func (o gateOptions) load() (map[string]any, error) {
	load := map[string]any{}
	if o.given("concurrency") {
		load["concurrency"] = o.concurrency
	}
	if o.given("request-rate") {
		load["request_rate"] = o.rate
	}
	shapes, err := parseShapes(o.shapes)
	if err != nil {
		return nil, withExit(exitUsage, err)
	}
	if len(shapes) > 0 {
		load["inputs"] = map[string]any{"shape": shapes}
	}
	return load, nil
}
