package meter

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
)

// Sources says which figures of GPUs, energy, and the server's process are available.
type Sources struct {
	GPUs      []hostinfo.GPUUsage
	GPUNote   string // reason why there are no GPUs
	CPUEnergy error  // reason why the CPU's energy cannot be read; nil if it can
	// reason why the CPU time of the server's process is unknown; "" if it is known
	Process string
	Memory  string // reason why its memory is unknown; "" if it is known
}

// ReadSources returns the sources of this machine, on which the server is launched.
func ReadSources() Sources {
	reader, note := hostinfo.OpenGPUs()
	defer reader.Close()
	_, err := hostinfo.CPUEnergy()
	return Sources{GPUs: reader.Read(), GPUNote: note, CPUEnergy: err}
}

// pageTime bounds the reading of a metrics page.
const pageTime = 10 * time.Second

// PageURL returns the URL of a metrics page. It adds the scheme if text has none. "" stays as it
// is.
func PageURL(text string) string {
	if text == "" || strings.Contains(text, "://") {
		return text
	}
	return "http://" + text
}

// ReadPage returns the sources on the metrics page of a server that was not launched from here.
// Without a URL nothing is known. It fails if it cannot read the page.
func ReadPage(ctx context.Context, url string) (Sources, error) {
	const foreign = "this machine cannot see the process of a remote server"
	s := Sources{Process: foreign, CPUEnergy: errors.New("this machine cannot read the energy of a remote server's machine")}
	if url == "" {
		s.GPUNote, s.Memory = "runner.metrics_url names no metrics page", foreign+", and runner.metrics_url names no metrics page"
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}} // not by the environment's proxy
	defer client.CloseIdleConnections()
	seen, err := readPage(ctx, client, url)
	if err != nil {
		return Sources{}, err
	}
	s.GPUs, s.GPUNote = seen.gpus, "there are no GPUs on the metrics page "+url
	if seen.memory == 0 {
		s.Memory = foreign + ", and there is no nv_cpu_memory_used_bytes on the metrics page " + url
	}
	return s, nil
}

// Lack returns the reason why a metric cannot be measured, "" if it can.
func (s Sources) Lack(metric measure.Metric) string {
	told := func(figures ...float64) bool { return !slices.ContainsFunc(figures, math.IsNaN) }
	switch metric {
	case measure.CPU:
		return s.Process
	case measure.Memory:
		return s.Memory
	case measure.GPUMemory:
		return s.lackOf(func(g hostinfo.GPUUsage) bool { return g.MemoryTotal > 0 || g.MemoryUsed > 0 })
	case measure.GPUUtilization:
		return s.lackOf(func(g hostinfo.GPUUsage) bool { return told(g.Utilization) })
	case measure.GPUPower:
		return s.lackOf(func(g hostinfo.GPUUsage) bool { return told(g.Power) })
	case measure.Energy:
		// A GPU without an energy counter has the integral of its power.
		gpus := s.lackOf(func(g hostinfo.GPUUsage) bool { return told(g.Energy) || told(g.Power) })
		if gpus == "" || s.CPUEnergy == nil {
			return ""
		}
		return gpus + "; " + s.CPUEnergy.Error()
	}
	return ""
}

// lackOf returns the reason why no GPU has a figure, "" if one has it.
func (s Sources) lackOf(told func(hostinfo.GPUUsage) bool) string {
	switch {
	case slices.ContainsFunc(s.GPUs, told):
		return ""
	case len(s.GPUs) > 0:
		return "the GPU's driver does not report it"
	case s.GPUNote == "":
		return "no GPU can be read"
	}
	return s.GPUNote
}
