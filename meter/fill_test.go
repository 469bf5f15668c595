package meter

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/engine/api"
	"tuner/hostinfo"
	"tuner/measure"
)

const ms = time.Millisecond

func TestFill(t *testing.T) {
	t.Parallel()
	gpus := []measure.GPUWindow{{UUID: "A", Energy: 5}}
	reading := func(second int, requests uint64, engine, client time.Duration, hz float64) Reading {
		return Reading{
			At: at(float64(second)), Server: []api.ModelStatistics{counters("1", requests)}, Engine: hostinfo.ProcessUsage{CPU: engine}, Client: client,
			Frequency: hz, GPUs: gpus, told: true,
		}
	}
	readings := []Reading{
		reading(0, 0, time.Second, 3*ms, 9e9), // its clock is of the time before
		reading(1, 10, 1500*ms, 5*ms, 3e9),
		reading(2, 30, 1600*ms, 6*ms, 2.7e9),
	}
	given := []measure.Window{{Requests: 9, Flags: []measure.Flag{measure.FlagErrors}}, {Requests: 21}, {Requests: 4}}
	want := []measure.Window{
		{Requests: 9, Server: served(10), EngineCPU: 500 * ms, ClientCPU: 2 * ms, Frequency: 1, GPUs: gpus, Flags: []measure.Flag{measure.FlagErrors}},
		{Requests: 21, Server: served(20), EngineCPU: 100 * ms, ClientCPU: ms, Frequency: 0.9, GPUs: gpus, Flags: []measure.Flag{measure.FlagFrequency}},
		{Requests: 4}, // its end was not read
	}
	if diff := cmp.Diff(want, Fill(given, readings), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(given[0].Flags) != 1 || given[0].Server.Requests != 0 {
		t.Errorf("the windows that were given changed: %+v", given[0])
	}
	for _, few := range [][]Reading{nil, readings[:1]} {
		if got := Fill(given, few); got[0].Server.Requests != 0 || got[0].ClientCPU != 0 {
			t.Errorf("with %d readings: %+v", len(few), got[0])
		}
	}
	// A process that has ended is not known to have used negative time.
	readings[1].Engine = hostinfo.ProcessUsage{}
	if got := Fill(given, readings); got[0].EngineCPU != 0 {
		t.Errorf("an ended process used %v", got[0].EngineCPU)
	}
	// Nor is one that could not be read to have used in a window what it used since its start.
	readings[1].told = false
	readings[2].Machine, _ = hostinfo.CPUTimes() // its end was read, on systems that tell
	got := Fill(given, readings)
	if w := got[1]; w.EngineCPU != 0 || w.Foreign != 0 || w.Steal != 0 {
		t.Errorf("after a reading that is missing the server used %v, others %v, the hypervisor %v", w.EngineCPU, w.Foreign, w.Steal)
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	// Two cores for 1 s: 1.4 s busy, of which 0.8 s ours; 0.1 s stolen, 0.5 s idle.
	machine := hostinfo.CPUUsage{Busy: 1400 * ms, Idle: 500 * ms, Steal: 100 * ms}
	if steal, foreign := stolen(machine), foreign(machine, 800*ms); steal != 0.05 || foreign < 0.299 || foreign > 0.301 {
		t.Errorf("steal %v, foreign %v, want 0.05 and 0.3", steal, foreign)
	}
	// Counters tick differently: ours may seem to exceed the machine's.
	if foreign := foreign(hostinfo.CPUUsage{Busy: 10 * ms, Idle: 90 * ms}, 20*ms); foreign != 0 {
		t.Errorf("foreign %v, want 0", foreign)
	}
	if steal, foreign := stolen(hostinfo.CPUUsage{}), foreign(hostinfo.CPUUsage{}, 0); steal != 0 || foreign != 0 {
		t.Errorf("of no time: %v, %v", steal, foreign)
	}
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
		"slower":           {measure.Window{Frequency: 0.969}, []measure.Flag{measure.FlagFrequency}},
		"faster":           {measure.Window{Frequency: 1.031}, []measure.Flag{measure.FlagFrequency}},
	} {
		if diff := cmp.Diff(c.want, flags(c.w, time.Second)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
