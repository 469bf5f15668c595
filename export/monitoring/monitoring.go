// Package monitoring makes what watches a deployment: alerts for Prometheus and a dashboard for
// Grafana. Package export gives it the measured figures of each model, and writes the files.
//
// Thresholds follow from these figures. Metrics are those that Triton and `tuner serve` both have.
// The package reads nothing and contacts nothing.
package monitoring

import (
	"fmt"
	"strings"
	"time"
	"tuner/internal/words"
)

// Arguments are those that a server needs beside its own: Triton has the latencies' percentiles only
// with summaries.
func Arguments() []string { return []string{"--metrics-config=summary_latencies=true"} }

// Server is a deployed server with its models.
type Server struct {
	Name    string // of the deployment, a DNS label
	Models  []Model
	HasGPUs bool
}

// Model has the figures of one model at its tuned load. Its name has only letters, digits, _, -
// and dots.
type Model struct {
	Name     string
	Requests float64       // requests per second of one server
	Queue    time.Duration // mean time in the queue at which a further server pays off
	P99      time.Duration // measured at the client
	Limit    time.Duration // on the p99, in the question of the campaign; 0: none
	// Stages are the models that a pipeline calls, in whose queues its requests wait; empty for other models. Their
	// names have only letters, digits, _ and -
	Stages []string
}

// Factors between measured figures and thresholds.
const (
	// queueFactor: the autoscaler keeps the queue at its target, so a queue twice as long means that
	// it cannot
	queueFactor = 2
	// LoadShare: above this share of the tuned load a server has no reserve for bursts
	LoadShare = 0.9
	// p99Factor: the p99 of a window differs between launches and machines; it is for models without
	// a limit
	p99Factor = 1.5
	// failedShare is the share of failed requests that every campaign tolerates (search.MostErrors)
	failedShare = 0.01
)

// Times of the rules. A rate over five minutes has two samples even where Prometheus scrapes once a
// minute. A state that holds for ten minutes is longer than the start of a further server.
const (
	window = "5m"
	hold   = "10m"
)

// QueueLimit is the mean time in the queue above which a model's alert fires.
func (m Model) QueueLimit() time.Duration { return queueFactor * m.Queue }

// P99Limit is the server's p99 above which a model's alert fires.
func (m Model) P99Limit() time.Duration {
	if m.Limit > 0 {
		return m.Limit
	}
	return time.Duration(p99Factor * float64(m.P99)).Round(time.Microsecond)
}

// Labels that Triton's metrics have beside those of the scraped server. A model with instances on
// GPUs has a series for each of them.
const series = "version, gpu_uuid"

// selector returns the labels that select a model's series.
func (m Model) selector(more ...string) string {
	return "{" + strings.Join(append([]string{fmt.Sprintf("model=%q", m.Name)}, more...), ",") + "}"
}

// rate returns the increase of a counter per second, for each server.
func (m Model) rate(counter string, more ...string) string {
	return fmt.Sprintf("sum without (%s) (rate(%s%s[%s]))", series, counter, m.selector(more...), window)
}

const (
	succeeded = "nv_inference_request_success"
	failed    = "nv_inference_request_failure"
)

// mean returns the mean of a duration per request, in microseconds. It is NaN without requests, and
// no comparison with NaN holds.
func (m Model) mean(counter string, more ...string) string {
	return m.rate(counter, more...) + " / " + m.rate(succeeded, more...)
}

// queueTime returns the mean time of a request in queues, in microseconds: of a pipeline's, in its own and in those
// of its stages.
func (m Model) queueTime(more ...string) string {
	const waited = "nv_inference_queue_duration_us"
	if len(m.Stages) == 0 {
		return m.mean(waited, more...)
	}
	sum := func(counter, models string) string {
		return fmt.Sprintf("sum without (model, %s) (rate(%s{%s}[%s]))", series, counter, strings.Join(append([]string{models}, more...), ","), window)
	}
	all := fmt.Sprintf("model=~%q", strings.Join(append([]string{m.Name}, m.Stages...), "|"))
	return sum(waited, all) + " / " + sum(succeeded, fmt.Sprintf("model=%q", m.Name))
}

// failures returns failed requests per second for all reasons.
func (m Model) failures(more ...string) string {
	return fmt.Sprintf("sum without (%s, reason) (rate(%s%s[%s]))", series, failed, m.selector(more...), window)
}

// percentile returns a percentile of the time of requests in the server, in microseconds.
func (m Model) percentile(quantile string, more ...string) string {
	return fmt.Sprintf("max without (%s) (nv_inference_request_summary_us%s)", series, m.selector(append([]string{fmt.Sprintf("quantile=%q", quantile)}, more...)...))
}

// load returns the load of each server as a share of the tuned one. Each model was measured alone,
// so the shares of several add up.
func (s Server) load(more ...string) string {
	var shares []string
	for _, m := range s.Models {
		shares = append(shares, fmt.Sprintf("%s / %s", m.rate(succeeded, more...), number(m.Requests)))
	}
	if len(shares) == 1 {
		return shares[0]
	}
	return fmt.Sprintf("sum without (model) (%s)", strings.Join(shares, " or "))
}

// number prints a threshold with the digits that a measurement has.
func number(v float64) string { return words.Digits(v, 4) }

func micros(d time.Duration) string { return fmt.Sprint(d.Microseconds()) }
