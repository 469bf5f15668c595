package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/profile"
	"tuner/runner"
	"tuner/spec"
)

// Setup has everything that a gate depends on, except the time.
type Setup struct {
	Spec        spec.Gate
	Baseline    *Subject // nil if no baseline is measured
	Candidate   Subject
	Requests    runner.Requests // the same for both sides
	Order       []int           // of Requests (runner.Job)
	Load        measure.Load
	Tool        string          // program version
	Machine     json.RawMessage // hostinfo.Host
	Fingerprint string
	// Models are the setups of several models on one server, each as of a gate of it alone; empty for one. The sides
	// above then have what is the server's: the runtime, the engine and the libraries.
	Models []Setup
}

// Subject is a side's model with its configuration and its server.
type Subject struct {
	profile.Subject
	Instances int    // number of instances in the configuration
	Runtime   string // ONNX Runtime build: flavour@version
	Library   string
	Engine    string // program file of another tuner; "" for this one
}

// Open reads the models of a gate, and determines requests and load. place returns the facts of the
// machine for a side's ONNX Runtime; its argument is the side's field runtime. Errors are
// profile.InputErrors. The caller fills in the runtimes.
func Open(g spec.Gate, host hostinfo.Host, place func(runtime string) profile.Place) (Setup, error) {
	if len(g.Models) > 0 {
		return openSeveral(g, host, place)
	}
	s := Setup{Spec: g, Load: g.Load, Fingerprint: host.Fingerprint()}
	var err error
	if s.Candidate, err = open(g.Profile("candidate", g.Candidate), host, place(g.Candidate.Runtime)); err != nil {
		return Setup{}, err
	}
	s.Candidate.Engine = g.Candidate.Engine
	of := s.Candidate
	if g.Baseline.Model != "" {
		baseline, err := open(g.Profile("baseline", g.Baseline), host, place(g.Baseline.Runtime))
		if err != nil {
			return Setup{}, err
		}
		baseline.Engine = g.Baseline.Engine
		if err := sameInputs(g.Path, baseline, s.Candidate); err != nil {
			return Setup{}, err
		}
		s.Baseline, of = &baseline, baseline
	}
	inputs := g.Profile("load.inputs", g.Candidate)
	if s.Requests, err = profile.Requests(inputs, of.Subject); err != nil {
		return Setup{}, &profile.InputError{Err: fmt.Errorf("%s: load.inputs: %w", g.Path, err)}
	}
	s.Order = of.Subject.Order(inputs, len(s.Requests))
	if trace := s.Candidate.Trace; trace != nil && s.Load.RequestRate == 0 {
		s.Load.RequestRate = trace.Rate()
	}
	if s.Load.RequestRate > 0 {
		if err := profile.CheckPeriod(g.Path, s.Candidate.Arrivals(g.Arrivals), s.Load.RequestRate, g.Budget); err != nil {
			return Setup{}, err
		}
	}
	if s.Load.Concurrency == 0 && s.Load.RequestRate == 0 {
		s.Load.Concurrency = usualConcurrency(of)
	}
	if s.Machine, err = json.Marshal(host); err != nil {
		return Setup{}, fmt.Errorf("cannot encode the facts of the machine: %w", err)
	}
	return s, nil
}

func open(p spec.Profile, host hostinfo.Host, there profile.Place) (Subject, error) {
	subject, err := profile.OpenSubject(p, there)
	if err != nil {
		return Subject{}, err
	}
	return Subject{Subject: subject, Instances: profile.FactsOf(subject, host).BaseInstances}, nil
}

// usualConcurrency returns the load that keeps every instance busy with full batches while as many
// requests wait. This is Triton's rule of thumb, 2 · batch · instances.
func usualConcurrency(s Subject) int {
	return 2 * max(1, int(s.Config.GetMaxBatchSize())) * s.Instances
}

