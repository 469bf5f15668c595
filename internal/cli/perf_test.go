package cli

import (
	"errors"
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/measure"
	"tuner/perf"
)

// The exit code shows the most important of several failures.
func TestPerfVerdict(t *testing.T) {
	t.Parallel()
	good := perf.Level{Measurement: measure.Measurement{Windows: []measure.Window{{Requests: 9}}}, Verdict: perf.VerdictPrecise}
	erring, unstable, short, dropping := good, good, good, good
	dropping.Measurement = measure.Measurement{Windows: []measure.Window{{Scheduled: 10, Requests: 9, Dropped: 1}}}
	beyond := dropping
	beyond.Limit = perf.LimitMissed
	erring.Measurement = measure.Measurement{Windows: []measure.Window{{Requests: 9, Errors: 1}}}
	unstable.Verdict, short.Verdict = perf.VerdictUnstable, perf.VerdictBudget
	limited := perf.Settings{LatencyLimit: 1}
	broken := errors.New("the server died")
	for name, c := range map[string]struct {
		report perf.Report
		err    error
		code   int
		text   string
	}{
		"good":          {perf.Report{Levels: []perf.Level{good, short}, Best: -1}, nil, exit.OK, ""},
		"errors":        {perf.Report{Levels: []perf.Level{good, erring}, Best: -1, Settings: limited}, nil, exit.Failure, "1 requests failed"},
		"drops":         {perf.Report{Levels: []perf.Level{good, dropping}, Best: 0, Settings: limited}, nil, exit.Failure, "1 requests were not sent"},
		"drops beyond":  {perf.Report{Levels: []perf.Level{good, beyond}, Best: 0, Settings: limited}, nil, exit.OK, ""},
		"drops at once": {perf.Report{Levels: []perf.Level{beyond}, Best: -1, Settings: limited}, nil, exit.Infeasible, "no level is within"},
		"unstable":      {perf.Report{Levels: []perf.Level{unstable, good}, Best: -1, Settings: limited}, nil, exit.Failure, "not stable: 1 of 2"},
		"none in limit": {perf.Report{Levels: []perf.Level{good}, Best: -1, Settings: limited}, nil, exit.Infeasible, "no level is within"},
		"in the limit":  {perf.Report{Levels: []perf.Level{good}, Best: 0, Settings: limited}, nil, exit.OK, ""},
		"broken":        {perf.Report{Levels: []perf.Level{erring}, Best: -1, Settings: limited}, broken, exit.Failure, "the server died"},
		"interrupted":   {perf.Report{Levels: []perf.Level{erring}, Best: -1, Interrupted: true}, broken, exit.Interrupted, "interrupted"},
	} {
		err := perfVerdict(c.report, c.err)
		if exit.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v (%d), want %d and %q", name, err, exit.CodeOf(err), c.code, c.text)
		}
	}
}
