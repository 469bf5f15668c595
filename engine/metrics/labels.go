package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"tuner/engine"
)

// show puts a metric of a model on the page.
type show func(prometheus.Metric)

// withLabels returns a show that adds labels to each metric.
func withLabels(out chan<- prometheus.Metric, labels []*dto.LabelPair) show {
	if len(labels) == 0 {
		return func(m prometheus.Metric) { out <- m }
	}
	return func(m prometheus.Metric) { out <- &labelled{m, labels} }
}

// labelled is a metric with labels that other metrics of its name do not have: the tags of one
// model. Prometheus' descriptions know only labels that all of them have.
type labelled struct {
	prometheus.Metric
	more []*dto.LabelPair
}

// Write implements prometheus.Metric.
func (l *labelled) Write(m *dto.Metric) error {
	if err := l.Metric.Write(m); err != nil {
		return err
	}
	m.Label = slices.Concat(m.Label, l.more)
	slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return nil
}

// moreLabels returns the labels of a model beside its name and version: those of its metric_tags,
// with an underscore in front as in Triton, and its namespace. Characters that a label's name may not
// have become underscores. Two tags whose names become the same are one label, of the first tag.
func moreLabels(m *engine.ModelMetrics) []*dto.LabelPair {
	var out []*dto.LabelPair
	add := func(name, value string) {
		value = strings.ToValidUTF8(value, string(utf8.RuneError))
		out = append(out, &dto.LabelPair{Name: &name, Value: &value})
	}
	if m.Namespace != "" {
		add("namespace", m.Namespace)
	}
	seen := map[string]bool{}
	for _, tag := range slices.Sorted(maps.Keys(m.Tags)) {
		if name := "_" + labelName(tag); !seen[name] {
			seen[name] = true
			add(name, m.Tags[tag])
		}
	}
	return out
}

// labelName replaces the characters that the name of a label may not have.
func labelName(tag string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, tag)
}
