package export

import (
	"fmt"
	"strconv"
)

// queueMetric is the mean time that a request waits in a server's queue, in microseconds.
// prometheus-adapter computes it.
const queueMetric = "avg_time_queue_us"

// scaleDownSeconds is the time for which the load must be low before a server is removed. It is
// about the time that a new server needs to start.
const scaleDownSeconds = 300

type autoscalerSpec struct {
	ScaleTargetRef scaleTarget   `yaml:"scaleTargetRef"`
	MinReplicas    int           `yaml:"minReplicas"`
	MaxReplicas    int           `yaml:"maxReplicas"`
	Metrics        []scaleMetric `yaml:"metrics"`
	Behavior       any           `yaml:"behavior"`
}

type scaleTarget struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Name       string `yaml:"name"`
}

type scaleMetric struct {
	Type string     `yaml:"type"`
	Pods podsMetric `yaml:"pods"`
}

type podsMetric struct {
	Metric map[string]string `yaml:"metric"`
	Target map[string]string `yaml:"target"`
}

// autoscaler scales by queue time. Queue time grows when a server gets more load than it was tuned
// for. CPU and GPU are busy before that, so their use is no signal.
func (d Deployment) autoscaler() object {
	return d.object("autoscaling/v2", "HorizontalPodAutoscaler", d.Name, autoscalerSpec{
		ScaleTargetRef: scaleTarget{"apps/v1", "Deployment", d.Name},
		MinReplicas:    d.Replicas, MaxReplicas: d.MaxReplicas,
		Metrics: []scaleMetric{{"Pods", podsMetric{
			map[string]string{"name": queueMetric},
			map[string]string{"type": "AverageValue", "averageValue": d.queueMicroseconds()},
		}}},
		Behavior: map[string]any{"scaleDown": map[string]int{"stabilizationWindowSeconds": scaleDownSeconds}},
	})
}

func (d Deployment) queueMicroseconds() string {
	return strconv.FormatInt(max(1, d.QueueTime.Microseconds()), 10)
}

// adapterRule tells prometheus-adapter how to compute a metric of pods.
type adapterRule struct {
	SeriesQuery  string            `yaml:"seriesQuery"`
	Resources    any               `yaml:"resources"`
	Name         map[string]string `yaml:"name"`
	MetricsQuery string            `yaml:"metricsQuery"`
}

// rateWindow is the period over which the metric is averaged. A rate needs two samples, and
// Prometheus scrapes once a minute by default.
const rateWindow = "5m"

// adapterRules returns the adapter's values with the one rule that the autoscaler needs. Both
// counters are Triton's. The queue time of a pod without requests is zero.
func adapterRules() any {
	rate := func(counter string) string {
		return fmt.Sprintf("sum by (<<.GroupBy>>) (rate(%s{<<.LabelMatchers>>}[%s]))", counter, rateWindow)
	}
	rule := adapterRule{
		SeriesQuery: `nv_inference_queue_duration_us{namespace!="",pod!=""}`,
		Resources: map[string]any{"overrides": map[string]any{
			"namespace": map[string]string{"resource": "namespace"}, "pod": map[string]string{"resource": "pod"},
		}},
		Name:         map[string]string{"matches": "nv_inference_queue_duration_us", "as": queueMetric},
		MetricsQuery: fmt.Sprintf("%s / clamp_min(%s, 0.001)", rate("nv_inference_queue_duration_us"), rate("nv_inference_request_success")),
	}
	return map[string]any{"rules": map[string]any{"custom": []adapterRule{rule}}}
}
