//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tuner/fleet/results"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/profile/campaign"
)

// burner computes on a core for half of the time, in short pieces. It needs the highest priority of ordinary programs:
// otherwise it has only its part of the core in each piece, and the fewer the more threads of the pod compute there.
const burner = `while :; do timeout 0.05 sh -c 'while :; do :; done'; sleep 0.05; done`

// A noisy neighbour on a pod's core flags its windows, and one on another core does not. Another machine is then asked for, and the
// figures of the disturbed one stay.
//
// The control plane and the test itself work on the neighbour's core meanwhile. Pods on the quiet core come before all other programs of
// this machine. What a hypervisor takes from that core is not the neighbour's.
func (g *ground) testNoisyNeighbour(t *testing.T) {
	type kind = map[string]string
	labels := kind{"tuner.dev/type": "noisy"}
	noisy := g.node(t, "noisy-a", []int{0}, labels)
	g.node(t, "noisy-b", []int{1}, labels).Favour()
	g.keepTo(t, 0)
	neighbour, began := exec.Command("nice", "-n", "-20", "taskset", "-c", "0", "/bin/sh", "-c", burner), time.Now()
	neighbour.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = syscall.Kill(-neighbour.Process.Pid, syscall.SIGKILL) // fails only if it has ended
		_ = neighbour.Wait()
	}
	defer end()
	u := g.newUser(t, strings.NewReplacer("tuner.dev/type: one", "tuner.dev/type: noisy", "budget: 15s", "budget: 15s, machines: 2").Replace(oneModel))
	r := u.start(t, "fleet", "run", "--format", "json")
	u.podOf(t, noisy) // `run` asks every ten seconds, and may see the pod only when it is over
	// Two more machines of the type come, since the quiet core may be disturbed too, and the neighbour goes before they measure.
	g.node(t, "noisy-c", []int{1}, labels).Favour()
	g.node(t, "noisy-d", []int{0}, labels)
	r.says(t, "one mlp: disturbed machines; measuring on ")
	end()
	took := neighbour.ProcessState.UserTime() + neighbour.ProcessState.SystemTime() // with what it has started
	t.Logf("the neighbour took %.0f %% of its core", 100*took.Seconds()/time.Since(began).Seconds())
	if code := r.wait(t); code != exit.OK {
		t.Fatalf("%d\n%s", code, &r.messages)
	}
	var ranking results.Ranking
	if err := json.Unmarshal([]byte(r.out.String()), &ranking); err != nil {
		t.Fatal(err)
	}
	rows := map[string]results.Row{}
	for _, row := range ranking.Models[0].Rows {
		rows[row.Node] = row
		t.Logf("%s: %.1f infer/s, %.0f %% of the windows disturbed", row.Node, row.Throughput.Value, 100*row.Disturbed)
	}
	foreign := map[string]float64{}
	for _, c := range u.collected(t).Campaigns {
		node := c.Result.Placement.Node
		foreign[node] = u.flagged(t, c, measure.FlagForeign)
		t.Logf("%s: others flag %.0f %% of the windows", node, 100*foreign[node])
	}
	if foreign["noisy-a"] < 0.9 || !rows["noisy-a"].IsDisturbed() {
		t.Errorf("the neighbour has disturbed %.0f %% of the windows of its core", 100*foreign["noisy-a"])
	}
	if len(rows) < 3 || ranking.Models[0].Types[0].Campaigns != len(rows) {
		t.Errorf("%+v", ranking.Models[0])
	}
	if foreign["noisy-b"] > 0.05 {
		t.Errorf("the neighbour has disturbed %.0f %% of the windows of the other core", 100*foreign["noisy-b"])
	}
	if want := map[bool]int{false: 3, true: 4}[rows["noisy-b"].IsDisturbed()]; len(rows) != want {
		t.Errorf("%d machines, want %d: one more for each that was disturbed", len(rows), want)
	}
}

// flagged returns the share of a campaign's windows that have a flag.
func (u *user) flagged(t *testing.T, c results.Campaign, flag measure.Flag) float64 {
	t.Helper()
	content, err := campaign.Read(u.folder(c))
	if err != nil {
		t.Fatal(err)
	}
	flagged, all := 0.0, 0.0
	for _, e := range content.Events {
		for _, w := range e.Measurement.Windows {
			if all++; slices.Contains(w.Flags, flag) {
				flagged++
			}
		}
	}
	return flagged / all
}

// keepTo keeps the control plane and this process to a core, until the test ends.
func (g *ground) keepTo(t *testing.T, cpu int) {
	t.Helper()
	set := func(list string) {
		for _, pid := range append(g.Processes(), os.Getpid()) {
			// A thread that begins meanwhile may have the set of one that was not reached yet, and hand it on.
			for range 20 {
				if out, err := exec.Command("taskset", "-a", "-p", "-c", list, strconv.Itoa(pid)).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
				if areKept(pid, list) {
					break
				}
			}
		}
	}
	_, rest, _ := strings.Cut(read(t, "/proc/self/status"), "Cpus_allowed_list:")
	was, _, _ := strings.Cut(rest, "\n")
	set(strconv.Itoa(cpu))
	t.Cleanup(func() { set(strings.TrimSpace(was)) })
}

// areKept reports whether all threads of a process are kept to a list of cores.
func areKept(pid int, list string) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(text), "Cpus_allowed_list:\t"+list+"\n") { // a thread may have ended
			return false
		}
	}
	return true
}
