package floors

import (
	"regexp"
	"testing"
)

// wallClock lists the files that may use a time without its monotonic reading, or a time from the
// file system, each with the reason. All decisions and measurements of the program use the
// monotonic clock, which nobody can set.
var wallClock = map[string]string{
	"profile/journal/journal.go":         "when a record was written, for people",
	"profile/preparation/preparation.go": "when a campaign began, for people and for the order of earlier campaigns",
	"profile/identity.go":                "whether a file's time of change is the same: times are compared with each other only",
	"engine/repository/repository.go":    "whether a file's time of change is the same",
	"engine/repository/scan.go":          "whether a file's time of change is the same",
	"engine/statistics/statistics.go":    "Triton's last_inference is the wall clock's",
	"fleet/worker/worker.go":             "when a campaign ended, for people",
	"gate/saved.go":                      "when a job ran, for people",
	"measure/arrivals/log.go":            "time stamps of recorded requests: their distances only",
	"measure/arrivals/read.go":           "time stamps of recorded requests: their distances only",
	"perf/output/export.go":              "perf_analyzer's timestamps are the wall clock's: its begin, and monotonic distances from it",
	"perf/paflags/check.go":              "a seed",
	"runner/target/process.go":           "a deadline in the past ends every wait",
	"runner/wire/frames.go":              "a deadline in the past ends every wait",
	"runner/wire/conn.go":                "a deadline in the past ends every wait",
	"internal/testserver/queue.go":       "a wall clock for the tests of clients",
}

// Only the listed files use the wall clock. Therefore setting the clock changes no decision and no
// duration.
func TestWallClock(t *testing.T) {
	t.Parallel()
	reads := regexp.MustCompile(`\btime\.Unix(?:Milli|Micro)?\(|\b[nN]ow(?:\(\))?\.(?:UTC|Local|Unix\w*|Round|In)\(|\.Unix(?:Nano|Milli|Micro)?\(\)|\.ModTime\(\)|now\.UTC\(\)`)
	found := map[string]bool{}
	for file, text := range product(t) {
		if !reads.Match(text) {
			continue
		}
		found[file] = true
		if wallClock[file] == "" {
			t.Errorf("%s: %s looks at the wall clock; use the monotonic one, or add the file with its reason", file, reads.Find(text))
		}
	}
	for file := range wallClock {
		if !found[file] {
			t.Errorf("%s is listed and does not look at the wall clock", file)
		}
	}
}
