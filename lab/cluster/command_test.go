//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/fleet/cluster"
	"tuner/internal/exit"
	"tuner/internal/programtest"
)

// killer is a kubectl that kills the command that called it, at one of its calls.
const killer = `#!/bin/sh
n=$(($(cat "$KILLER/count") + 1))
echo $n > "$KILLER/count"
read at when < "$KILLER/at"
if [ $n = $at ] && [ $when = before ]; then kill -9 $PPID; exit 1; fi
"$KUBECTL" "$@"
code=$?
if [ $n = $at ] && [ $when = after ]; then kill -9 $PPID; fi
exit $code
`

// The same command resumes wherever the one before it was killed, and ends with the same files: it is killed before and after each
// of its calls of the cluster, which are all that it changes there.
func (g *ground) testCommandIsKilledAtItsCalls(t *testing.T) {
	u := g.newUser(t, oneModel)
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, "kubectl"), killer)
	own := &user{ground: u.ground, dir: u.dir, namespace: u.namespace}
	own.env = []string{"KILLER=" + dir, "KUBECTL=" + filepath.Join(u.programs, "kubectl"), "PATH=" + dir + ":" + os.Getenv("PATH")}
	kills := 0
	for at := 1; ; at++ {
		for _, when := range []string{"before", "after"} {
			write(t, filepath.Join(dir, "count"), "0\n")
			write(t, filepath.Join(dir, "at"), fmt.Sprintln(at, when))
			_, messages, code := own.run(t, "fleet", "run")
			if code == exit.OK { // it has fewer calls
				t.Logf("killed at %d calls", kills)
				if kills < 8 { // objects, results, apply; objects, results, records, each before and after
					t.Error("it was killed too seldom")
				}
				u.isTheSameElsewhere(t, 1)
				return
			}
			if code != -1 {
				t.Fatalf("%d\n%s", code, messages)
			}
			kills++
		}
	}
}

// The same holds after each line that it says, and after Ctrl-C, which says how to go on.
func (g *ground) testCommandIsKilledAtItsLines(t *testing.T) {
	u := g.newUser(t, strings.Replace(oneModel, "models: {", "models: {cnn: {profile: plain.yaml, from: pvc://models/cnn.onnx}, ", 1))
	for n := 1; ; n++ {
		r := u.start(t, "fleet", "run")
		if !r.saysLines(t, n) {
			if code := r.wait(t); code != exit.OK || n < 3 {
				t.Fatalf("%d after %d lines\n%s", code, n, &r.messages)
			}
			break
		}
		if n == 2 {
			if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := r.wait(t); code != exit.Interrupted || !strings.Contains(r.messages.String(), "tuner fleet run -f fleet.yaml   goes on watching") {
				t.Errorf("%d\n%s", code, &r.messages)
			}
			continue
		}
		r.kill()
		if n > 1 && !strings.Contains(r.messages.String(), "is in the cluster; going on") {
			t.Errorf("%s", &r.messages)
		}
	}
	u.isTheSameElsewhere(t, 2)
}

// saysLines waits until the program has written so many lines of messages. It is false if it ends before.
func (r *running) saysLines(t *testing.T, n int) bool {
	t.Helper()
	for began := time.Now(); strings.Count(r.messages.String(), "\n") < n; {
		select {
		case <-r.over:
			return strings.Count(r.messages.String(), "\n") >= n
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(began) > longest {
			t.Fatalf("tuner does not say %d lines:\n%s", n, &r.messages)
		}
	}
	return true
}

// isTheSameElsewhere fails the test unless the user's files are those of the same command on another computer, and each campaign
// had one attempt.
func (u *user) isTheSameElsewhere(t *testing.T, campaigns int) {
	t.Helper()
	other := u.elsewhere(t)
	if _, messages, code := other.run(t, "fleet", "run"); code != exit.OK {
		t.Fatalf("%d\n%s", code, messages)
	}
	was, now := u.files(t), other.files(t)
	// A journal and what follows from all: the list, and the page.
	if d := cmp.Diff(was, now); d != "" || len(now) != campaigns+2 {
		t.Errorf("%d files\n%.3000s", len(now), d)
	}
	states := u.states(t)
	for _, s := range states {
		if s.State != cluster.StateDone || s.Attempts != 1 {
			t.Errorf("%+v", s)
		}
	}
	if len(states) != campaigns || u.collected(t).Missing() != 0 {
		t.Errorf("%+v", states)
	}
}
