package report

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/search"
	"tuner/spec"
)

// BenchmarkAnalyze is `tuner analyze` without a terminal for a campaign of 10,000 candidates with a trial of two windows each: reading the journal,
// ranking, and writing every format but the repository. Peak-MB is the most memory that the heap had from the system.
func BenchmarkAnalyze(b *testing.B) {
	const candidates = 10_000
	journal := b.TempDir()
	profile := strings.Replace(analyzetest.Profile, "max_batch_size: [4, 8, 16]", "max_batch_size: {min: 1, max: 500}", 1)
	profile = strings.Replace(profile, "instance_count: [1, 2]", "instance_count: {min: 1, max: 10}", 1)
	builder := analyzetest.New(b, profile).Measure(search.Candidate{}, 8)
	for i := range candidates {
		builder.Measure(analyzetest.Candidate(1+i%10, 1+i/10%2, 1+i/20), 8)
	}
	builder.End("the space is exhausted", false).WriteJournal(journal)
	for _, formats := range [][]string{{spec.FormatCSV, spec.FormatJUnit, spec.FormatConfig}, {spec.FormatPNG}} {
		b.Run(fmt.Sprint(formats), func(b *testing.B) {
			for b.Loop() {
				c, err := analyze.Replay(journal)
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
				if _, err := WriteAll(b.TempDir(), r, formats); err != nil {
					b.Fatal(err)
				}
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapSys-m.HeapReleased)/1e6, "peak-MB")
		})
	}
}
