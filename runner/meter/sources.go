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

// Sources are what tells of GPUs, energy, and the server's process.
type Sources struct {
	GPUs      []hostinfo.GPUUsage
	GPUNote   string // why there are none
	CPUEnergy error  // why the energy of the CPU cannot be read; nil when it can
	Process   string // why the CPU time of the server's process is not known; "" when it is
	Memory    string // why its memory is not known; "" when it is
}

// ReadSources looks at this machine, on which the server is launched.
func ReadSources() Sources {
	reader, note := hostinfo.OpenGPUs()
	defer reader.Close()
	_, err := hostinfo.CPUEnergy()
	return Sources{GPUs: reader.Read(), GPUNote: note, CPUEnergy: err}
}

// pageTime bounds the reading of a metrics page.
const pageTime = 10 * time.Second

// PageURL is the URL of a metrics page that was given with or without its scheme; "" stays as it is.
func PageURL(text string) string {
	if text == "" || strings.Contains(text, "://") {
		return text
	}
	return "http://" + text
}

// ReadPage looks at the metrics page of a server that was not launched from here; without its URL nothing is known. The error says that
// the page cannot be read.
func ReadPage(ctx context.Context, url string) (Sources, error) {
	const foreign = "the process of a remote server is not known here"
	s := Sources{Process: foreign, CPUEnergy: errors.New("the energy of a remote server's machine is not known here")}
	if url == "" {
		s.GPUNote, s.Memory = "runner.metrics_url names no metrics page that would tell", foreign+", and runner.metrics_url names no metrics page that would tell"
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

// Lack says why a metric cannot be measured there; "" when it can.
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
		// Without a counter a GPU's energy is its power over the time.
		gpus := s.lackOf(func(g hostinfo.GPUUsage) bool { return told(g.Energy) || told(g.Power) })
		if gpus == "" || s.CPUEnergy == nil {
			return ""
		}
		return gpus + "; " + s.CPUEnergy.Error()
	}
	return ""
}

// lackOf says why no GPU tells a figure; "" when one does.
func (s Sources) lackOf(told func(hostinfo.GPUUsage) bool) string {
	switch {
	case slices.ContainsFunc(s.GPUs, told):
		return ""
	case len(s.GPUs) > 0:
		return "the GPU's driver does not tell it"
	case s.GPUNote == "":
		return "no GPU can be read"
	}
	return s.GPUNote
}
