package scaling

import (
	"time"

	"tuner/capacity"
)

// Values are those of a Helm chart: a HorizontalPodAutoscaler, or with KEDA's values a ScaledObject. The
// least number of pods is not among them.
type Values struct {
	Enabled      bool        `yaml:"enabled"`
	MaxReplicas  int         `yaml:"maxReplicas"`
	Metric       string      `yaml:"metric"`
	AverageValue string      `yaml:"averageValue"` // target of the metric
	Behavior     any         `yaml:"behavior"`
	KEDA         *KEDAValues `yaml:"keda,omitempty"`
}

// KEDAValues are those of a ScaledObject alone.
type KEDAValues struct {
	Prometheus      string `yaml:"serverAddress"`
	Query           string `yaml:"query"` // a template of Helm: it asks for the pods of the release in its namespace
	Threshold       string `yaml:"threshold"`
	PollingInterval int    `yaml:"pollingInterval"`
}

// ValuesOf returns the values of a rule. Of a fixed number they are those by queue time, for users who turn
// the autoscaler on.
func ValuesOf(r Rule, prometheus string, wait time.Duration) Values {
	if !r.Scales() {
		r = ByQueue(r.Min, r.Min, wait)
	}
	v := Values{r.Scales(), r.Max, r.Metric.Name, r.Metric.Target, r.behavior, nil}
	if r.Scaler == capacity.KEDA {
		v.KEDA = &KEDAValues{prometheus, r.query(`{{ include "triton.name" . }}`, `namespace="{{ .Release.Namespace }}",`), r.threshold(), polling()}
	}
	return v
}
