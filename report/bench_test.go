//go:build unix

package report_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/profile/journal"
	"tuner/report/formats"
	"tuner/search"
	"tuner/spec"
)

// largeJournal writes the journal of a grid campaign of 10,000 candidates with a trial of two
// windows each. The measurements repeat after a while. Encoding separate histograms for each would
// take longer than the benchmark itself.
func largeJournal(b *testing.B, candidates int) (dir string) {
	b.Helper()
	dir = b.TempDir()
	profile := strings.Replace(analyzetest.Profile, "max_batch_size: [4, 8, 16]", "max_batch_size: {min: 1, max: 500}", 1)
	profile = strings.Replace(profile, "instance_count: [1, 2]", "instance_count: {min: 1, max: 10}", 1)
	builder := analyzetest.New(b, profile).Measure(search.Candidate{}, 8)
	for i := range 200 {
		builder.Measure(analyzetest.Candidate(1+i%10, 1+i/10%2, 1+i/20), 8)
	}
	c := builder.Campaign()
	var texts []string
	for _, e := range c.Events {
		text, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	settings := func(c search.Candidate) string {
		text, err := json.Marshal(c)
		if err != nil {
			b.Fatal(err)
		}
		return string(text)
	}
	var lines strings.Builder
	seq := 0
	line := func(kind, data string) {
		seq++
		fmt.Fprintf(&lines, "{\"seq\":%d,\"kind\":%q,\"data\":%s}\n", seq, kind, data)
	}
	header, err := json.Marshal(c.Header)
	if err != nil {
		b.Fatal(err)
	}
	line(journal.KindHeader, string(header))
	line(journal.KindSession, "{}")
	line(journal.KindTrial, texts[0])
	for i := range candidates {
		like := 1 + i%200
		line(journal.KindTrial, strings.Replace(texts[like], settings(c.Events[like].Trial.Candidate), settings(analyzetest.Candidate(1+i%10, 1+i/10%2, 1+i/20)), 1))
	}
	// Append would sync each line, which is slow
	if err := os.WriteFile(filepath.Join(dir, journal.FileName), journal.Reseal([]byte(lines.String())), 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkAnalyze measures `tuner analyze` of a campaign of 10,000 candidates, with one format in
// addition to report.md and result.json. cpu-s is the CPU time of all cores. heap-MB is the memory
// that the heap has from the system at the end.
func BenchmarkAnalyze(b *testing.B) {
	const candidates = 10_000
	dir := largeJournal(b, candidates)
	for _, names := range [][]string{
		{"csv", "junit", spec.FormatConfig},
		{"html"},
		{"png"},
		{"csv", "png", "html", "junit", spec.FormatConfig},
	} {
		b.Run(fmt.Sprint(names), func(b *testing.B) {
			debug.FreeOSMemory() // frees the memory of earlier steps
			begun := cpuTime(b)
			for b.Loop() {
				c, err := analyze.Replay(dir)
				if err != nil {
					b.Fatal(err)
				}
				r, err := analyze.Analyze(c, analyze.Options{Top: 3})
				if err != nil {
					b.Fatal(err)
				}
				if len(r.Configs) != candidates+1 {
					b.Fatalf("%d configurations", len(r.Configs))
				}
				if _, err := formats.All().WriteAll(b.TempDir(), r, names); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuTime(b)-begun).Seconds()/float64(b.N), "cpu-s")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapSys-m.HeapReleased)/1e6, "heap-MB")
		})
	}
}

// cpuTime returns the CPU time of the process, on all cores.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
