package reference

import (
	"bytes"
	"fmt"
	"strings"

	"tuner/measure"
)

// MetricsPageName is the name of the page of metrics in docs/reference.
const MetricsPageName = "metrics.md"

// MetricsPage describes the metrics in goals, tables and files.
func MetricsPage() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `%s# Metrics

[profile.yaml](profile.md#metrics) says how goals use them. Files such as result.json have values in
these units. Model Analyzer's names are accepted in YAML files, too.

| name | unit | better | Model Analyzer's name | meaning |
|---|---|---|---|---|
`, Generated)
	for _, m := range append(measure.Metrics(), "latency_pN", "goodput_Nms", measure.ErrorRate) {
		info, _ := m.Info()
		about := m.About()
		switch m {
		case "latency_pN":
			info, about = measure.Info{Unit: measure.Seconds}, "Any other percentile: `latency_p75`, `latency_p99.9`."
		case "goodput_Nms":
			info = measure.Info{Unit: measure.InferPerSecond, HigherBetter: true}
			about = "Inferences per second whose request was answered within N milliseconds, as the client sees it: `goodput_50ms`, `goodput_2.5ms`. A request of batch n counts n. Failed requests do not count."
		}
		better := "lower"
		if info.HigherBetter {
			better = "higher"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m, unit(info.Unit), better, orDash(tags(m)), about)
	}
	fmt.Fprintf(&b, "\n%s\n", fold("`error_rate` has a limit of its own, and belongs to no goal: a load at which more than 1 % of the requests fail satisfies nothing. "+
		"[Servers](profile.md#servers) says which metrics a remote server has."))
	return b.Bytes()
}

// unit returns a unit in words.
func unit(u measure.Unit) string {
	switch u {
	case measure.InferPerSecond:
		return "inferences per second"
	case measure.Share:
		return "share, 0 to 1"
	case measure.Joules:
		return "J per inference"
	}
	return string(u)
}

// orDash puts names into code spans. It returns a dash for none.
func orDash(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	return strings.TrimSpace(quoted(names))
}
