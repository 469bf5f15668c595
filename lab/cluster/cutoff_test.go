//go:build cluster

package cluster

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/exit"
)

// rivals are two attempts of one item that both measure, and are held at their results.
type rivals struct {
	mu       sync.Mutex
	first    string                   // UID of the pod of the first attempt
	statuses map[string]int           // of the answers to results, by UID
	reached  chan struct{}            // closed when the first attempt sends its result
	measures chan struct{}            // closed when the second one has begun to measure
	passed   map[string]chan struct{} // closed when an attempt's result was answered
	hold     map[string]chan struct{} // what the result of an attempt waits for
}

// around is their wire.
func (x *rivals) around(r Request, pass func() int) bool {
	if r.IsTried && r.Attempt() != x.first {
		pass()
		closeOnce(&x.mu, x.measures)
		return true
	}
	if !r.IsResult() {
		pass()
		return true
	}
	who := "second"
	if r.Attempt() == x.first {
		who = "first"
		closeOnce(&x.mu, x.reached)
	}
	<-x.hold[who]
	status := pass()
	x.mu.Lock()
	if x.statuses[who] == 0 {
		x.statuses[who] = status
	}
	x.mu.Unlock()
	closeOnce(&x.mu, x.passed[who])
	return true
}

func closeOnce(mu *sync.Mutex, c chan struct{}) {
	mu.Lock()
	defer mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// Two attempts deliver: the pod of a node that was cut off, and its replacement. The result that arrives first counts, and
// every later collect writes the same bytes.
func (g *ground) testTwoAttemptsDeliver(t *testing.T) {
	for name, isFirst := range map[string]bool{"the pod that was cut off is first": true, "the replacement is first": false} {
		t.Run(name, func(t *testing.T) { g.testRivals(t, isFirst) })
	}
}

func (g *ground) testRivals(t *testing.T, isFirst bool) {
	u := g.newUser(t, strings.Replace(oneModel, "15s", "10s", 1))
	made := func() chan struct{} { return make(chan struct{}) }
	x := &rivals{statuses: map[string]int{}, reached: made(), measures: made(), passed: map[string]chan struct{}{"first": made(), "second": made()}}
	x.hold = map[string]chan struct{}{"first": x.measures, "second": x.passed["first"]}
	if !isFirst {
		free := made()
		close(free)
		x.hold = map[string]chan struct{}{"first": x.passed["second"], "second": free}
	}
	begun := made() // the first pod's UID is known
	u.wire(t, func(r Request, pass func() int) bool {
		<-begun
		return x.around(r, pass)
	})
	r := u.start(t, "fleet", "run")
	node, first := u.podOf(t, g.first, g.other)
	x.first = first.uid
	close(begun)
	wait(t, x.reached, "the first attempt to send its result")
	token := strings.TrimSpace(read(t, filepath.Join(filepath.Dir(filepath.Dir(first.work)), "token", "token")))

	// The node is cut off, and somebody says that its pod is over. So there is a second one, elsewhere.
	pod := "/api/v1/namespaces/" + u.namespace + "/pods/" + u.states(t)[0].Pod
	node.CutOff()
	defer g.mend(t, node)
	schedule := func(ctx context.Context, isOff bool) error {
		return g.Patch(ctx, "/api/v1/nodes/"+node.name, map[string]any{"spec": map[string]any{"unschedulable": isOff}})
	}
	over := map[string]any{"status": map[string]any{"phase": "Failed", "conditions": []any{map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "Test"}}}}
	if err := errors.Join(schedule(t.Context(), true), g.Patch(t.Context(), pod+"/status", over)); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	wait(t, x.passed["first"], "the first attempt's result")
	wait(t, x.passed["second"], "the second attempt's result")
	attempts := u.attempts(g.first, g.other)
	if len(attempts) != 2 {
		t.Fatalf("%d attempts", len(attempts))
	}
	for _, p := range attempts {
		wait(t, p.over, "an attempt to end")
		if p.code != 0 {
			t.Errorf("an attempt ends with %d", p.code)
		}
	}
	want, counts, discarded := map[string]int{"first": http.StatusCreated, "second": http.StatusConflict}, attempts[0], attempts[1]
	if !isFirst {
		want, counts, discarded = map[string]int{"first": http.StatusConflict, "second": http.StatusCreated}, attempts[1], attempts[0]
	}
	if d := cmp.Diff(want, x.statuses); d != "" {
		t.Error(d)
	}
	if _, messages, code := u.run(t, "fleet", "collect"); code != exit.OK {
		t.Fatalf("%d: %s", code, messages)
	}
	c := u.collected(t).Campaigns[0]
	if u.journal(t, c) != counts.journal() || c.Result.Attempt != counts.uid || len(c.Discarded) != 1 || c.Discarded[0] != discarded.uid {
		t.Errorf("%+v", c)
	}
	was := u.files(t)
	for _, other := range []*user{u, u.elsewhere(t)} {
		if _, messages, code := other.run(t, "fleet", "collect"); code != exit.OK {
			t.Fatalf("%d: %s", code, messages)
		}
		now := other.files(t)
		delete(now, "report.html") // `run` writes it, and `collect` does not
		delete(was, "report.html")
		if d := cmp.Diff(was, now); d != "" {
			t.Errorf("%s", d)
		}
	}
	g.losesItsToken(t, pod, maps(u), token)
}

