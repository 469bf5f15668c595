// Package doctor checks what this machine offers for serving models, and names a remedy for each
// problem.
//
// It stands above packages hostinfo, ortlib and provider/probe. It installs nothing and changes
// nothing.
package doctor

import (
	"context"
	"time"

	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/ort/ortlib/wheel"
	"tuner/ort/provider/probe"
)

// Diagnosis is the state of the machine. Its JSON form is for programs.
type Diagnosis struct {
	Fingerprint string        `json:"fingerprint"`
	Host        hostinfo.Host `json:"host"`
	// reason why servers may not bind memory to a NUMA node; "": they may, or there is one node
	MemoryPolicy string    `json:"memory_policy,omitempty"`
	Noise        *Noise    `json:"noise,omitempty"` // absent if the system does not report it
	Pip          string    `json:"pip,omitempty"`   // problem of python3 and pip; "": none
	Selected     string    `json:"selected"`        // the default build; "": none
	Runtimes     []Runtime `json:"runtimes"`
	Installable  []string  `json:"installable"` // builds that are not installed
}

// Noise is the work of other processes while the diagnosis waited, as shares of the machine's CPU
// time.
type Noise struct {
	Busy  float64 `json:"busy"`
	Steal float64 `json:"steal"`
}

// Runtime is an ONNX Runtime build with its execution providers.
type Runtime struct {
	Name      string     `json:"name"`
	Library   string     `json:"library"`
	Version   string     `json:"version"` // reported by the library
	Error     string     `json:"error,omitempty"`
	Providers []Provider `json:"providers"`
}

// Provider reports whether an execution provider created a session and ran a model.
type Provider struct {
	Name         string  `json:"name"`
	Works        bool    `json:"works"`
	Milliseconds float64 `json:"milliseconds,omitempty"`
	Error        string  `json:"error,omitempty"`
	// the model, if it fails where a tiny one runs; the model then is the cause
	Refused string `json:"refused,omitempty"`
}

// Prober tries a build with an execution provider and a model, in a separate process, since either
// may crash. An empty provider only opens the library. An empty model is a tiny one. The call
// blocks until there is an answer or ctx ends. It is probe.Prober's Try.
type Prober func(ctx context.Context, build ortlib.Build, provider, model string) probe.Answer

// Diagnose examines the machine. It tries providers with a model; "" is a tiny one.
func Diagnose(ctx context.Context, probe Prober, model string) (Diagnosis, error) {
	host := hostinfo.Read(ctx)
	d := Diagnosis{Fingerprint: host.Fingerprint(), Host: host, Noise: measureNoise(ctx), Runtimes: []Runtime{}, Installable: []string{}}
	if len(host.NUMA) > 1 {
		if err := hostinfo.BindsMemory(); err != nil {
			d.MemoryPolicy = err.Error()
		}
	}
	if err := wheel.Check(ctx); err != nil {
		d.Pip = err.Error()
	}
	builds, err := ortlib.Known()
	if err != nil {
		return Diagnosis{}, err
	}
	for _, known := range builds {
		if known.Selected {
			d.Selected = known.Name
		}
		switch {
		case known.Error != "":
			d.Runtimes = append(d.Runtimes, Runtime{Name: known.Name, Library: known.Library, Error: known.Error, Providers: []Provider{}})
		case known.Installed:
			d.Runtimes = append(d.Runtimes, probe.try(ctx, known.Build, model))
		default:
			d.Installable = append(d.Installable, known.Name)
		}
	}
	return d, ctx.Err()
}

// noiseTime is long enough for CPU times, whose resolution is 10 ms, to show some percent.
const noiseTime = time.Second

// measureNoise measures the work of other processes on the processors of this process. It waits for
// a moment, and compares the CPU times before and after.
func measureNoise(ctx context.Context) *Noise {
	allowed := hostinfo.ReadAllowance()
	before := allowed.Snapshot()
	select {
	case <-time.After(noiseTime):
	case <-ctx.Done():
		return nil
	}
	usage := allowed.Snapshot().Since(before)
	total := float64(usage.Total())
	if total <= 0 { // the system does not report CPU times
		return nil
	}
	return &Noise{Busy: float64(usage.Busy) / total, Steal: float64(usage.Steal) / total}
}

// try opens a build, and tries each of its providers with a model.
func (probe Prober) try(ctx context.Context, build ortlib.Build, model string) Runtime {
	r := Runtime{Name: build.Name(), Library: build.Library, Providers: []Provider{}}
	opened := probe(ctx, build, "", "")
	r.Version, r.Error = opened.Version, opened.Error
	for _, name := range opened.Providers {
		answer := probe(ctx, build, name, model)
		tried := Provider{Name: name, Works: answer.Error == "", Milliseconds: answer.Milliseconds, Error: answer.Reason()}
		if !tried.Works && model != "" && probe(ctx, build, name, "").Error == "" {
			tried.Refused = model
		}
		r.Providers = append(r.Providers, tried)
	}
	return r
}
