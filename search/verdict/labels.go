package verdict

import (
	"fmt"
	"strings"

	"tuner/measure"
	"tuner/search"
)

// Label returns a metric's short name for people: "p99", "queue time", "encoder p99".
func Label(m measure.Metric) string {
	if model, of := m.Split(); model != "" {
		return model + " " + Label(of)
	}
	switch m {
	case measure.LatencyAvg:
		return "mean latency"
	case measure.QueueTime:
		return "queue time"
	case measure.CPU:
		return "CPU use"
	case measure.GPUMemory:
		return "GPU memory"
	case measure.GPUUtilization:
		return "GPU utilization"
	case measure.GPUPower:
		return "GPU power"
	case measure.Energy:
		return "energy per inference"
	}
	if _, ok := m.Quantile(); ok {
		return strings.TrimPrefix(string(m), "latency_")
	}
	if limit, ok := m.Within(); ok {
		return "goodput within " + LimitText(measure.LatencyAvg, limit.Seconds())
	}
	return strings.ReplaceAll(string(m), "_", " ")
}

// ConstraintText prints a constraint: "p99 ≤ 50 ms". A constraint without bounds stands for a
// metric that the objective needs (search.Goal.Unscored).
func ConstraintText(c search.Constraint) string {
	if c.Min == nil && c.Max == nil {
		return Label(c.Metric) + " > 0"
	}
	var parts []string
	if c.Min != nil {
		parts = append(parts, fmt.Sprintf("%s ≥ %s", Label(c.Metric), LimitText(c.Metric, *c.Min)))
	}
	if c.Max != nil {
		parts = append(parts, fmt.Sprintf("%s ≤ %s", Label(c.Metric), LimitText(c.Metric, *c.Max)))
	}
	return strings.Join(parts, " and ")
}

// LimitText prints a bound as the user would write it, without insignificant digits: "50 ms", "7.5
// ms", "2147 MB".
func LimitText(m measure.Metric, value float64) string {
	info, _ := m.Info()
	switch info.Unit {
	case measure.Seconds:
		if value < 1e-3 {
			return fmt.Sprintf("%.4g µs", value*1e6)
		}
		return fmt.Sprintf("%.6g ms", value*1e3)
	case measure.InferPerSecond:
		return fmt.Sprintf("%.6g infer/s", value)
	case measure.Share:
		return fmt.Sprintf("%.6g %%", value*100)
	case measure.Watts:
		return fmt.Sprintf("%.6g W", value)
	case measure.PerMillion:
		return fmt.Sprintf("%.6g per million", value)
	}
	return m.Format(value)
}
