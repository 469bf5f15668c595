package perf

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/measure"
)

// bottlenecks are the flags of a load generator that was too slow for the load.
var bottlenecks = []measure.Flag{measure.FlagClientCPU, measure.FlagLate, measure.FlagSendDelay}

// warnings returns warnings about a level for people. unread is the error of reading the server's
// statistics.
func (s Settings) warnings(l Level, unread error) []string {
	var list []string
	warn := func(text string) {
		if text != "" {
			list = append(list, fmt.Sprintf("%s: %s", l.Load, text))
		}
	}
	warn(failures(l.Measurement))
	warn(drops(l.Measurement))
	if l.Resent > 0 {
		warn(fmt.Sprintf("requests that met a connection which the server had closed, and were sent once more: %d", l.Resent))
	}
	warn(s.doubt(l))
	warn(bottleneck(l.Measurement))
	warn(strings.TrimSuffix(s.disturbance(l.Measurement), "."))
	if l.Unfinished > 0 && slices.Contains(l.Measurement.Flags(), measure.FlagBacklog) {
		warn(fmt.Sprintf("%d requests were due and not answered at the end, the first for %v: no latency includes them",
			l.Unfinished, l.Waited.Round(time.Millisecond)))
	}
	switch sent, served := requests(l.Measurement); {
	case unread != nil:
		warn(fmt.Sprintf("the server's statistics are not complete: %v", unread))
	case s.Statistics && sent > 0 && served == 0:
		warn("the server's statistics do not count the requests")
	}
	return list
}

// requests returns the completed requests by the client's count and by the server's statistics.
func requests(m measure.Measurement) (completed, served int) {
	for _, w := range m.Windows {
		completed += w.Requests
		served += w.Server.Requests
	}
	return completed, served
}

// failures describes the failed requests; "" if there are none.
func failures(m measure.Measurement) string {
	failed := m.Errors()
	if failed == 0 {
		return ""
	}
	completed, _ := requests(m)
	first := slices.IndexFunc(m.Windows, func(w measure.Window) bool { return w.Errors > 0 })
	return fmt.Sprintf("%d of %d requests failed (%.3g %%), the first with: %s", failed, failed+completed,
		100*float64(failed)/float64(failed+completed), m.Windows[first].FirstError)
}

// drops describes the requests that were never sent; "" if there are none.
func drops(m measure.Measurement) string {
	dropped, due := m.Dropped(), 0
	if dropped == 0 {
		return ""
	}
	for _, w := range m.Windows {
		due += w.Scheduled
	}
	return fmt.Sprintf("%d of %d requests were not sent (%.3g %%), since too many were in flight: no latency includes them",
		dropped, due, 100*float64(dropped)/float64(due))
}

// doubt names the goal of the stop rule that was not reached; "" if it was.
func (s Settings) doubt(l Level) string {
	switch l.Verdict {
	case VerdictBudget:
		return fmt.Sprintf("the precision of %.3g %% was not reached within %v: %s", 100*s.Stop.Precision, s.Stop.Budget, s.reached(l.Measurement))
	case VerdictUnstable:
		return fmt.Sprintf("the last %d of %d windows differ by more than %g %%", agreeing, s.Stop.Trials, 100*s.Stop.Stability)
	case VerdictUnjudged:
		return fmt.Sprintf("windows: %d, too few to tell whether the figures are stable: %d are needed", s.Stop.Trials, agreeing)
	}
	return ""
}

// reached describes the precision that was reached.
func (s Settings) reached(m measure.Measurement) string {
	latency, served := s.Latency(m)
	if !served {
		return "nothing was answered"
	}
	text := fmt.Sprintf("latency ± %.3g %%", 100*relativeWidth(latency))
	if !s.isBounded(m) {
		text = "too few requests for an upper bound of the latency"
	}
	if s.Mode != ModeConcurrency { // the schedule sets the throughput
		return text
	}
	throughput, _ := m.Estimate(measure.Throughput)
	return fmt.Sprintf("throughput ± %.3g %%, %s", 100*relativeWidth(throughput), text)
}

// bottleneck warns if the load generator may limit the figures; "" if not.
func bottleneck(m measure.Measurement) string {
	var slow []string
	for _, f := range m.Flags() {
		if slices.Contains(bottlenecks, f) {
			slow = append(slow, string(f))
		}
	}
	if len(slow) == 0 {
		return ""
	}
	return fmt.Sprintf("the load generator was a bottleneck itself (%s): the figures are not the server's alone", strings.Join(slow, ", "))
}
