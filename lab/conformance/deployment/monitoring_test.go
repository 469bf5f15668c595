package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

// monitoringOf names the folder of each target's files.
var monitoringOf = map[string]string{"triton": "monitoring", "compose": "monitoring", "kubernetes": "monitoring", "kserve": "monitoring", "helm": "chart/monitoring"}

// alertsOf reads an export's rules with Prometheus' own checks, those of promtool check rules.
func alertsOf(t *testing.T, path string) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatalf("%s: %v", path, errs)
	}
	var list []rulefmt.Rule
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

func TestRules(t *testing.T) {
	for target, folder := range monitoringOf {
		for name, args := range map[string][]string{"one model": nil, "two models": {"--input", "other"}} {
			list := alertsOf(t, filepath.Join(export(t, target, args...), folder, "alerts.yml"))
			seen := map[string]bool{}
			for _, r := range list {
				if key := r.Alert + fmt.Sprint(r.Labels); seen[key] {
					t.Errorf("%s, %s: two rules %s", target, name, key)
				} else {
					seen[key] = true
				}
			}
			if want := map[string]int{"one model": 4, "two models": 7}[name]; len(list) != want {
				t.Errorf("%s, %s: %d rules, want %d", target, name, len(list), want)
			}
		}
	}
}

// promtool itself accepts the rules of each target, and finds as many as Prometheus' own reader.
func TestPromtool(t *testing.T) {
	promtool := filepath.Join(environment(t, "TUNER_CONTROLPLANE"), "promtool")
	for target, folder := range monitoringOf {
		for want, args := range map[string][]string{"SUCCESS: 4 rules found": nil, "SUCCESS: 7 rules found": {"--input", "other"}} {
			path := filepath.Join(export(t, target, args...), folder, "alerts.yml")
			out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint-fatal", path).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v, want %q: %s", target, err, want, out)
			}
		}
	}
}

// TestDashboard reads each dashboard with Grafana's own schema, and its queries with Prometheus'
// parser.
func TestDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for target, folder := range monitoringOf {
		for _, args := range [][]string{nil, {"--input", "other"}, {"--gpus", "1"}} {
			text := read(t, filepath.Join(export(t, target, args...), folder, "dashboard.json"))
			if err := grafanaAccepts(text); err != nil {
				t.Errorf("%s %v: %v", target, args, err)
			}
			queries := queriesOf(t, text)
			if len(queries) < 10 {
				t.Errorf("%s %v: %d queries", target, args, len(queries))
			}
			for _, q := range queries {
				if _, err := parser.ParseExpr(strings.ReplaceAll(q, "$instance", ".*")); err != nil {
					t.Errorf("%s %v: %s: %v", target, args, q, err)
				}
			}
		}
	}
	text := string(read(t, filepath.Join(export(t, "triton"), "monitoring", "dashboard.json")))
	for _, misspelt := range [][2]string{{`"gridPos"`, `"gridPosition"`}, {`"thresholdsStyle"`, `"thresholdStyle"`}, {`"placement": "bottom"`, `"placement": 1`}} {
		if err := grafanaAccepts([]byte(strings.Replace(text, misspelt[0], misspelt[1], 1))); err == nil {
			t.Errorf("Grafana's schema accepts %s", misspelt[1])
		}
	}
}

// grafanaAccepts reads a dashboard by Grafana's schema, which knows all fields of panels and queries.
func grafanaAccepts(text []byte) error {
	var d dashboard.Dashboard
	var errs cog.BuildErrors
	if err := d.UnmarshalJSONStrict(text); err != nil && !(errors.As(err, &errs) && len(errs) == 0) { // it returns an empty list as an error
		return err
	}
	return d.Validate()
}

// queriesOf lists the queries of a dashboard.
func queriesOf(t *testing.T, text []byte) []string {
	t.Helper()
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			list = append(list, q.Expr)
		}
	}
	return list
}

// TestClusterObjects compares the objects for operators, and the chart's, with the plain files.
func TestClusterObjects(t *testing.T) {
	type object struct {
		Kind     string
		Metadata struct{ Labels map[string]string }
		Spec     map[string]any
		Data     map[string]string
	}
	check := func(target, folder string, documents [][]byte) {
		dir := filepath.Join(export(t, target), folder)
		var rules map[string]any
		if err := yaml.Unmarshal(read(t, filepath.Join(dir, "alerts.yml")), &rules); err != nil {
			t.Fatal(err)
		}
		found := map[string]object{}
		for _, document := range documents {
			var o object
			if err := yaml.Unmarshal(document, &o); err != nil {
				t.Fatal(err)
			}
			found[o.Kind] = o
		}
		if got := fmt.Sprint(found["PrometheusRule"].Spec); got != fmt.Sprint(rules) {
			t.Errorf("%s: the PrometheusRule has %s, want %v", target, got, rules)
		}
		o := found["ConfigMap"]
		if text := o.Data["minilm.json"]; strings.TrimSpace(text) != strings.TrimSpace(string(read(t, filepath.Join(dir, "dashboard.json")))) {
			t.Errorf("%s: the ConfigMap has another dashboard: %s", target, text)
		}
		if o.Metadata.Labels["grafana_dashboard"] != "1" {
			t.Errorf("%s: the labels of the dashboard are %v", target, o.Metadata.Labels)
		}
	}
	for _, target := range []string{"kubernetes", "kserve"} {
		dir := filepath.Join(export(t, target), "monitoring")
		check(target, "monitoring", [][]byte{read(t, filepath.Join(dir, "prometheus-rule.yaml")), read(t, filepath.Join(dir, "dashboard.yaml"))})
	}
	check("helm", "chart/monitoring", documents(t, rendered(t, export(t, "helm"), "--set", "prometheusRule.enabled=true", "--set", "dashboard.enabled=true")))
	if text := string(rendered(t, export(t, "helm"))); strings.Contains(text, "kind: PrometheusRule") || strings.Contains(text, "kind: ConfigMap") {
		t.Error("the chart watches by default, and not every cluster knows the kind")
	}
}

