package tuned

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/mix"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/search/verdict"
)

// Model is the model of an analyzed campaign, with the configuration to deploy.
type Model struct {
	Name          string              // name under which it is served
	Input         string              // folder of the results, as the user named it
	Repository    string              // folder with the deployable model; "": that of the results
	Configuration string              // name of the configuration in the results
	Config        *modelconfig.Config // of the configuration, without the repository's warm-up
	Precision     string
	Provider      string              // execution provider
	Runtime       string              // ONNX Runtime build, flavour@version
	Options       modelconfig.Options // of the configuration's sessions
	Instances     int
	Threads       int // per instance; 0: a thread for each core. Another backend's are not known, and count as 1
	SHA256        string
	Operators     []addon.File  // libraries with operators of the model, as they were measured
	State         verdict.State // state of the results' answer; "" in results without one
	// Kept: probability that it keeps all constraints, 0..1; nil if unknown
	Kept   *float64
	Mix    mix.Mix                             // kinds of the measured requests; nil for one shape
	Load   measure.Load                        // its best load within the constraints
	Values map[measure.Metric]measure.Estimate // figures at that load
	// P99Limit is the limit on latency_p99 in the question, in seconds; 0 without one
	P99Limit float64
	// Memory: bytes of the server's process with its largest batches, including loading; 0 unknown
	Memory     float64
	LaunchTime time.Duration // longest measured launch of an engine with the model; 0 unknown
	// Cosine: cosine between its outputs and the original's, for the output with the least
	// agreement; nil if no output has one, or nothing was compared
	Cosine      *float64
	Server      string        // the measured server; "" the bundled engine
	Remote      bool          // the server was running already, on an unknown machine
	Host        hostinfo.Host // the measured machine; zero if unknown
	Fingerprint string        // of the host; "" if unknown
	// Together: it was measured under load together with the other models of its input, on one server. The
	// memory and the launch of the server are then those of the first of them, and the other figures its own.
	Together bool
	// Policies are values of the server's option --host-policy. They define the processors of the measured
	// machine on which its instances compute; none if it shares all cores.
	Policies []string
	// Limits of the question on the model's own figures
	Limits []search.Constraint
	// Stages are the models that a pipeline calls, in the profile's order; empty for other models. Each has what
	// belongs to its folder, and of the figures Calls and the queue time. Precision and Provider of the pipeline are
	// those of all stages, or "" where they differ.
	Stages []Model
	// Calls: of a stage: requests to it for each of the pipeline's
	Calls float64
}

// Folder returns the model's deployable folder from `tuner analyze`.
func (m Model) Folder() string {
	if m.Repository != "" {
		return filepath.Join(m.Repository, m.Name)
	}
	return filepath.Join(m.Input, "repository", m.Name)
}

// ownThreads returns the configuration's accelerator that has only its own threads (OpenVINO). ONNX
// Runtime's number does not affect it. It returns nil without such an accelerator.
func (m Model) ownThreads() *modelconfig.Accelerator {
	i := slices.IndexFunc(m.Options.CPUAccelerators, func(a modelconfig.Accelerator) bool { return provider.Of(a.Name).Threads.Only })
	if i < 0 {
		return nil
	}
	return &m.Options.CPUAccelerators[i]
}

// sessionThreads returns the number of threads of an instance; 0: one for each core. Operators that
// run side by side have their own threads. The thread that runs the session belongs to both kinds.
func (m Model) sessionThreads() int {
	if m.IsForeign() {
		return 1
	}
	o := m.Options
	if a := m.ownThreads(); a != nil {
		n, _ := strconv.Atoi(a.Parameters[provider.Of(a.Name).Threads.Option]) // 0 if it is not set
		return max(0, n)
	}
	intra, inter := o.Settings.Whole(sessionoption.IntraOpThreads), o.Settings.Whole(sessionoption.InterOpThreads)
	if o.Settings.Value(sessionoption.ExecutionMode) != sessionoption.Parallel {
		return intra
	}
	if intra == 0 || inter == 0 {
		return 0
	}
	return intra + inter - 1
}

// KnowsMachine reports whether the model's measured machine is known.
func (m Model) KnowsMachine() bool { return m.Host.CPU.Logical > 0 }

