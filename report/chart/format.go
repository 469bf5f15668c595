package chart

import (
	"io"
	"path/filepath"
	"slices"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report"
)

// Name is the name of the charts in analyze.yaml.
const Name = "png"

// Files of the charts, relative to the output folder.
const (
	folder        = "plots"
	LatencyFile   = folder + "/throughput_vs_p99.png"
	LoadFile      = folder + "/throughput_vs_concurrency.png"
	GrowthFile    = folder + "/limits_vs_scale.png" // of several models
	ParetoFile    = folder + "/pareto.png"
	breakdownFile = folder + "/latency_breakdown.png"
	StagesFile    = "optim_Results.png" // OLive's name
	simpleFolder  = folder + "/simple"  // Model Analyzer's name; for the charts that the user asks for
)

// Format writes the charts.
type Format struct{}

// Name implements report.Format.
func (Format) Name() string { return Name }

// Files implements report.Format. Charts of GPUs are made only if there are GPUs. Several models have one
// chart, besides those that the user asks for.
func (Format) Files(r analyze.Result, _ report.Output) []report.File {
	var list []report.File
	add := func(path string, draw func(io.Writer, analyze.Result) error) {
		list = append(list, report.File{Path: filepath.FromSlash(path), Write: func(w io.Writer) error { return draw(w, r) }})
	}
	if len(r.Models) > 0 { // they have no common throughput and latency
		add(GrowthFile, WriteGrowth)
		for _, p := range r.Plots {
			add(simpleFolder+"/"+p.Name+".png", WritePlot(p))
		}
		return list
	}
	add(LatencyFile, WriteLatency)
	add(LoadFile, WriteLoads)
	for _, m := range []measure.Metric{measure.GPUMemory, measure.GPUUtilization, measure.GPUPower} {
		if isMeasured(r, m) {
			add(folder+"/"+string(m)+"_vs_p99.png", overLatency(m))
		}
	}
	for _, p := range r.Plots {
		add(simpleFolder+"/"+p.Name+".png", WritePlot(p))
	}
	add(ParetoFile, WritePareto)
	add(breakdownFile, WriteBreakdown)
	add(StagesFile, WriteStages)
	return list
}

// isMeasured reports whether some point has a value of the metric.
func isMeasured(r analyze.Result, m measure.Metric) bool {
	return slices.ContainsFunc(r.Configs, func(c analyze.Config) bool {
		return slices.ContainsFunc(c.Points, func(p analyze.Point) bool { _, ok := p.Values[m]; return ok })
	})
}