// sameInputs checks that both sides accept the same requests.
func sameInputs(path string, baseline, candidate Subject) error {
	list := func(s Subject) []string {
		var names []string
		for _, in := range s.Config.GetInput() {
			names = append(names, fmt.Sprintf("%s %s", in.GetName(), in.GetDataType()))
		}
		slices.Sort(names)
		return names
	}
	a, b := list(baseline), list(candidate)
	if !slices.Equal(a, b) {
		return &profile.InputError{Err: fmt.Errorf("%s: candidate: takes the inputs %q, but the baseline takes %q: both must serve the same requests", path, b, a)}
	}
	return nil
}

// poolName is the pool of a gate's jobs: each engine serves one configuration.
const poolName = "gate"

// variantsFolder is the folder of the variants in a gate's output folder.
const variantsFolder = "variants"

// Job prepares what an engine needs to serve a side: the repository in the output folder, and the
// job of one window.
func (s Setup) Job(side Subject) (runner.Job, error) {
	job, _, err := s.job(side)
	return job, err
}

// job is Job with the variant that is served.
func (s Setup) job(side Subject) (runner.Job, modelrepo.Variant, error) {
	fail := func(err error) (runner.Job, modelrepo.Variant, error) { return runner.Job{}, modelrepo.Variant{}, err }
	text, err := modelconfig.FormatJSON(side.Config)
	if err != nil {
		return fail(fmt.Errorf("cannot print configuration: %w", err))
	}
	root, err := s.variants()
	if err != nil {
		return fail(err)
	}
	variant, err := modelrepo.Build(root, side.Files[0].Source, side.Config)
	if err != nil {
		return fail(withRemedy(err))
	}
	return runner.Job{
		Pool: poolName, Repository: variant.Dir, Library: side.Library, Model: variant.Model, Config: string(text), Instances: side.Instances,
		MaxBatch: int(side.Config.GetMaxBatchSize()), Requests: s.Requests, Order: s.Order, AnswerSize: modelconfig.AnswerSize(side.Config, s.Load.BatchSize), Load: s.Load, Arrivals: side.Arrivals(s.Spec.Arrivals), Windows: 1, Window: s.Spec.Window,
	}, variant, nil
}

// variants returns the folder of the variants.
func (s Setup) variants() (string, error) {
	root, err := filepath.Abs(filepath.Join(s.Spec.Output, variantsFolder))
	if err != nil {
		return "", fmt.Errorf("cannot resolve %q: %w", s.Spec.Output, err)
	}
	return root, nil
}

// withRemedy adds what to do about a full disk.
func withRemedy(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w; free some space and run the same command again", err)
	}
	return err
}

// Differences describes how two machines differ, from the known facts; none for the same machine.
func Differences(then, now json.RawMessage) []string {
	var a, b hostinfo.Host
	if json.Unmarshal(then, &a) != nil || json.Unmarshal(now, &b) != nil {
		return nil
	}
	var list []string
	add := func(what, then, now string) {
		if then != now {
			list = append(list, fmt.Sprintf("%s: %s then, %s now", what, then, now))
		}
	}
	add("CPU", a.CPU.Model, b.CPU.Model)
	add("cores", coresText(a), coresText(b))
	add("CPU features", fmt.Sprint(a.CPU.Features), fmt.Sprint(b.CPU.Features))
	add("memory", gibibytes(a), gibibytes(b))
	add("NUMA nodes", fmt.Sprint(len(a.NUMA)), fmt.Sprint(len(b.NUMA)))
	add("GPUs", gpuNames(a), gpuNames(b))
	add("system", a.OS+"/"+a.Arch, b.OS+"/"+b.Arch)
	return list
}

func coresText(h hostinfo.Host) string {
	text := fmt.Sprintf("%d of %d", len(h.CPU.Allowed), h.CPU.Logical)
	if h.CPU.Quota > 0 {
		text += fmt.Sprintf(" with a quota of %g", h.CPU.Quota)
	}
	return text
}

func gibibytes(h hostinfo.Host) string {
	return fmt.Sprintf("%.0f GiB", float64(h.Memory.Usable())/(1<<30))
}

func gpuNames(h hostinfo.Host) string {
	names := make([]string, len(h.GPUs))
	for i, gpu := range h.GPUs {
		names[i] = gpu.Name
	}
	return fmt.Sprint(names)
}
