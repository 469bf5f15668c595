package export

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/profile/journal"
	"tuner/report/result"
)

// tritonName is the name in result.json for the other server of measuredOn.
const tritonName = "triton 2.51.0 at gpu7:8001"

// measuredOn makes the result one of another server than the bundled engine. field is server or
// finals. mode has the values of the profile.
func measuredOn(field, mode string) []string {
	return []string{`"machine_fingerprint"`, fmt.Sprintf(`%q: {"mode": %q}, "machine_fingerprint"`, field, mode),
		`"load": {`, fmt.Sprintf(`"server": %q, "load": {`, tritonName)}
}

// configured returns a model with a configuration and no measurements.
func configured(t *testing.T, config string) Model {
	t.Helper()
	m := Model{Name: "m"}
	var err error
	if m.Config, err = modelconfig.Parse("config.pbtxt", []byte(config)); err != nil {
		t.Fatal(err)
	}
	if m.Options, err = modelconfig.ORTOptions(m.Config); err != nil {
		t.Fatal(err)
	}
	m.Threads = m.sessionThreads()
	return m
}

// For a server that was running already only the figures are known. This machine's size does not
// limit the cores, and the memory figure covers the server's whole machine.
func TestServers(t *testing.T) {
	t.Parallel()
	const both = `"server": {"mode": "remote"}, "finals": {"mode": "bundled"}, "machine_fingerprint"`
	for _, test := range []struct {
		name     string
		replace  []string
		server   string
		cores    int // of 8 threads; the result's machine has 2 cores
		memory   float64
		machines string
	}{
		{"the bundled engine", nil, "", 2, 290e6, "Formula"},
		{"one that was launched", measuredOn("server", "local"), tritonName, 2, 290e6, "Formula"},
		{"one that ran already", measuredOn("server", "remote"), tritonName, 8, 0, tritonName},
		// the search measured the engine's memory
		{"finals on one that ran already", measuredOn("finals", "remote"), tritonName, 8, 290e6, tritonName},
		{"finals on the bundled engine", []string{`"machine_fingerprint"`, both}, "", 2, 290e6, "Formula"},
	} {
		m := parsed(t, append([]string{`"instance_count": 2`, `"instance_count": 8`}, test.replace...)...)
		d, err := newDeployment(kubernetesTarget(), []Model{m}, defaults())
		if err != nil {
			t.Fatal(err)
		}
		if d.CPUs != test.cores || m.Memory != test.memory || (view{d}).Machines() != test.machines {
			t.Errorf("%s: %d cores, %g bytes, measured on %q; want %d, %g, %q", test.name, d.CPUs, m.Memory, (view{d}).Machines(), test.cores, test.memory, test.machines)
		}
		remote := test.cores == 8
		if noted := strings.Contains(strings.Join(d.Notes, "\n"), `was measured on "`+tritonName+`", whose machine is unknown`); noted != remote {
			t.Errorf("%s: the notes are %q", test.name, d.Notes)
		}
		if written := d.Manifest().Models[0]; written.Server != test.server || (written.Machine == "") != remote {
			t.Errorf("%s: export.json has the server %q and the machine %q", test.name, written.Server, written.Machine)
		}
	}
}

// A remote server reported the memory during the search. It must not count as the engine's memory,
// although the finals ran on this machine.
func TestRemoteMemoryIsNotCounted(t *testing.T) {
	t.Parallel()
	d := result.Result{Origin: &result.Origin{Server: &journal.ServerInfo{Mode: modeRemote}, Finals: &journal.ServerInfo{Mode: modeBundled}}}
	memory := func(bytes float64) result.Sample {
		return result.Sample{Values: map[measure.Metric]result.Estimate{measure.Memory: {Value: bytes}}}
	}
	m, searched := Model{}, memory(64e9)
	err := m.addFigures(d, result.Configuration{Points: []result.Point{{Sample: memory(64e9)}, {Confirmed: true, Sample: memory(3e8), Searched: &searched}}})
	if m.Memory != 3e8 || err != nil {
		t.Errorf("%g bytes, %v; want 3e8 of the engine here", m.Memory, err)
	}
}

// Some results have no single memory figure for a configuration. Their peak may come from any load
// and from the search, since an engine does not reload its model at every load.
func TestPeak(t *testing.T) {
	t.Parallel()
	at := func(concurrency int, values, searched float64) result.Point {
		figures := func(bytes float64) *result.Sample {
			return &result.Sample{Values: map[measure.Metric]result.Estimate{measure.Memory: {Value: bytes}}}
		}
		return result.Point{Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Sample: *figures(values), Searched: figures(searched)}
	}
	for _, points := range [][]result.Point{
		{at(1, 5e8, 0), at(2, 3e8, 2e8)},
		{at(1, 2e8, 0), at(2, 5e8, 6e8)},
	} {
		m := Model{Load: measure.Load{Concurrency: 2, BatchSize: 1}}
		if err := m.addFigures(result.Result{}, result.Configuration{Points: points}); m.Memory != 5e8 || err != nil {
			t.Errorf("%+v: %g bytes, %v; want 5e8", points, m.Memory, err)
		}
	}
	// The configuration's own figure replaces those of its points, as in the report. 400 MB × 1.3
	// is 496 MiB. 256 MiB are added, in steps of 64.
	m := parsed(t, "\n      \"memory\": {\n        \"value\": 290000000", "\n      \"memory\": {\n        \"value\": 400000000")
	d := Deployment{Models: []Model{m}}
	if got := memory(d.Models); got != 768 || !strings.Contains((view{d}).Rows()[0], "400 MB") {
		t.Errorf("%d MiB, %s; want 768 MiB of 400 MB", got, (view{d}).Rows()[0])
	}
}

