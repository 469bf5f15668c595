package deployment

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

func TestPrometheusConfiguration(t *testing.T) {
	c, err := config.LoadFile(filepath.Join(export(t, "compose"), "prometheus.yml"), false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.ScrapeConfigs) != 1 || c.ScrapeConfigs[0].JobName != "triton" {
		t.Errorf("scrapes %+v, want Triton", c.ScrapeConfigs)
	}
}

// TestAutoscalerQuery parses the queries of the autoscaler's metric, with the values that
// prometheus-adapter inserts.
func TestAutoscalerQuery(t *testing.T) {
	var values struct {
		Rules struct {
			Custom []struct {
				SeriesQuery  string `yaml:"seriesQuery"`
				MetricsQuery string `yaml:"metricsQuery"`
			} `yaml:"custom"`
		} `yaml:"rules"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(export(t, "kubernetes"), "prometheus-adapter.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	if len(values.Rules.Custom) != 1 {
		t.Fatalf("%d rules, want one", len(values.Rules.Custom))
	}
	rule := values.Rules.Custom[0]
	query := strings.NewReplacer("<<.LabelMatchers>>", `namespace="default",pod="minilm-0"`, "<<.GroupBy>>", "pod").Replace(rule.MetricsQuery)
	for _, q := range []string{rule.SeriesQuery, query} {
		if _, err := parser.ParseExpr(q); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
}
