package tuned

import (
	"testing"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/modelconfig"
)

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
		if got := Cores([]Model{m}); got != want {
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
		if got := m.GPUs(); got != want || m.LeastGPUs() != least {
			t.Errorf("%s on %d: %d GPUs, at least %d; want %d, %d", groups, machine, got, m.LeastGPUs(), want, least)
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
		if got := QueueTime(models); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	check(9*time.Millisecond, model(4, 400, 0.009, 0.05))
	check(2*time.Millisecond, model(1, 300, 0, 0.02)) // a tenth of p99
	// 300 requests wait 1 ms, and 400 / 4 = 100 wait 9 ms. The mean is (0.3 s + 0.9 s) / 400.
	check(3*time.Millisecond, model(1, 300, 0.001, 0.005), model(4, 400, 0.009, 0.05))
}