// TestAlertsFire has Prometheus evaluate the rules over an hour of recorded metrics, as promtool
// test rules does. Each alert fires above its threshold, and does not below.
func TestAlertsFire(t *testing.T) {
	list := alertsOf(t, filepath.Join(export(t, "triton"), "monitoring", "alerts.yml"))
	// The recorded campaign's best load: throughput and thresholds are in the export itself.
	var e struct {
		Models []struct {
			Throughput struct{ Value float64 } `json:"throughput"`
		} `json:"models"`
	}
	dir := export(t, "triton")
	if err := json.Unmarshal(read(t, filepath.Join(dir, "export.json")), &e); err != nil {
		t.Fatal(err)
	}
	tuned := e.Models[0].Throughput.Value // requests per second, since a request has one inference
	threshold := func(alert string) float64 {
		i := slices.IndexFunc(list, func(r rulefmt.Rule) bool { return r.Alert == alert })
		var v float64
		if _, err := fmt.Sscan(list[i].Expr[strings.LastIndex(list[i].Expr, "> ")+2:], &v); err != nil {
			t.Fatalf("%s: %v", list[i].Expr, err)
		}
		return v
	}
	queue, p99 := threshold("TritonQueueTime"), threshold("TritonLatencyP99")
	if want := 50e3; p99 != want {
		t.Errorf("the limit on p99 is %g µs, want the campaign's %g", p99, want)
	}
	// state is the load of a server: requests per second, queue time in µs, p99 in µs, share that fails.
	type state struct{ rate, queue, p99, failed float64 }
	for name, c := range map[string]struct {
		state
		want []string
	}{
		"calm":                       {state{0.89 * tuned, 0.98 * queue, 0.98 * p99, 0.009}, nil},
		"idle":                       {state{}, nil},
		"more than 90 % of the load": {state{0.92 * tuned, 0.98 * queue, 0.98 * p99, 0}, []string{"TritonLoad"}},
		"a long queue":               {state{0.5 * tuned, 1.02 * queue, 0.98 * p99, 0}, []string{"TritonQueueTime"}},
		"beyond the limit":           {state{0.5 * tuned, 0.5 * queue, 1.02 * p99, 0}, []string{"TritonLatencyP99"}},
		"failures":                   {state{0.5 * tuned, 0.5 * queue, 0.5 * p99, 0.011}, []string{"TritonFailures"}},
	} {
		t.Run(name, func(t *testing.T) {
			const minutes = 60
			// counters grow by a constant amount in each minute
			counter := func(name, more string, perSecond float64) string {
				return fmt.Sprintf("  %s{instance=\"a:8002\",model=\"minilm\",version=\"1\"%s} 0+%gx%d\n", name, more, perSecond*60, minutes)
			}
			text := "load 1m\n" + counter("nv_inference_request_success", "", c.rate) +
				counter("nv_inference_queue_duration_us", "", c.rate*c.queue) +
				counter("nv_inference_request_failure", `,reason="OTHER"`, c.rate*c.failed/(1-c.failed)) +
				counter("nv_inference_request_failure", `,reason="REJECTED"`, 0) +
				fmt.Sprintf("  nv_inference_request_summary_us{instance=\"a:8002\",model=\"minilm\",version=\"1\",quantile=\"0.99\"} %gx%d\n", c.p99, minutes)
			fires := firing(t, text, list, minutes)
			if !slices.Equal(fires, c.want) {
				t.Errorf("alerts %v, want %v", fires, c.want)
			}
		})
	}
}

// firing evaluates rules in each minute of a recording, and returns the alerts that fire at its end.
// None may fire before its time has passed.
func firing(t *testing.T, recording string, list []rulefmt.Rule, minutes int) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, recording)
	engine := promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	var fires []string
	for _, r := range list {
		expr, err := parser.ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
		for minute := range minutes + 1 {
			at := time.Unix(int64(minute)*60, 0)
			if _, err := rule.Eval(context.Background(), 0, at, rules.EngineQueryFunc(engine, storage), &url.URL{}, 0); err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			rule.SetEvaluationTimestamp(at)
			if rule.State() == rules.StateFiring && at.Before(time.Unix(0, 0).Add(time.Duration(r.For))) {
				t.Errorf("%s fires after %d minutes", r.Alert, minute)
			}
		}
		if rule.State() == rules.StateFiring {
			fires = append(fires, r.Alert)
		}
	}
	return fires
}
