//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/internal/exit"
)

// As many campaigns as a fleet may have: 10 models on 50 machines. No machine is there, so the records are made here, as large as those
// of three minutes. The times are told, and not judged: the contract has 2 s for a status and 60 s to collect.
func (g *ground) testMany(t *testing.T) {
	const models, machines, size = 10, 50, 84_000
	var list []string
	for i := range models {
		list = append(list, fmt.Sprintf("m%d: {profile: plain.yaml, from: pvc://models/mlp.onnx}", i))
	}
	u := g.newUser(t, "name: q3\nmodels: {"+strings.Join(list, ", ")+"}\nmachines: {none: {select: {tuner.dev/type: none}, cpus: 1, memory: 1Gi}}\nsearch: {budget: 10s, machines: 50}\n")
	timed := func(args ...string) string {
		began := time.Now()
		out, messages, code := u.run(t, append([]string{"fleet"}, args...)...)
		if code != exit.OK {
			t.Fatalf("%q: %d: %s", args, code, messages)
		}
		t.Logf("%s: %.1f s", args[0], time.Since(began).Seconds())
		return out
	}
	timed("plan")
	r := u.start(t, "fleet", "run")
	r.says(t, ": created 5 objects for none")
	r.kill()
	p := u.plan(t)
	err := g.Await(t.Context(), longest, "all pods to be there", func(ctx context.Context) bool {
		var pods struct {
			Items []struct{} `json:"items"`
		}
		return g.Get(ctx, "/api/v1/namespaces/"+u.namespace+"/pods", &pods) == nil && len(pods.Items) == models*machines
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(timed("status", "--format", "json"), `"state": "waiting"`); n != models*machines {
		t.Errorf("%d campaigns wait", n)
	}
	noise := rand.NewChaCha8([32]byte{1})
	for index, item := range p.Parts[0].Items {
		text := make([]byte, size)
		_, _ = noise.Read(text) // it never fails
		g.deliver(t, u, p, index, item, append(text, '\n'))
	}
	timed("collect")
	if l := u.collected(t); len(l.Campaigns) != models*machines || l.Missing() != 0 {
		t.Errorf("%d of %d are missing", l.Missing(), len(l.Campaigns))
	}
	if n := strings.Count(timed("status", "--format", "json"), `"state": "done"`); n != models*machines {
		t.Errorf("%d campaigns are done", n)
	}
	timed("delete")
}

// plan makes the plan of the user's file, as the command does.
func (u *user) plan(t *testing.T) fleet.Plan {
	t.Helper()
	f, err := fleet.Parse(u.dir+"/fleet.yaml", []byte(read(t, u.dir+"/fleet.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	p, err := fleet.NewPlan(f, func(path string) ([]byte, error) { return []byte(read(t, path)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// deliver creates the records of an item, as its worker does.
func (g *ground) deliver(t *testing.T, u *user, p fleet.Plan, index int, item fleet.Item, text []byte) {
	t.Helper()
	job := record.Item{Job: record.JobName(p.Run, "none"), Index: index}
	uid := fmt.Sprintf("%08d", index)
	segment, fits, err := record.Segment{Attempt: record.Attempt{Item: job, UID: uid}, Text: text}.ConfigMap(p.Run, "none")
	if err != nil || !fits {
		t.Fatal(fits, err)
	}
	result, err := record.Result{Job: job.Job, Index: index, Attempt: uid, Model: item.Model, Machine: "none", Repeat: item.Repeat, Bytes: int64(len(text)), Segments: 1, SHA256: record.Digest(text)}.ConfigMap(p.Run)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []record.ConfigMap{segment, result} {
		if err := g.Create(t.Context(), maps(u), m, nil); err != nil {
			t.Fatal(err)
		}
	}
}
