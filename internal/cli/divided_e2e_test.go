//go:build linux && !noengine

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tuner/engine/hostpolicy"
	"tuner/internal/checksum"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/report/result"
)

// boundThreads returns the CPU time of a process's threads in clock ticks, by the cores on which they may run,
// as the kernel lists them.
func boundThreads(pid int) map[string]int {
	folders, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is valid
	used := map[string]int{}
	for _, folder := range folders {
		text, _ := os.ReadFile(filepath.Join(folder, "status")) // "" for a thread that has ended
		stat, _ := os.ReadFile(filepath.Join(folder, "stat"))
		_, rest, isThere := bytes.Cut(stat, []byte(") "))
		if !isThere {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if cores, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				fields := strings.Fields(string(rest)) // from the third field of proc_pid_stat(5) on
				user, _ := strconv.Atoi(fields[11])
				system, _ := strconv.Atoi(fields[12])
				used[strings.TrimSpace(cores)] += user + system
			}
		}
	}
	return used
}

// With isolation: cores, the engines of a campaign bind threads to each model's cores. The server that the
// report describes does, too: a load on one model takes CPU time of its cores alone, besides that of the
// threads that the server has in common. An export of it is verified on those cores.
func TestModelsOnCoresOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	cores, err := hostinfo.Cores()
	if err != nil {
		t.Fatal(err)
	}
	if len(cores) < 2 {
		t.Skip("needs two cores")
	}
	var ids []int
	for _, c := range cores {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	all, models := hostinfo.FormatCPUs(ids), os.Getenv("TUNER_MODELS")
	busy := strings.ReplaceAll(severalText(models, w.output), "config: calm.pbtxt, ", "")
	w.write("profile.yaml", busy+"isolation: cores\n")
	w.checkBound(w.start("profile", "-f", "profile.yaml", "--quiet"), all)
	w.write("analyze.yaml", fmt.Sprintf("input: %q\nformats: [table]\n", w.output))
	w.run(exit.OK, "analyze", "-f", "analyze.yaml")

	path := filepath.Join(w.output, result.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := result.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Configurations, func(c result.Configuration) bool { return len(c.HostPolicies) > 0 && c.BestLoad != nil })
	if i < 0 {
		t.Fatal("no configuration has host policies")
	}
	divided := r.Configurations[i]
	repository := filepath.Join(w.output, "repository")
	w.checkDivided(repository, divided)

	// An export has the processors of the models, and they have them again when it is verified. Any of the
	// configurations may have won, so this one is made the best.
	w.write(filepath.Join("out", result.FileName), strings.Replace(string(text), fmt.Sprintf(`"best": %q`, r.Best), fmt.Sprintf(`"best": %q`, divided.Name), 1))
	w.run(exit.OK, "export", "triton", w.output, "-o", "deploy")
	w.reported(throughputOf(1))
	verified := w.start("export", "verify", "deploy")
	w.checkBound(verified, all)
	expect(t, verified.stdout.String(), "passed  mlp: throughput: ", "passed  cnn: throughput: ", "passed  mlp: limits: p99 ≤ ")
}

// checkBound waits for the end of a program. One of its servers must have had threads that are bound to the cores of
// two models. all are the cores of other threads, as the kernel lists them.
func (w workplace) checkBound(p *program, all string) {
	t := w.t
	t.Helper()
	isBound := false
	eventually(t, "an engine with threads that are bound to cores", func() bool {
		select {
		case err := <-p.ended:
			p.ended <- err
			return true
		default:
		}
		for _, engine := range enginesOf(p.cmd.Process.Pid) {
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", engine)) // "" if it has ended
			lists := boundThreads(engine)
			delete(lists, all) // of the threads that the server has in common
			isBound = isBound || len(lists) == 2 && bytes.Contains(command, []byte("--host-policy="))
		}
		return isBound
	})
	if code := p.exit(); code != exit.OK || !isBound {
		t.Fatalf("exit code %d, threads are bound: %t; stderr:\n%s", code, isBound, p.stderr.String())
	}
}

// checkDivided serves a configuration of several models as a result has it from a repository, which it writes, and
// puts a load on one model after the other.
func (w workplace) checkDivided(repository string, c result.Configuration) {
	t := w.t
	t.Helper()
	policies, err := hostpolicy.Parse(c.HostPolicies)
	if err != nil || len(policies) != len(c.Models) {
		t.Fatalf("%v, %v", c.HostPolicies, err)
	}
	var options []string
	for _, value := range c.HostPolicies {
		options = append(options, "--host-policy="+value)
	}
	for _, m := range c.Models {
		path := filepath.Join(os.Getenv("TUNER_MODELS"), m.Model+".onnx")
		digest, err := checksum.File(path)
		if err != nil {
			t.Fatal(err)
		}
		config, err := modelconfig.Parse(m.Model, []byte(m.Config))
		if err != nil {
			t.Fatal(err)
		}
		if err := modelrepo.Write(repository, modelrepo.Source{Path: path, Digest: digest}, config); err != nil {
			t.Fatal(err)
		}
	}
	server, at := w.serve(repository, options...)
	engine := server.cmd.Process.Pid
	for i, m := range c.Models {
		own, others := 0, make([]int, len(policies))
		// The kernel rounds each thread's time down to ticks of 10 ms, so small models need several loads.
		for load := 0; own < 10 && load < 30; load++ {
			before := boundThreads(engine)
			w.run(exit.OK, "perf", "-m", m.Model, "-u", at.HTTP, "--concurrency-range", "4", "--request-count", "2000")
			after := boundThreads(engine)
			for k, p := range policies {
				list := hostinfo.FormatCPUs(p.Cores)
				others[k] += after[list] - before[list]
			}
			own, others[i] = own+others[i], 0
		}
		if own < 10 {
			t.Errorf("load on %s: the threads of its cores had %d ticks", m.Model, own)
		}
		if most := slices.Max(others); 10*most > own {
			t.Errorf("load on %s: its cores had %d ticks, those of another model %d", m.Model, own, most)
		}
	}
	server.signal(syscall.SIGTERM)
	if code := server.exit(); code != exit.OK {
		t.Errorf("exit code %d after SIGTERM; stderr:\n%s", code, server.stderr.String())
	}
}
