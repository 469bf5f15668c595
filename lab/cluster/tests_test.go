//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tuner/fleet/cluster"
	"tuner/fleet/record"
	"tuner/fleet/results"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/profile/journal"
)

// TestFleets runs fleets on a real control plane with real campaigns. Each test is one of the
// acceptance tests of docs/design/fleet.md, which says where the others are.
func TestFleets(t *testing.T) {
	g := newGround(t)
	t.Run("F2 two models on two types", g.testTwoModelsOnTwoTypes)
	t.Run("F2 a fleet is its single campaigns", g.testFleetIsItsSingleCampaigns)
	t.Run("F3 a worker is killed", func(t *testing.T) {
		for _, at := range points {
			t.Run(at.name, func(t *testing.T) {
				t.Parallel()
				g.testWorkerIsKilledAt(t, at)
			})
		}
	})
	t.Run("F3 a worker is killed after its result", g.testWorkerIsKilledAfterItsResult)
	t.Run("F5 a node is cut off", g.testNodeIsCutOff)
	t.Run("F5 two attempts deliver", g.testTwoAttemptsDeliver)
	t.Run("F6 the API server is away", g.testAPIServerIsAway)
	t.Run("F7 the user's command is killed at its calls", g.testCommandIsKilledAtItsCalls)
	t.Run("F7 the user's command is killed at its lines", g.testCommandIsKilledAtItsLines)
	t.Run("F8 what cannot work is not tried again", g.testRejected)
	t.Run("F9 a pod is evicted", g.testEvicted)
	t.Run("F10 a worker's token", g.testToken)
	t.Run("F12 a type without nodes", g.testNoNodes)
	t.Run("F15 a noisy neighbour", g.testNoisyNeighbour)
	t.Run("F16 a quota below the cores", g.testQuota)
	t.Run("F18 as many campaigns as a fleet has", g.testMany)
	t.Run("delete", g.testDelete)
	t.Run("machines and a second stage", g.testConfirm)
	t.Run("F14 a hopeless type ends early", g.testHopeless)
	t.Run("F4 a node is lost", g.testNodeIsLost) // last: it takes a node away
}

// Four journals, each of one node. The ranking agrees with the four campaigns one by one, and its costs
// follow from their throughputs by hand.
func (g *ground) testTwoModelsOnTwoTypes(t *testing.T) {
	u := g.newUser(t, `name: q3
models:
  mlp: {profile: plain.yaml, from: pvc://models/mlp.onnx, sha256: `+digestOf(t, filepath.Join(g.models, "mlp.onnx"))+`}
  cnn: {profile: plain.yaml, from: pvc://models/cnn.onnx, sha256: `+digestOf(t, filepath.Join(g.models, "cnn.onnx"))+`}
machines:
  one: {select: {tuner.dev/type: one}, cpus: 1, memory: 1Gi, price: {per_hour: 0.36}}
  two: {select: {tuner.dev/type: two}, cpus: 2, memory: 2Gi, price: {per_hour: 0.50}, share: 1/2}
constraints: {latency_p99: {max: 50ms}}
search: {budget: 20s}
`)
	out, messages, code := u.run(t, "fleet", "run", "--format", "json")
	if code != exit.OK {
		t.Fatalf("%d\n%s", code, messages)
	}
	var ranking results.Ranking
	if err := json.Unmarshal([]byte(out), &ranking); err != nil {
		t.Fatal(err)
	}
	list := u.collected(t)
	if len(list.Campaigns) != 4 || list.Missing() != 0 || len(ranking.Models) != 2 {
		t.Fatalf("%+v\n%s", list, out)
	}
	hourly := map[string]float64{"one": 0.36, "two": 0.25} // half of the node
	for _, c := range list.Campaigns {
		if n := c.Result.Placement.Node; !strings.HasPrefix(n, c.Machine+"-") || strings.Count(u.journal(t, c), `"`+n+`"`) == 0 {
			t.Errorf("%s on %s ran on %s", c.Model, c.Machine, n)
		}
		throughput := u.best(t, u.folder(c))
		row := rowOf(ranking, c)
		want := hourly[c.Machine] / (throughput * 3600) * 1e6
		// Results for programs have six significant digits.
		if row == nil || row.Cost == nil || math.Abs(row.Cost.Value/want-1) > 5e-6 {
			t.Errorf("%s on %s: %+v, want a cost of %g", c.Model, c.Machine, row, want)
		}
	}
	for _, m := range ranking.Models {
		if !m.ByCost || len(m.Rows) != 2 || m.Rows[0].Cost.Value > m.Rows[1].Cost.Value || !strings.HasPrefix(m.Summary[0], "Cheapest: "+m.Rows[0].Machine) {
			t.Errorf("%+v", m)
		}
	}
}

