//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tuner/fleet/results"
	"tuner/internal/exit"
)

// kind is a type of machine as its user thinks of it.
type kind struct {
	name   string
	cpus   []int
	hourly float64
}

// One core costs a little less than two. Each model is served at less cost by two, unless the second core brings next to nothing.
var kinds = []kind{{"narrow", []int{0}, 0.36}, {"wide", []int{0, 1}, 0.40}}

// A fleet of two models on two types answers what eight single campaigns say: each model on each type by itself, once before the fleet
// and once after it, with the costs computed by hand. Nothing else of this test measures meanwhile: the second type has its node when
// the first one is done.
func (g *ground) testFleetIsItsSingleCampaigns(t *testing.T) {
	models := []string{"mlp", "cnn"}
	u := g.newUser(t, `name: q3
models:
  mlp: {profile: plain.yaml, from: pvc://models/mlp.onnx}
  cnn: {profile: plain.yaml, from: pvc://models/cnn.onnx}
machines:
  narrow: {select: {tuner.dev/type: narrow}, cpus: 1, memory: 1Gi, price: {per_hour: 0.36}}
  wide: {select: {tuner.dev/type: wide}, cpus: 2, memory: 2Gi, price: {per_hour: 0.80}, share: 1/2}
constraints: {latency_p99: {max: 50ms}}
search: {budget: 12s}
`)
	costs := map[string][]float64{} // of a million inferences, by model and type
	measure := func() {
		for _, model := range models {
			for _, k := range kinds {
				costs[model+k.name] = append(costs[model+k.name], k.hourly/(u.alone(t, model, k)*3600)*1e6)
			}
		}
	}
	measure()
	g.node(t, "narrow-a", kinds[0].cpus, map[string]string{"tuner.dev/type": "narrow"})
	r := u.start(t, "fleet", "run", "--format", "json")
	for _, model := range models {
		r.says(t, "narrow "+model+": done")
	}
	g.node(t, "wide-a", kinds[1].cpus, map[string]string{"tuner.dev/type": "wide"})
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	measure()
	var ranking results.Ranking
	if err := json.Unmarshal([]byte(r.out.String()), &ranking); err != nil || len(ranking.Models) != len(models) {
		t.Fatalf("%v\n%s", err, &r.out)
	}
	for _, m := range ranking.Models {
		agrees(t, m, costs[m.Model+"narrow"], costs[m.Model+"wide"])
	}
}

// agrees fails the test if a model's answer contradicts its single campaigns on the two types: the fleet tells the types apart and the
// singles' mean says the opposite, or both singles of one type cost less than both of the other and the fleet says the opposite.
func agrees(t *testing.T, m results.ModelAnswer, narrow, wide []float64) {
	t.Helper()
	fleet := map[string]float64{}
	for _, x := range m.Types {
		if x.Cost == nil {
			t.Fatalf("%s on %s has no answer: %q", m.Model, x.Machine, m.Summary)
		}
		fleet[x.Machine] = x.Cost.Value
	}
	alone := math.Sqrt(wide[0] * wide[1] / (narrow[0] * narrow[1])) // the factor of wide's cost to narrow's
	t.Logf("%s: cost on narrow %.4f, by itself %.4f and %.4f; on wide %.4f, by itself %.4f and %.4f; wide over narrow %.3f, by itself %.3f",
		m.Model, fleet["narrow"], narrow[0], narrow[1], fleet["wide"], wide[0], wide[1], fleet["wide"]/fleet["narrow"], alone)
	t.Logf("%s: %s", m.Model, strings.Join(m.Summary, " "))
	cheapest := map[bool]string{true: "narrow", false: "wide"}[alone > 1]
	isClear := max(narrow[0], narrow[1]) < min(wide[0], wide[1]) || max(wide[0], wide[1]) < min(narrow[0], narrow[1])
	first, second := m.Types[0], m.Types[1]
	if first.Machine != cheapest && (isClear || !second.Tied) {
		t.Errorf("%s: the fleet says %q, and single campaigns say %s", m.Model, m.Summary, cheapest)
	}
	if want := second.Cost.Value / first.Cost.Value; math.Abs(second.ToBest.Value/want-1) > 5e-6 { // six digits
		t.Errorf("%s: %+v, want %g", m.Model, second.ToBest, want)
	}
}

// alone tunes a model on some cores as somebody without a cluster does. It returns the throughput of the best configuration.
func (u *user) alone(t *testing.T, model string, k kind) float64 {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "profile.yaml"), "model: "+filepath.Join(u.models, model+".onnx")+
		"\nconstraints: {latency_p99: {max: 50ms}}\nsearch: {budget: 12s}\n")
	cores := strings.Trim(strings.ReplaceAll(fmt.Sprint(k.cpus), " ", ","), "[]")
	cmd := exec.CommandContext(t.Context(), "taskset", "-c", cores, u.tuner, "profile", "-f", "profile.yaml", "-o", "out")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return u.best(t, filepath.Join(dir, "out"))
}
