//go:build cluster

package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tuner/fleet/cluster"
	"tuner/fleet/record"
	"tuner/internal/exit"
)

// point is a moment in the life of an attempt.
type point struct {
	name    string
	isThere func(p *process) bool // looks at the pod's folder; nil: a request tells
	// asks tells it by a request, and arrives whether the API server has done what that asks
	asks     func(r Request) bool
	arrives  bool
	delivers bool // segments of the attempt have arrived
	counts   bool // and its result, so a second one does not measure
	isLong   bool // its campaign lasts longer than the time between two segments
}

// points are the moments at which a worker is killed: F3 of docs/design/fleet.md. A thirteenth, between result and end,
// has a test of its own.
var points = []point{
	{name: "as it starts", isThere: func(*process) bool { return true }},
	{name: "while it asks for a result", asks: func(r Request) bool { return r.IsTried }},
	{name: "before its journal", isThere: func(p *process) bool { return p.has("profile.yaml") }},
	{name: "in its first trial", isThere: func(p *process) bool { return p.lines() >= 2 }},
	{name: "in a later trial", isThere: func(p *process) bool { return p.lines() >= 5 }},
	{name: "in its finals", isThere: func(p *process) bool { return strings.Contains(p.journal(), `"phase":"final"`) }, isLong: true},
	{name: "while its first segment is sent", asks: func(r Request) bool { return r.IsSegment("-0000") }},
	{name: "after its first segment has arrived", asks: func(r Request) bool { return r.IsSegment("-0000") }, arrives: true, delivers: true, isLong: true},
	{name: "while its second segment is sent", asks: func(r Request) bool { return r.IsSegment("-0001") }, delivers: true, isLong: true},
	{name: "after its last segment", asks: func(r Request) bool { return r.IsSegment("-0000") }, arrives: true, delivers: true},
	{name: "while its result is sent", asks: Request.IsResult, delivers: true},
	{name: "after its result has arrived, before it knows", asks: Request.IsResult, arrives: true, delivers: true, counts: true},
}

// has reports whether its folder has a file.
func (p *process) has(name string) bool {
	_, err := os.Stat(filepath.Join(p.work, name))
	return err == nil
}

// lines returns the number of lines of its journal.
func (p *process) lines() int { return strings.Count(p.journal(), "\n") }

// attempts returns the pods of the user's only campaign, as they started.
func (u *user) attempts(nodes ...*Node) []*process {
	var list []*process
	for _, n := range nodes {
		list = append(list, n.of(u.namespace)...)
	}
	slices.SortFunc(list, func(a, b *process) int { return a.began.Compare(b.began) })
	return list
}

// testWorkerIsKilledAt kills a worker once. Its item ends with one attempt that counts, whose journal is whole. What the other
// one has delivered is named as discarded.
func (g *ground) testWorkerIsKilledAt(t *testing.T, at point) {
	file := strings.Replace(strings.ReplaceAll(oneModel, "tuner.dev/type: one", "tuner.dev/type: spare"), "15s", "10s", 1)
	if at.isLong { // a worker sends every 30 s
		file = strings.Replace(file, "10s", "45s", 1)
	}
	u := g.newUser(t, file)
	var isKilled atomic.Bool
	kill := func() {
		if isKilled.CompareAndSwap(false, true) {
			u.attempts(g.spares...)[0].kill()
		}
	}
	if at.asks != nil {
		u.wire(t, func(r Request, pass func() int) bool {
			if isKilled.Load() || !at.asks(r) {
				pass()
				return true
			}
			if at.arrives {
				pass()
			}
			kill()
			return false
		})
	}
	r := u.start(t, "fleet", "run")
	_, first := u.podOf(t, g.spares...)
	if at.isThere != nil {
		u.await(t, at.name, func() bool { return at.isThere(first) || first.isOver() })
		kill()
	}
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	if !isKilled.Load() {
		t.Fatalf("its worker has ended (%d) before it was killed", first.code)
	}
	u.isWhole(t)
	c, attempts := u.collected(t).Campaigns[0], u.attempts(g.spares...)
	want := attempts[0].uid
	if !at.counts {
		if len(attempts) < 2 {
			t.Fatal("there was no second attempt")
		}
		want = attempts[1].uid
	}
	if c.Result.Attempt != want || first.code != 137 {
		t.Errorf("attempt %s counts, want %s; the first one ended with %d", c.Result.Attempt, want, first.code)
	}
	var discarded []string // a long campaign that is killed in its finals has sent a segment or not
	if at.delivers && !at.counts || len(u.sentBy(t, attempts[0])) > 0 && want != attempts[0].uid {
		discarded = append(discarded, attempts[0].uid)
	}
	if !slices.Equal(c.Discarded, discarded) {
		t.Errorf("%q are discarded, want %q", c.Discarded, discarded)
	}
	if s := u.states(t); len(s) != 1 || s[0].State != cluster.StateDone {
		t.Errorf("%+v", s)
	}
}

// sentBy returns what has arrived of an attempt.
func (u *user) sentBy(t *testing.T, p *process) []record.Progress {
	t.Helper()
	var list []record.Progress
	for _, d := range u.deliveries(t) {
		for _, a := range d.Attempts {
			if a.UID == p.uid {
				list = append(list, a)
			}
		}
	}
	return list
}

// wire lets the pods of the user ask the API server through around.
func (u *user) wire(t *testing.T, around func(r Request, pass func() int) bool) {
	t.Helper()
	end, err := u.Wire(u.namespace, around)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
}
