package monitoring

import "fmt"

// Rules is a file of Prometheus' rules, and the specification of a PrometheusRule.
type Rules struct {
	Groups []Group `yaml:"groups"`
}

// Group has the rules that Prometheus evaluates together.
type Group struct {
	Name  string  `yaml:"name"`
	Rules []Alert `yaml:"rules"`
}

// Alert is an alerting rule.
type Alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// The names of alerts.
const (
	AlertLoad     = "TritonLoad"
	AlertQueue    = "TritonQueueTime"
	AlertP99      = "TritonLatencyP99"
	AlertFailures = "TritonFailures"
)

// Alerts returns the rules of a server: its load, and queue time, p99 and failures of each model.
func (s Server) Alerts() Rules {
	alert := func(name, expr, summary, description string) Alert {
		return Alert{Alert: name, Expr: expr, For: hold, Labels: map[string]string{"severity": "warning", "deployment": s.Name},
			Annotations: map[string]string{"summary": summary, "description": description}}
	}
	list := []Alert{alert(AlertLoad, fmt.Sprintf("(%s) > %g", s.load(), LoadShare),
		"{{ $labels.instance }} has {{ $value | humanizePercentage }} of the requests that it was tuned for",
		s.tuned()+" More requests than that wait, or take longer than measured: add a server.")}
	for _, m := range s.Models {
		list = append(list,
			alert(AlertQueue, fmt.Sprintf("%s > %s", m.queueTime(), micros(m.QueueLimit())),
				"requests of "+m.Name+" wait {{ $value | humanize }} µs in the queue of {{ $labels.instance }}",
				fmt.Sprintf("The mean over %s is above %v, %d × the time at which another server pays off. Add a server, or look for what slows this one.", window, m.QueueLimit(), queueFactor)),
			alert(AlertP99, fmt.Sprintf("%s > %s", m.percentile("0.99"), micros(m.P99Limit())),
				"the p99 of "+m.Name+" is {{ $value | humanize }} µs in {{ $labels.instance }}",
				fmt.Sprintf("The server's own p99 is above %v, %s. The way from and to the client comes on top.", m.P99Limit(), m.p99Reason())),
			alert(AlertFailures, fmt.Sprintf("%s / (%[1]s + %s) > %g", m.failures(), m.rate(succeeded), failedShare),
				"{{ $value | humanizePercentage }} of the requests of "+m.Name+" fail in {{ $labels.instance }}",
				"The log of the server has the errors, and nv_inference_request_failure the reasons."))
	}
	for i := range list {
		if i > 0 { // the alerts of several models have the same names
			list[i].Labels["model"] = s.Models[(i-1)/alertsOfModel].Name
		}
	}
	return Rules{[]Group{{"tuner-" + s.Name, list}}}
}

// alertsOfModel is the number of alerts of each model.
const alertsOfModel = 3

// tuned says in a sentence for which load a server was tuned.
func (s Server) tuned() string {
	if len(s.Models) == 1 {
		return fmt.Sprintf("It was tuned for %s requests/s.", number(s.Models[0].Requests))
	}
	return "Each model was tuned alone; the shares of all models are added."
}

func (m Model) p99Reason() string {
	if m.Limit > 0 {
		return "the limit for which it was tuned"
	}
	return fmt.Sprintf("%g × the measured one", p99Factor)
}