func maps(u *user) string { return "/api/v1/namespaces/" + u.namespace + "/configmaps" }

// losesItsToken deletes a pod's object, as a rescue does, and fails the test unless its token is worth nothing then.
func (g *ground) losesItsToken(t *testing.T, pod, maps, token string) {
	t.Helper()
	if err := g.Delete(t.Context(), pod, map[string]any{"gracePeriodSeconds": 0}); err != nil && !IsStatus(err, http.StatusNotFound) {
		t.Error(err)
	}
	// The API server remembers a token for some seconds.
	err := g.Await(t.Context(), time.Minute, "the pod's token to end", func(ctx context.Context) bool {
		late := map[string]any{"metadata": map[string]any{"generateName": "late-"}, "immutable": true}
		return IsStatus(g.As(token).Create(ctx, maps, late, nil), http.StatusUnauthorized)
	})
	if err != nil {
		t.Error(err)
	}
}

// mend connects a node that was cut off, and waits until pods may run there again.
func (g *ground) mend(t *testing.T, n *Node) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := errors.Join(n.Connect(ctx), g.Patch(ctx, "/api/v1/nodes/"+n.name, map[string]any{"spec": map[string]any{"unschedulable": false}}))
	if err != nil {
		t.Error(err)
	}
	err = g.Await(ctx, time.Minute, "the taints of a node to go", func(ctx context.Context) bool {
		var node struct {
			Spec struct {
				Taints []any `json:"taints"`
			} `json:"spec"`
		}
		return g.Get(ctx, "/api/v1/nodes/"+n.name, &node) == nil && len(node.Spec.Taints) == 0
	})
	if err != nil {
		t.Error(err)
	}
}

func wait(t *testing.T, c chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(longest):
		t.Fatalf("waited %s for %s", longest, what)
	}
}

// elsewhere returns the same user on another computer: with the same files, and nothing collected.
func (u *user) elsewhere(t *testing.T) *user {
	t.Helper()
	other := &user{ground: u.ground, dir: t.TempDir(), namespace: u.namespace}
	for _, name := range []string{"fleet.yaml", "plain.yaml", "impossible.yaml"} {
		write(t, filepath.Join(other.dir, name), read(t, filepath.Join(u.dir, name)))
	}
	return other
}

// files returns all files of the fleet's output folder, by their paths.
func (u *user) files(t *testing.T) map[string]string {
	t.Helper()
	list, root := map[string]string{}, filepath.Join(u.dir, "out", "q3")
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		list[name] = read(t, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