// best returns the throughput of the best configuration that `tuner analyze` finds in the campaign of a folder. It
// cannot write a repository where the model's file is not.
func (u *user) best(t *testing.T, folder string) float64 {
	t.Helper()
	out, messages, code := u.run(t, "analyze", "--input", folder, "--format", "json")
	var result struct {
		Configurations []struct {
			BestLoad measure.Load `json:"best_load"`
			Points   []struct {
				Load   measure.Load `json:"load"`
				Values map[string]struct {
					Value float64 `json:"value"`
				} `json:"values"`
			} `json:"points"`
		} `json:"configurations"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != exit.OK && code != exit.Usage || len(result.Configurations) == 0 {
		t.Fatalf("%v, %d: %s\n%.2000s", err, code, messages, out)
	}
	for _, p := range result.Configurations[0].Points {
		if reflect.DeepEqual(p.Load, result.Configurations[0].BestLoad) {
			return p.Values["throughput"].Value
		}
	}
	t.Fatalf("the best has no point at its load:\n%.2000s", out)
	return 0
}

func rowOf(r results.Ranking, c results.Campaign) *results.Row {
	for _, m := range r.Models {
		for _, row := range m.Rows {
			if m.Model == c.Model && row.Machine == c.Machine && row.Repeat == c.Repeat {
				return &row
			}
		}
	}
	return nil
}

// isWhole fails the test unless the user's only campaign has a journal of one session without a gap.
func (u *user) isWhole(t *testing.T) {
	t.Helper()
	c := u.collected(t).Campaigns[0]
	_, records, err := journal.Read(u.folder(c)) // it refuses gaps
	if err != nil {
		t.Fatal(err)
	}
	sessions := 0
	for _, r := range records {
		if r.Kind == journal.KindSession {
			sessions++
		}
	}
	if sessions != 1 {
		t.Errorf("%d sessions", sessions)
	}
	u.best(t, u.folder(c))
}

// A worker that dies between its result and its end has delivered. What is tried again ends at once.
func (g *ground) testWorkerIsKilledAfterItsResult(t *testing.T) {
	for _, n := range []*Node{g.first, g.other} {
		n.Wrap("/bin/sh", "-c", `"$@"; kill -9 $$`, "sh")
		defer n.Wrap()
	}
	u := g.newUser(t, oneModel)
	if _, messages, code := u.run(t, "fleet", "run"); code != exit.OK {
		t.Fatalf("%d\n%s", code, messages)
	}
	var again []*process
	u.await(t, "a second attempt", func() bool {
		again = append(g.first.of(u.namespace), g.other.of(u.namespace)...)
		return len(again) >= 2 && again[0].isOver() && again[1].isOver()
	})
	for _, p := range again {
		if p.code != 137 {
			t.Errorf("it ended with %d", p.code)
		}
	}
	if (again[0].journal() == "") == (again[1].journal() == "") {
		t.Error("the second attempt has measured, although there was a result")
	}
	u.isWhole(t)
}

// A pod on a node that is cut off delivers, and its result counts, the same in every collect.
func (g *ground) testNodeIsCutOff(t *testing.T) {
	u := g.newUser(t, oneModel)
	r := u.start(t, "fleet", "run")
	node, p := u.podOf(t, g.first, g.other)
	u.measuring(t, p)
	node.CutOff()
	defer func() {
		if err := node.Connect(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	c := u.collected(t).Campaigns[0]
	if u.journal(t, c) != p.journal() || c.Result.Placement.Node != node.name {
		t.Errorf("the collected journal is not that of the pod: %+v", c)
	}
	was := u.journal(t, c)
	if _, messages, code := u.run(t, "fleet", "collect"); code != exit.OK || u.journal(t, c) != was {
		t.Errorf("%d: %s", code, messages)
	}
}

// While the API server is away, the campaign measures on, and delivers afterwards.
func (g *ground) testAPIServerIsAway(t *testing.T) {
	u := g.newUser(t, oneModel)
	r := u.start(t, "fleet", "run")
	_, p := u.podOf(t, g.first, g.other)
	u.measuring(t, p)
	if err := g.Outage(t.Context(), 40*time.Second); err != nil { // longer than the rest of the campaign
		t.Fatal(err)
	}
	if code := r.wait(t); code != exit.OK || !strings.Contains(r.messages.String(), "asking again every") || !strings.Contains(r.messages.String(), "the cluster answers again") {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	c := u.collected(t).Campaigns[0]
	if u.journal(t, c) != p.journal() || len(c.Discarded) > 0 || u.states(t)[0].Attempts != 1 {
		t.Errorf("%+v", c)
	}
}

// A model with another digest is not tried again. That nothing keeps the limits is a result.
func (g *ground) testRejected(t *testing.T) {
	u := g.newUser(t, `name: q3
models:
  wrong: {profile: plain.yaml, from: pvc://models/mlp.onnx, sha256: `+strings.Repeat("6", 64)+`}
  slow: {profile: impossible.yaml, from: pvc://models/mlp.onnx}
machines: {one: {select: {tuner.dev/type: one}, cpus: 1, memory: 1Gi}}
search: {budget: 10s}
`)
	out, messages, code := u.run(t, "fleet", "run")
	// Both codes are right: nothing keeps the limits of one model, and the other one has no answer.
	if code != exit.Infeasible && code != exit.Inconclusive || !strings.Contains(messages, "one wrong: given up") || !strings.Contains(out, "No machine has an answer for slow") {
		t.Errorf("%d\n%s\n%s", code, messages, out)
	}
	for _, s := range u.states(t) {
		want := map[string]string{"wrong": cluster.StateGivenUp, "slow": cluster.StateDone}[s.Model]
		if s.State != want || s.Attempts != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// An evicted pod delivers its last segment, and does not count against its index.
func (g *ground) testEvicted(t *testing.T) {
	u := g.newUser(t, strings.Replace(oneModel, "15s", "20s", 1))
	r := u.start(t, "fleet", "run")
	_, p := u.podOf(t, g.first, g.other)
	u.measuring(t, p)
	u.evict(t)
	<-p.over
	measured := p.journal()
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	c := u.collected(t).Campaigns[0]
	if len(c.Discarded) != 1 {
		t.Fatalf("%+v", c)
	}
	delivered := u.delivered(t, c.Discarded[0])
	if whole := int64(strings.LastIndex(measured, "\n") + 1); delivered != whole {
		t.Errorf("%d bytes of %d were delivered before the end", delivered, whole)
	}
	u.isNotCharged(t)
}

// deliveries returns the records of the user's namespace.
func (u *user) deliveries(t *testing.T) []record.Delivery {
	t.Helper()
	var list struct {
		Items []record.ConfigMap `json:"items"`
	}
	if err := u.Get(t.Context(), "/api/v1/namespaces/"+u.namespace+"/configmaps?labelSelector="+record.LabelKind, &list); err != nil {
		t.Fatal(err)
	}
	d, err := record.Join(list.Items)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A worker's token creates records of its own item, and nothing else. It reads nothing. The fleet's name has the marks
// that names of records have.
func (g *ground) testToken(t *testing.T) {
	u := g.newUser(t, strings.Replace(oneModel, "name: q3", "name: a-seg-result", 1))
	r := u.start(t, "fleet", "run", "--harden")
	_, p := u.podOf(t, g.first, g.other)
	token := strings.TrimSpace(read(t, filepath.Join(filepath.Dir(filepath.Dir(p.work)), "token", "token")))
	worker := g.As(token)
	maps := "/api/v1/namespaces/" + u.namespace + "/configmaps"
	for _, path := range []string{maps, "/api/v1/namespaces/" + u.namespace + "/secrets", "/api/v1/namespaces/" + u.namespace + "/pods", "/api/v1/namespaces/default/configmaps", "/api/v1/nodes"} {
		if err := worker.Get(t.Context(), path, nil); !IsStatus(err, http.StatusForbidden) {
			t.Errorf("a worker reads %s: %v", path, err)
		}
	}
	if err := worker.Delete(t.Context(), maps+"/any", nil); !IsStatus(err, http.StatusForbidden) {
		t.Errorf("a worker deletes: %v", err)
	}
	run := strings.TrimSuffix(strings.Split(u.states(t)[0].Pod, "-s1-")[0], "-")
	job := record.JobName(run, "one")
	create := func(name string, immutable bool) error {
		return worker.Create(t.Context(), maps, map[string]any{"metadata": map[string]any{"name": name}, "immutable": immutable}, nil)
	}
	// A policy takes a moment to be in force.
	err := g.Await(t.Context(), time.Minute, "the policy to be in force", func(context.Context) bool {
		return IsStatus(create(fmt.Sprintf("%s-0-seg-x%d", job, time.Now().UnixNano()), false), http.StatusUnprocessableEntity)
	})
	if err != nil {
		t.Error(err)
	}
	if err := create(job+"-1-result", true); !IsStatus(err, http.StatusUnprocessableEntity) {
		t.Errorf("a worker creates the result of another item: %v", err)
	}
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
}

// A type without nodes ends the run at the deadline, with the scheduler's words. The others are complete.
func (g *ground) testNoNodes(t *testing.T) {
	u := g.newUser(t, strings.Replace(oneModel, "machines: {", "machines: {none: {select: {tuner.dev/type: none}, cpus: 1, memory: 1Gi}, ", 1))
	r := u.start(t, "fleet", "run")
	r.says(t, "one mlp: done")
	r.says(t, "none mlp: waiting: 0/8 nodes are available")
	// The deadline of a fleet is hours. This one is over now.
	run := strings.Split(u.states(t)[1].Pod, "-s1-")[0]
	if err := g.Patch(t.Context(), "/apis/batch/v1/namespaces/"+u.namespace+"/jobs/"+record.JobName(run, "none"), map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 1}}); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(t); code != exit.Inconclusive || !strings.Contains(r.messages.String(), "it waited: 0/8 nodes are available") || !strings.Contains(r.out.String(), "no result yet") {
		t.Errorf("%d\n%s\n%s", code, &r.messages, &r.out)
	}
	if l := u.collected(t); l.Missing() != 1 {
		t.Errorf("%+v", l)
	}
}

// A pod that wants cores of its own and has half of one's time is not tried again; with `exclusive: shared` its
// windows are flagged.
func (g *ground) testQuota(t *testing.T) {
	half := strings.ReplaceAll(strings.Replace(oneModel, "15s", "10s", 1), "one", "half")
	u := g.newUser(t, half, "exclusive: cores")
	_, messages, code := u.run(t, "fleet", "run")
	if code != exit.Inconclusive || !strings.Contains(messages, "half mlp: given up") || u.states(t)[0].Attempts != 1 {
		t.Errorf("%d\n%s", code, messages)
	}
	if log := g.limited.Log(); !strings.Contains(log, "a quota of 0.5 cores' time stops it in every period; let the administrator set cpuManagerPolicy: static") {
		t.Errorf("%s", log)
	}
	u = g.newUser(t, half, "exclusive: shared")
	out, messages, code := u.run(t, "fleet", "run", "--format", "json")
	var ranking results.Ranking
	if err := json.Unmarshal([]byte(out), &ranking); err != nil || code != exit.OK {
		t.Fatalf("%v, %d\n%s", err, code, messages)
	}
	row, throttled := ranking.Models[0].Rows[0], u.flagged(t, u.collected(t).Campaigns[0], measure.FlagThrottled)
	t.Logf("%.0f %% of the windows are throttled", 100*throttled)
	if throttled < 1 || row.Disturbed < 1 {
		t.Errorf("%.2f of the windows are throttled: %+v", throttled, row)
	}
}

// What was delivered is collected before it is deleted. Nothing of the run remains.
func (g *ground) testDelete(t *testing.T) {
	u := g.newUser(t, strings.Replace(oneModel, "models: {", "models: {cnn: {profile: plain.yaml, from: pvc://models/cnn.onnx}, ", 1))
	r := u.start(t, "fleet", "run")
	r.says(t, ": done on one-")
	r.kill()
	if out, messages, code := u.run(t, "fleet", "delete"); code != exit.OK || !strings.Contains(messages, "collected") {
		t.Fatalf("%d\n%s\n%s", code, out, messages)
	}
	if n := len(u.collected(t).Campaigns) - u.collected(t).Missing(); n == 0 {
		t.Error("nothing was collected")
	}
	err := g.Await(t.Context(), longest, "the run's objects to go", func(ctx context.Context) bool {
		cmd := exec.CommandContext(ctx, "kubectl", "get", "jobs,configmaps,pods", "-n", u.namespace, "-l", record.LabelRun, "-o", "name")
		cmd.Path, cmd.Env = filepath.Join(u.programs, "kubectl"), u.Kubectl()
		out, err := cmd.Output()
		return err == nil && len(out) == 0
	})
	if err != nil {
		t.Error(err)
	}
}

// Two machines of a type have an interval over both. The second stage measures the best configuration
// again, and has an interval for a machine that was not measured.
func (g *ground) testConfirm(t *testing.T) {
	u := g.newUser(t, strings.Replace(oneModel, "search: {budget: 15s}", "search: {budget: 10s, machines: 2}\nconfirm: {machines: 2, top: 1, budget: 10s}", 1))
	out, messages, code := u.run(t, "fleet", "run", "--format", "json")
	var second results.Ranking
	if err := json.Unmarshal([]byte(out), &second); err != nil || code != exit.OK {
		t.Fatalf("%v, %d\n%s", err, code, messages)
	}
	out, messages, code = u.run(t, "fleet", "analyze", "--format", "json")
	var first results.Ranking
	if err := json.Unmarshal([]byte(out), &first); err != nil || code != exit.OK {
		t.Fatalf("%v, %d\n%s", err, code, messages)
	}
	for stage, r := range map[string]results.Ranking{"first": first, "second": second} {
		m := r.Models[0]
		if len(m.Rows) != 2 || m.Rows[0].Node == m.Rows[1].Node {
			t.Errorf("%s: %+v", stage, m.Rows)
		}
		x := m.Types[0]
		if x.Campaigns != 2 || x.Machines == 2 && (x.Next == nil || x.Next.Lo > x.Cost.Lo || x.Worst < x.Cost.Value) {
			t.Errorf("%s: %+v", stage, x)
		}
	}
	if second.Run == first.Run {
		t.Error(first.Run)
	}
}

// A type that costs a thousand times as much ends early, with the numbers that say why. The other one goes
// on to its end.
func (g *ground) testHopeless(t *testing.T) {
	u := g.newUser(t, `name: q3
models: {mlp: {profile: plain.yaml, from: pvc://models/mlp.onnx}}
machines:
  one: {select: {kubernetes.io/hostname: one-a}, cpus: 1, memory: 1Gi, price: {per_hour: 0.36}}
  dear: {select: {kubernetes.io/hostname: one-b}, cpus: 1, memory: 1Gi, price: {per_hour: 360}}
search: {budget: 3m, first: 20s}
`)
	r := u.start(t, "fleet", "run")
	r.says(t, "dear mlp: ended early")
	r.says(t, "no configuration is likely to cost less than")
	_, p := u.podOf(t, g.other)
	began := time.Now()
	<-p.over
	if p.code != 0 {
		t.Errorf("its worker ends with %d", p.code)
	}
	t.Logf("its worker has ended %s after the decision", time.Since(began).Round(time.Second))
	r.kill() // the other type's three minutes show nothing more
	if _, messages, code := u.run(t, "fleet", "collect"); code != exit.OK {
		t.Errorf("%d: %s", code, messages)
	}
	out, _, _ := u.run(t, "fleet", "analyze")
	if !strings.Contains(out, "dear was ended early: after ") {
		t.Errorf("%s", out)
	}
	for _, c := range u.collected(t).Campaigns {
		if c.Machine == "dear" && (c.Result == nil || c.Result.Hopeless == "" || strings.Count(u.journal(t, c), "\n") < 3) {
			t.Errorf("%+v", c)
		}
	}
	if _, messages, code := u.run(t, "fleet", "delete"); code != exit.OK {
		t.Errorf("%d: %s", code, messages)
	}
}

// A campaign on a node that is lost begins again on another one, a minute after its pod should have
// ended. The attempt that was lost does not count against its index.
func (g *ground) testNodeIsLost(t *testing.T) {
	u := g.newUser(t, oneModel)
	r := u.start(t, "fleet", "run")
	node, p := u.podOf(t, g.first, g.other)
	u.measuring(t, p)
	node.Lose()
	r.says(t, "hangs on "+node.name)
	hangs := u.states(t)[0]
	r.says(t, "node "+node.name+" does not answer; pod ")
	if hangs.State == cluster.StateHangs && !strings.Contains(hangs.Reason, "kubectl taint node "+node.name) {
		t.Errorf("%+v", hangs)
	}
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	c := u.collected(t).Campaigns[0]
	if c.Result.Placement.Node == node.name {
		t.Errorf("%+v", c)
	}
	u.isWhole(t)
}
