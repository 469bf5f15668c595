// Package scaling writes the objects that change a deployment's number of pods: a HorizontalPodAutoscaler
// with the rule of its metric, or KEDA's ScaledObject. It is the only place that knows their forms.
//
// A rule comes from a plan (package capacity), or without one from the tuned queue time. Package export
// puts the objects into an export. This package contacts no cluster.
package scaling

import (
	"bytes"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"tuner/capacity"
	"tuner/capacity/autoscaler"
)

// DefaultPrometheus is the address that Prometheus Operator's chart gives its server.
const DefaultPrometheus = "http://prometheus-operated.monitoring.svc:9090"

// AdapterComment stands above the values of prometheus-adapter.
const AdapterComment = "Values of the chart prometheus-community/prometheus-adapter: the autoscaler's metric."

// Target is the scaled Deployment.
type Target struct {
	Name       string // of the Deployment, a DNS label
	Prometheus string // address of Prometheus, for KEDA
}

type object struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata"`
	Spec       any               `yaml:"spec"`
}

type reference struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Name       string `yaml:"name"`
}

type hpaSpec struct {
	Target   reference `yaml:"scaleTargetRef"`
	Min      int       `yaml:"minReplicas"`
	Max      int       `yaml:"maxReplicas"`
	Metrics  []metric  `yaml:"metrics"`
	Behavior behavior  `yaml:"behavior"`
}

type metric struct {
	Type string `yaml:"type"`
	Pods struct {
		Metric map[string]string `yaml:"metric"`
		Target map[string]string `yaml:"target"`
	} `yaml:"pods"`
}

type behavior struct {
	Up   *rules `yaml:"scaleUp,omitempty"`
	Down *rules `yaml:"scaleDown,omitempty"`
}

type rules struct {
	Stabilization int      `yaml:"stabilizationWindowSeconds"`
	Select        string   `yaml:"selectPolicy,omitempty"`
	Tolerance     string   `yaml:"tolerance,omitempty"` // Kubernetes 1.35 and newer
	Policies      []policy `yaml:"policies,omitempty"`
}

type policy struct {
	Type   string `yaml:"type"`
	Value  int    `yaml:"value"`
	Period int    `yaml:"periodSeconds"`
}

type scaledObjectSpec struct {
	Target   reference `yaml:"scaleTargetRef"`
	Polling  int       `yaml:"pollingInterval"`
	Min      int       `yaml:"minReplicaCount"`
	Max      int       `yaml:"maxReplicaCount"`
	Advanced struct {
		HPA struct {
			Behavior behavior `yaml:"behavior"`
		} `yaml:"horizontalPodAutoscalerConfig"`
	} `yaml:"advanced"`
	Triggers []trigger `yaml:"triggers"`
}

type trigger struct {
	Type     string            `yaml:"type"`
	Metric   string            `yaml:"metricType"`
	Metadata map[string]string `yaml:"metadata"`
}

// Object returns the autoscaler: its kind, and its specification for YAML. The rule scales.
func (r Rule) Object(t Target) (apiVersion, kind string, spec any) {
	target := reference{"apps/v1", "Deployment", t.Name}
	if r.Scaler == capacity.KEDA {
		spec := scaledObjectSpec{
			Target: target, Polling: polling(), Min: r.Min, Max: r.Max,
			Triggers: []trigger{{"prometheus", "AverageValue", map[string]string{
				"serverAddress": t.Prometheus, "query": r.query(t.Name, ""), "threshold": r.threshold(),
			}}},
		}
		spec.Advanced.HPA.Behavior = r.behavior
		return "keda.sh/v1alpha1", "ScaledObject", spec
	}
	var m metric
	m.Type = string(autoscaler.Pods)
	m.Pods.Metric = map[string]string{"name": r.Metric.Name}
	m.Pods.Target = map[string]string{"type": "AverageValue", "averageValue": r.Metric.Target}
	return "autoscaling/v2", "HorizontalPodAutoscaler", hpaSpec{Target: target, Min: r.Min, Max: r.Max, Metrics: []metric{m}, Behavior: r.behavior}
}

// adapterRule tells prometheus-adapter how to compute a metric of pods.
type adapterRule struct {
	SeriesQuery  string            `yaml:"seriesQuery"`
	Resources    any               `yaml:"resources"`
	Name         map[string]string `yaml:"name"`
	MetricsQuery string            `yaml:"metricsQuery"`
}

// AdapterValues returns prometheus-adapter's values with the one rule that a HorizontalPodAutoscaler
// needs, for YAML.
func (r Rule) AdapterValues() any {
	rule := adapterRule{
		SeriesQuery: r.Metric.series + `{namespace!="",pod!=""}`,
		Resources: map[string]any{"overrides": map[string]any{
			"namespace": map[string]string{"resource": "namespace"}, "pod": map[string]string{"resource": "pod"},
		}},
		Name:         map[string]string{"matches": r.Metric.series, "as": r.Metric.Name},
		MetricsQuery: r.Metric.query,
	}
	return map[string]any{"rules": map[string]any{"custom": []adapterRule{rule}}}
}

// Write writes the objects of a plan as YAML. A fixed number of replicas is a patch of the Deployment.
func Write(w io.Writer, p capacity.Plan, t Target) error {
	r := OfPlan(p.Best.Scaling)
	var documents []any
	comment := ""
	switch r.Scaler {
	case capacity.HPA, capacity.KEDA:
		version, kind, spec := r.Object(t)
		documents = append(documents, object{version, kind, map[string]string{"name": t.Name}, spec})
		comment = "Needs KEDA 2.x, and Prometheus at the address."
		if r.Scaler == capacity.HPA {
			comment = "Needs the metric " + Requests + ": the second document is the values of the chart prometheus-community/prometheus-adapter."
			documents = append(documents, r.AdapterValues())
		}
	default:
		comment = fmt.Sprintf("kubectl patch deployment %s --patch-file FILE", t.Name)
		documents = append(documents, map[string]any{"spec": map[string]int{"replicas": r.Min}})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s of %q, as `tuner plan` chose.\n# %s\n", p.Best.Replicas(), p.Best.Configuration, comment)
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	for _, d := range documents {
		if err := encoder.Encode(d); err != nil {
			return fmt.Errorf("cannot write autoscaler: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return fmt.Errorf("cannot write autoscaler: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("cannot write autoscaler: %w", err)
	}
	return nil
}