// GPUs returns the number of GPUs that a server needs to serve as measured. It is the position of
// the last GPU in the configuration's lists, since a server numbers its GPUs from 0. Without a list
// it is the number in the machine. It is 0 for CPUs only.
func (m Model) GPUs() int { return m.gpusWith(max(1, len(m.Host.GPUs))) }

// LeastGPUs returns the smallest number of GPUs of a server. Instances without a list need one.
func (m Model) LeastGPUs() int { return m.gpusWith(1) }

// gpusWith returns the number of GPUs of the configuration. unlisted is the number for instances
// without a list.
func (m Model) gpusWith(unlisted int) int {
	n := 0
	for _, s := range m.Stages {
		n = max(n, s.gpusWith(unlisted))
	}
	for _, g := range m.Config.GetInstanceGroup() {
		if g.GetKind() != configpb.ModelInstanceGroup_KIND_GPU {
			continue
		}
		if len(g.GetGpus()) == 0 {
			n = max(n, unlisted)
		}
		for _, id := range g.GetGpus() {
			n = max(n, 1, int(id)+1)
		}
	}
	return n
}

// Concurrency returns the number of requests in flight at the load. For a rate it comes from
// Little's law.
func (m Model) Concurrency() int {
	if m.Load.Concurrency > 0 {
		return m.Load.Concurrency
	}
	latency := m.Values[measure.LatencyAvg].Value
	return max(1, int(math.Ceil(min(m.Load.RequestRate*latency, mostLoad))))
}

// HostPolicies lists the host policies in the configuration.
func (m Model) HostPolicies() []string {
	var names []string
	for _, g := range m.Config.GetInstanceGroup() {
		if name := g.GetHostPolicy(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// QueueTime returns the mean queue time of all models' requests at their tuned loads.
//
// Each model is weighted by its requests per second, like the autoscaler's metric, which is one
// mean per server. So requests to the stages of a pipeline count too. If requests hardly wait, it returns a
// share of p99 instead, since a queue within the noise needs no further server.
func QueueTime(models []Model) time.Duration {
	waited, requests := 0.0, 0.0 // s, and number of requests, per second
	for _, m := range models {
		waited += m.RequestRate() * m.queue()
		requests += m.RequestRate() * m.requests()
	}
	return seconds(waited / requests).Round(time.Microsecond)
}

// RequestRate returns the requests per second at the tuned load.
func (m Model) RequestRate() float64 {
	return m.Values[measure.Throughput].Value / float64(m.Load.BatchSize)
}

// queueShare is the share of p99 that is the smallest queue time for which a further server pays off.
const queueShare = 0.1

// queue returns the mean time of a client's request in queues at the tuned load, and at least the share of p99, in seconds.
func (m Model) queue() float64 {
	return max(m.waits(), queueShare*m.Values[measure.LatencyP99].Value)
}

// Queue returns the mean queue time at the tuned load, and at least a share of p99.
func (m Model) Queue() time.Duration { return seconds(m.queue()) }

// P99 returns the 99th percentile of the latency at the tuned load.
func (m Model) P99() time.Duration { return seconds(m.Values[measure.LatencyP99].Value) }

// P99Most returns the limit on that in the question; 0 without one.
func (m Model) P99Most() time.Duration { return seconds(m.P99Limit) }

func seconds(s float64) time.Duration { return time.Duration(min(s, mostLoad) * float64(time.Second)) }

// ThreadOption returns the option that would limit an instance's threads in the configuration.
func (m Model) ThreadOption() string {
	if own := m.ownThreads(); own != nil {
		row := provider.Of(own.Name)
		return row.Title + "'s " + row.Threads.Option
	}
	name, settings := sessionoption.IntraOpThreads, m.Options.Settings
	if settings.Value(sessionoption.ExecutionMode) == sessionoption.Parallel && settings.Whole(name) > 0 {
		name = sessionoption.InterOpThreads
	}
	return sessionoption.Of(name).Parameter
}

// Accelerators returns the accelerators that the configuration's instances use. Accelerators of
// GPUs count only if some instance runs on a GPU.
func (m Model) Accelerators() []modelconfig.Accelerator {
	if m.GPUs() == 0 {
		return m.Options.CPUAccelerators
	}
	return slices.Concat(m.Options.GPUAccelerators, m.Options.CPUAccelerators)
}
