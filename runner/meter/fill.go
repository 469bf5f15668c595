package meter

import (
	"math"
	"runtime"
	"slices"
	"time"

	"tuner/measure"
)

// Bounds of the validity flags (see package measure).
const (
	mostSteal     = 0.01 // share of the CPU time that this process may use
	mostForeign   = 0.10 // share of the CPU time that this process may use, and of a GPU's time
	mostThrottled = 0.01 // share of the allowed processors' time
	mostClientCPU = 0.80 // share of the CPU time that this process may use
	mostDrift     = 0.03 // share of the clock
)

// Fill completes the windows of a model from readings. model is its place in Options.Models. Reading
// i is the beginning of window i, and reading i+1 its end. Windows whose end was not read stay as
// they are.
//
// The windows of all models have the same edges, so one list of readings completes them all. Only
// Window.Server and the counts of package load are of the model. Everything else is of the server's
// process and of the machine, and equal in the windows of all models.
func Fill(model int, windows []measure.Window, readings []Reading) []measure.Window {
	complete := slices.Clone(windows)
	for i := range min(len(windows), len(readings)-1) {
		complete[i] = Complete(model, windows[i], readings[i], readings[i+1], readings[1].Frequency)
	}
	return complete
}

// Complete completes a window of a model, as Fill does, from the readings at its beginning and its
// end. clock is the frequency of the first of all windows in Hz, to which the window's frequency is
// relative. 0: unknown.
func Complete(model int, w measure.Window, from, to Reading, clock float64) measure.Window {
	w.Server, w.Stages = Served(from.Of(model), to.Of(model)), nil
	for _, part := range Composed(from.Of(model), to.Of(model)) {
		w.Stages = append(w.Stages, measure.StageStats{Model: part.Name, Server: part.ServerStats})
	}
	w.ClientCPU = to.Client - from.Client
	if from.told && to.told { // otherwise the CPU time would count from the start of the process
		// negative if one of several processes has ended
		w.EngineCPU = max(0, to.Engine.CPU-from.Engine.CPU)
	}
	usage := to.Machine.Since(from.Machine)
	others := takenOf(usage, max(to.Own-from.Own, w.EngineCPU+w.ClientCPU))
	w.Steal, w.Throttled = others.steal, others.throttled
	if from.told && to.told {
		w.Foreign = others.foreign
	}
	if usage.CPUs > 0 {
		w.Cores = usage.Quota * float64(usage.CPUs)
	}
	if clock > 0 {
		w.Frequency = to.Frequency / clock
	}
	w.GPUs = to.GPUs
	w.CPUEnergy, _ = to.Energy.Since(from.Energy) // 0 if the machine has no counter
	w.Flags = append(slices.Clone(w.Flags), flags(w, to.At.Sub(from.At))...)
	return w
}

// flags returns the flags that the machine's figures cause. between is the time between the two
// readings.
func flags(w measure.Window, between time.Duration) []measure.Flag {
	var flags []measure.Flag
	if float64(w.ClientCPU) > mostClientCPU*float64(between)*float64(runtime.GOMAXPROCS(0)) {
		flags = append(flags, measure.FlagClientCPU)
	}
	if w.Steal > mostSteal {
		flags = append(flags, measure.FlagSteal)
	}
	if w.Foreign > mostForeign {
		flags = append(flags, measure.FlagForeign)
	}
	if w.ForeignGPU() > mostForeign {
		flags = append(flags, measure.FlagForeignGPU)
	}
	if w.Throttled > mostThrottled {
		flags = append(flags, measure.FlagThrottled)
	}
	if w.Frequency > 0 && math.Abs(w.Frequency-1) > mostDrift {
		flags = append(flags, measure.FlagFrequency)
	}
	return flags
}
