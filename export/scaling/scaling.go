// Package scaling writes the object that changes a deployment's number of replicas as a plan says: a
// HorizontalPodAutoscaler with the rule of its metric, or KEDA's ScaledObject.
//
// Package capacity makes plans. The objects have every setting that the plan simulated, so nothing is
// left to a cluster's defaults. The package contacts no cluster.
package scaling

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/capacity"
	"tuner/capacity/autoscaler"
)

// Metric is the rate of answered requests of a pod, as prometheus-adapter names it.
const Metric = "inference_requests_per_second"

// DefaultPrometheus is the address that Prometheus Operator's chart gives its server.
const DefaultPrometheus = "http://prometheus-operated.monitoring.svc:9090"

// counter is Triton's counter of answered requests.
const counter = "nv_inference_request_success"

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
	Up   rules `yaml:"scaleUp"`
	Down rules `yaml:"scaleDown"`
}

type rules struct {
	Stabilization int      `yaml:"stabilizationWindowSeconds"`
	Select        string   `yaml:"selectPolicy"`
	Tolerance     string   `yaml:"tolerance,omitempty"` // Kubernetes 1.35 and newer
	Policies      []policy `yaml:"policies"`
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

// Write writes the objects of a plan as YAML. A fixed number of replicas is a patch of the Deployment.
func Write(w io.Writer, p capacity.Plan, t Target) error {
	s := p.Best.Scaling
	documents, comment := []any{}, ""
	switch s.Scaler {
	case capacity.HPA:
		comment = "Needs the metric " + Metric + ": the second document is the values of the chart prometheus-community/prometheus-adapter."
		documents = append(documents, hpa(s, t), adapterValues(s))
	case capacity.KEDA:
		comment = "Needs KEDA 2.x, and Prometheus at the address."
		documents = append(documents, scaledObject(s, t))
	default:
		comment = fmt.Sprintf("kubectl patch deployment %s --patch-file FILE", t.Name)
		documents = append(documents, map[string]any{"spec": map[string]int{"replicas": s.Min}})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n# %s\n", p.Best.Replicas()+" of "+p.Best.Configuration+", as `tuner plan` chose.", comment)
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

func deployment(name string) reference { return reference{"apps/v1", "Deployment", name} }

func hpa(s capacity.Scaling, t Target) object {
	var m metric
	m.Type = string(autoscaler.Pods)
	m.Pods.Metric = map[string]string{"name": Metric}
	m.Pods.Target = map[string]string{"type": "AverageValue", "averageValue": quantity(s.Target)}
	return object{"autoscaling/v2", "HorizontalPodAutoscaler", map[string]string{"name": t.Name}, hpaSpec{
		Target: deployment(t.Name), Min: s.Min, Max: s.Max, Metrics: []metric{m}, Behavior: behaviorOf(s),
	}}
}

// quantity writes a number with thousandths in Kubernetes' form.
func quantity(x float64) string { return strconv.FormatFloat(x*1000, 'f', 0, 64) + "m" }

func behaviorOf(s capacity.Scaling) behavior {
	b := autoscaler.DefaultBehavior()
	b.Down.Stabilization = time.Duration(s.Down * float64(time.Second))
	if s.Scaler == capacity.HPA && s.Tolerance > 0 {
		b.Up.Tolerance, b.Down.Tolerance = s.Tolerance, s.Tolerance
	}
	return behavior{rulesOf(b.Up), rulesOf(b.Down)}
}

func rulesOf(r autoscaler.Rules) rules {
	x := rules{Stabilization: int(r.Stabilization.Seconds()), Select: string(r.Select)}
	if r.Tolerance != autoscaler.DefaultTolerance {
		x.Tolerance = quantity(r.Tolerance)
	}
	for _, p := range r.Policies {
		kind := "Pods"
		if p.Percent {
			kind = "Percent"
		}
		x.Policies = append(x.Policies, policy{kind, p.Value, int(p.Period.Seconds())})
	}
	return x
}

// seconds writes a length of time for Prometheus.
func seconds(s float64) string { return strconv.Itoa(int(s)) + "s" }

// adapterValues tells prometheus-adapter how to compute the metric.
func adapterValues(s capacity.Scaling) any {
	rule := map[string]any{
		"seriesQuery": counter + `{namespace!="",pod!=""}`,
		"resources": map[string]any{"overrides": map[string]any{
			"namespace": map[string]string{"resource": "namespace"}, "pod": map[string]string{"resource": "pod"},
		}},
		"name":         map[string]string{"matches": counter, "as": Metric},
		"metricsQuery": fmt.Sprintf("sum by (<<.GroupBy>>) (rate(%s{<<.LabelMatchers>>}[%s]))", counter, seconds(s.Window)),
	}
	return map[string]any{"rules": map[string]any{"custom": []any{rule}}}
}

func scaledObject(s capacity.Scaling, t Target) object {
	spec := scaledObjectSpec{
		Target: deployment(t.Name), Polling: int(autoscaler.SyncPeriod.Seconds()), Min: s.Min, Max: s.Max,
		Triggers: []trigger{{"prometheus", "AverageValue", map[string]string{
			"serverAddress": t.Prometheus,
			"query":         fmt.Sprintf(`sum(rate(%s{pod=~"%s-.*"}[%s]))`, counter, t.Name, seconds(s.Window)),
			"threshold":     strconv.FormatFloat(s.Target, 'f', 3, 64),
		}}},
	}
	spec.Advanced.HPA.Behavior = behaviorOf(s)
	return object{"keda.sh/v1alpha1", "ScaledObject", map[string]string{"name": t.Name}, spec}
}