// The number of cores is the number of the instances' threads, or the used cores plus one. It is at
// most the number of the machine.
func TestCores(t *testing.T) {
	t.Parallel()
	const (
		intra1   = `parameters { key: "intra_op_thread_count" value { string_value: "1" } } `
		intra4   = `parameters { key: "intra_op_thread_count" value { string_value: "4" } } `
		inter3   = `parameters { key: "inter_op_thread_count" value { string_value: "3" } } `
		parallel = `parameters { key: "execution_mode" value { string_value: "1" } } `
		openVINO = `optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } } `
		three    = `optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" parameters { key: "num_of_threads" value: "3" } } } } `
	)
	check := func(name, config string, machine, instances int, used float64, want int) {
		t.Helper()
		m := configured(t, config)
		m.Instances, m.Host.CPU.Logical = instances, machine
		m.Values = map[measure.Metric]measure.Estimate{measure.CPU: {Value: used}}
		if got := cores(m); got != want {
			t.Errorf("%s: %d cores, want %d", name, got, want)
		}
	}
	check("threads", intra4, 32, 2, 3.2, 8)                  // 2 · 4; ⌈3.2⌉ + 1 is less
	check("the server's own threads", intra1, 32, 2, 2.1, 4) // ⌈2.1⌉ + 1
	check("the whole machine", intra1, 2, 2, 1.9, 2)
	check("operators side by side", intra4+inter3+parallel, 32, 2, 1, 12) // 2 · (4 + 3 − 1)
	check("one operator at a time", intra4+inter3, 32, 2, 1, 8)
	check("any number", "", 32, 2, 1, 32)
	check("any number side by side", intra4+parallel, 32, 2, 1, 32)
	check("OpenVINO's threads", intra1+three, 32, 2, 1, 6)
	check("OpenVINO's choice", intra1+openVINO, 32, 2, 1, 32) // ONNX Runtime's threads do not count for OpenVINO
	check("an unknown machine", intra4, 0, 2, 0, 8)
	check("GPUs", intra4+`instance_group { count: 2 kind: KIND_GPU }`, 32, 2, 1.9, 3)
}

// A server has the GPUs up to the last one in the list. Without a list it has those of the measured
// machine.
func TestGPUs(t *testing.T) {
	t.Parallel()
	check := func(groups string, machine, want, least int) {
		t.Helper()
		m := configured(t, groups)
		m.Host.GPUs = make([]hostinfo.GPU, machine)
		if got := m.GPUs(); got != want || m.leastGPUs() != least {
			t.Errorf("%s on %d: %d GPUs, at least %d; want %d, %d", groups, machine, got, m.leastGPUs(), want, least)
		}
	}
	check(`instance_group { count: 1 kind: KIND_GPU gpus: [0, 1] }`, 4, 2, 2)
	check(`instance_group { count: 1 kind: KIND_GPU gpus: [1] }`, 4, 2, 2)
	check(`instance_group { count: 1 kind: KIND_GPU gpus: [2] } instance_group { count: 1 kind: KIND_GPU gpus: [0] }`, 4, 3, 3)
	check(`instance_group { count: 1 kind: KIND_GPU }`, 4, 4, 1)
	check(`instance_group { count: 1 kind: KIND_GPU }`, 0, 1, 1) // an unknown machine
	check(`instance_group { count: 1 kind: KIND_CPU }`, 4, 0, 0)
}

// Target and metric are means over all requests. A model is weighted by its requests per second,
// not by its inferences.
func TestQueueTime(t *testing.T) {
	t.Parallel()
	model := func(batch int, throughput, queue, p99 float64) Model {
		return Model{Load: measure.Load{Concurrency: 1, BatchSize: batch}, Values: map[measure.Metric]measure.Estimate{
			measure.Throughput: {Value: throughput}, measure.QueueTime: {Value: queue}, measure.LatencyP99: {Value: p99}}}
	}
	check := func(want time.Duration, models ...Model) {
		t.Helper()
		if got := queueTime(models); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	check(9*time.Millisecond, model(4, 400, 0.009, 0.05))
	check(2*time.Millisecond, model(1, 300, 0, 0.02)) // a tenth of p99
	// 300 requests wait 1 ms, and 400 / 4 = 100 wait 9 ms. The mean is (0.3 s + 0.9 s) / 400.
	check(3*time.Millisecond, model(1, 300, 0.001, 0.005), model(4, 400, 0.009, 0.05))
}
