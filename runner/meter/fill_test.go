package meter

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/measure"
)

const ms = time.Millisecond

func TestFill(t *testing.T) {
	t.Parallel()
	gpus := []measure.GPUWindow{{UUID: "A", Energy: 5}}
	reading := func(second int, requests uint64, engine, client time.Duration, hz float64) Reading {
		return Reading{
			At: at(float64(second)), Models: []Counters{{Own: []api.ModelStatistics{counters("1", requests)}}}, Engine: hostinfo.ProcessUsage{CPU: engine}, Client: client,
			Frequency: hz, GPUs: gpus, told: true,
		}
	}
	readings := []Reading{
		reading(0, 0, time.Second, 3*ms, 9e9), // its clock belongs to the time before
		reading(1, 10, 1500*ms, 5*ms, 3e9),
		reading(2, 30, 1600*ms, 6*ms, 2.7e9),
	}
	given := []measure.Window{{Requests: 9, Flags: []measure.Flag{measure.FlagErrors}}, {Requests: 21}, {Requests: 4}}
	want := []measure.Window{
		{Requests: 9, Server: served(10), EngineCPU: 500 * ms, ClientCPU: 2 * ms, Frequency: 1, GPUs: gpus, Flags: []measure.Flag{measure.FlagErrors}},
		{Requests: 21, Server: served(20), EngineCPU: 100 * ms, ClientCPU: ms, Frequency: 0.9, GPUs: gpus, Flags: []measure.Flag{measure.FlagFrequency}},
		{Requests: 4}, // its end was not read
	}
	if diff := cmp.Diff(want, Fill(0, given, readings), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(given[0].Flags) != 1 || given[0].Server.Requests != 0 {
		t.Errorf("the windows that were given changed: %+v", given[0])
	}
	for _, few := range [][]Reading{nil, readings[:1]} {
		if got := Fill(0, given, few); got[0].Server.Requests != 0 || got[0].ClientCPU != 0 {
			t.Errorf("with %d readings: %+v", len(few), got[0])
		}
	}
	// A process that has ended must not have used negative time.
	readings[1].Engine = hostinfo.ProcessUsage{}
	if got := Fill(0, given, readings); got[0].EngineCPU != 0 {
		t.Errorf("an ended process used %v", got[0].EngineCPU)
	}
	// The usage since the start of a process must not count for one window if the first reading
	// failed.
	readings[1].told = false
	// its end was read, on systems that have the counters
	readings[2].Machine = hostinfo.ReadAllowance().Snapshot()
	got := Fill(0, given, readings)
	if w := got[1]; w.EngineCPU != 0 || w.Foreign != 0 || w.Steal != 0 {
		t.Errorf("after a reading that is missing the server used %v, others %v, the hypervisor %v", w.EngineCPU, w.Foreign, w.Steal)
	}
}

// The CPU time that others took, computed by hand. Two processors for 1 s.
func TestTaken(t *testing.T) {
	t.Parallel()
	usage := func(quota float64, busy, steal, interrupts, group, throttled time.Duration) hostinfo.AllowanceUsage {
		return hostinfo.AllowanceUsage{CPUUsage: hostinfo.CPUUsage{Busy: busy, Idle: 2000*ms - busy - steal, Steal: steal, Interrupts: interrupts},
			Quota: quota, Group: group, Throttled: throttled, CPUs: 2}
	}
	check := func(name string, u hostinfo.AllowanceUsage, own time.Duration, want taken) {
		t.Helper()
		if diff := cmp.Diff(want, takenOf(u, own), cmp.AllowUnexported(taken{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// 1.4 s busy, 0.8 s of them ours; 0.1 s stolen.
	check("no quota", usage(1, 1400*ms, 100*ms, 0, 0, 0), 800*ms, taken{steal: 0.05, foreign: 0.3})
	check("interrupts are nobody's", usage(1, 1400*ms, 100*ms, 200*ms, 0, 0), 800*ms, taken{steal: 0.05, foreign: 0.2})
	check("own seems to exceed busy", usage(1, 10*ms, 0, 0, 0, 0), 20*ms, taken{})
	check("no time", hostinfo.AllowanceUsage{}, 0, taken{})
	// A quota of one core leaves the other core alone. Others that use 0.9 s take nothing from the
	// quota; others that use 1.2 s take 0.2 s.
	check("others fit beside the quota", usage(0.5, 1700*ms, 0, 0, 800*ms, 0), 800*ms, taken{})
	check("others take from the quota", usage(0.5, 2000*ms, 0, 0, 800*ms, 0), 800*ms, taken{foreign: 0.2})
	check("with the hypervisor", usage(0.5, 1700*ms, 300*ms, 0, 800*ms, 0), 800*ms, taken{steal: 0.05, foreign: 0.15})
	// The quota grants 1 s. Another process in the same container used 0.4 s of it. Threads waited
	// for 0.6 s.
	check("others within the quota", usage(0.5, 1000*ms, 0, 0, 1000*ms, 600*ms), 600*ms, taken{foreign: 0.4, throttled: 0.3})
}

func TestFlags(t *testing.T) {
	t.Parallel()
	all := time.Duration(runtime.GOMAXPROCS(0)) * time.Second
	for name, c := range map[string]struct {
		w    measure.Window
		want []measure.Flag
	}{
		"good":             {measure.Window{ClientCPU: all / 2, Steal: 0.01, Foreign: 0.1, Frequency: 1.029}, nil},
		"nothing is known": {measure.Window{}, nil},
		"client CPU":       {measure.Window{ClientCPU: all * 9 / 10}, []measure.Flag{measure.FlagClientCPU}},
		"steal":            {measure.Window{Steal: 0.011}, []measure.Flag{measure.FlagSteal}},
		"foreign":          {measure.Window{Foreign: 0.11}, []measure.Flag{measure.FlagForeign}},
		"GPUs":             {measure.Window{GPUs: []measure.GPUWindow{{Foreign: 0.1}, {}}}, nil},
		"foreign GPU":      {measure.Window{GPUs: []measure.GPUWindow{{}, {Foreign: 0.11}}}, []measure.Flag{measure.FlagForeignGPU}},
		"throttled":        {measure.Window{Throttled: 0.011}, []measure.Flag{measure.FlagThrottled}},
		"slower":           {measure.Window{Frequency: 0.969}, []measure.Flag{measure.FlagFrequency}},
		"faster":           {measure.Window{Frequency: 1.031}, []measure.Flag{measure.FlagFrequency}},
	} {
		if diff := cmp.Diff(c.want, flags(c.w, time.Second)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
