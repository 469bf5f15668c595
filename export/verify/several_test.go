package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/export"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/search"
)

// Models that were measured together are under load together, unless another ONNX Runtime serves them here.
func TestTogether(t *testing.T) {
	t.Parallel()
	of := func(name, input, library string, together bool) subject {
		return subject{reported: export.ManifestModel{Name: name, Input: input, Together: together}, build: Build{Library: library}}
	}
	check := func(want string, subjects ...subject) {
		t.Helper()
		var groups []string
		for _, g := range together(subjects) {
			var names []string
			for _, s := range g {
				names = append(names, s.reported.Name)
			}
			groups = append(groups, strings.Join(names, "+"))
		}
		if got := strings.Join(groups, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check("a+b c", of("a", "out/ab", "x", true), of("b", "out/ab", "x", true), of("c", "out/c", "x", false))
	check("a b", of("a", "out/ab", "x", true), of("b", "out/ab", "y", true))
	check("a+b c+d", of("a", "1", "x", true), of("b", "1", "x", true), of("c", "2", "x", true), of("d", "2", "x", true))
	check("a b", of("a", "same", "x", false), of("b", "same", "x", false))
}

// Models have the processors of their campaign on its machine alone: others have other processors.
func TestPoliciesOfTheMeasuredMachine(t *testing.T) {
	t.Parallel()
	own := func(id int) isolation.Policy {
		return isolation.NewPolicy([]hostinfo.Core{{ID: id}}, false)
	}
	of := func(machine string, policies ...isolation.Policy) subject {
		return subject{reported: export.ManifestModel{Machine: machine}, policies: policies}
	}
	check := func(group []subject, want ...isolation.Policy) {
		t.Helper()
		v := verifier{options: Options{Fingerprint: "here"}}
		if diff := cmp.Diff(want, v.policies(group)); diff != "" {
			t.Errorf("policies (-want +got):\n%s", diff)
		}
	}
	check([]subject{of("here", own(0)), of("here", own(1))}, own(0), own(1))
	check([]subject{of("here"), of("here")})
	check([]subject{of("there", own(0)), of("there", own(1))})
	check([]subject{of("", own(0))})
}

// A limit is missed if the whole interval of its figure is beyond it, and judged where figures compare.
func TestLimits(t *testing.T) {
	t.Parallel()
	check := func(machine string, max float64, status Status, text string) {
		t.Helper()
		v := verifier{options: Options{Fingerprint: "here"}}
		s := subject{build: Build{Name: "cpu@1.31.1"}, reported: export.ManifestModel{Machine: machine, Runtime: "cpu@1.31.1",
			Limits: []search.Constraint{{Metric: measure.LatencyP99, Max: &max}}}}
		latencies := make([]time.Duration, 1000) // all of 20 ms
		for i := range latencies {
			latencies[i] = 20 * time.Millisecond
		}
		w := measure.Window{Duration: time.Second}
		for range 10 {
			w.Sub = append(w.Sub, measure.SubWindow{Requests: len(latencies), Latency: measure.NewHistogram(latencies)})
			w.Requests += len(latencies)
		}
		w.Inferences = w.Requests
		got, why := v.limits(s, measure.Measurement{Windows: []measure.Window{w}})
		if got != status || !strings.Contains(why, text) {
			t.Errorf("limit %g on %q: %s, %q; want %s, %q", max, machine, got, why, status, text)
		}
	}
	check("here", 0.03, Passed, "p99 ≤ 30 ms: 20.0 ms")
	check("here", 0.01, Failed, ", missed")
	check("there", 0.01, Skipped, "on another machine: not judged")
}
