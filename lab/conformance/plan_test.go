//go:build conformance

package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tuner/capacity"
	"tuner/capacity/output"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// TestPlan opens plan.html in a real browser, from disk. testdata/plan.mjs has the checks. TUNER_PICTURES
// names a folder for screenshots.
func TestPlan(t *testing.T) {
	t.Run("two types", func(t *testing.T) {
		t.Parallel()
		inBrowser(t, "plan.mjs", planOf(t, map[string]float64{"c7i": 0.357, "c7g": 0.29}, ""), "ordinary")
	})
	t.Run("without prices", func(t *testing.T) {
		t.Parallel()
		inBrowser(t, "plan.mjs", planOf(t, map[string]float64{"c7i": 0}, ""), "unpriced")
	})
	t.Run("hostile names", func(t *testing.T) {
		t.Parallel()
		const hostile = `</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>'"<!--`
		inBrowser(t, "plan.mjs", planOf(t, map[string]float64{hostile: 1}, hostile), "hostile")
	})
}

// planOf plans for a day with the figures of MiniLM on types of machines, by their prices, and writes the page
// into a new folder. mark stands before the names of the model and of its configurations.
func planOf(t *testing.T, prices map[string]float64, mark string) string {
	t.Helper()
	const file = "../testdata/plan/result.json"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := result.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	day, err := traffic.Read("peak 4000/s, office hours", 1)
	if err != nil {
		t.Fatal(err)
	}
	day.Requests, day.Text = day.Requests[:traffic.PerDay], mark+day.Text
	q := capacity.Question{
		Traffic: day, Limit: 50 * time.Millisecond, Share: 0.99, Balancer: queuesim.Random, Scaler: capacity.HPA, Startup: -1, Window: time.Minute,
		Min: 1, Max: 100, Seed: 1,
	}
	var replicas []replica.Replica
	for kind, price := range prices {
		r.Goal.Price = price
		list, _, err := capacity.Replicas(kind, r, q.Limit, q.Share, q.Seed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			list[i].Configuration = mark + list[i].Configuration
		}
		replicas = append(replicas, list...)
	}
	p, err := capacity.Find(q, mark+r.Model, replicas)
	if err != nil {
		t.Fatal(err)
	}
	around, err := capacity.WhatIfs(q, replicas)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var b bytes.Buffer
	if err := output.WriteHTML(&b, p, around); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "plan.html"), b.Bytes())
	return dir
}
