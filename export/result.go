package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"tuner/internal/durable"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/provider"
	"tuner/profile/journal"
	"tuner/report/result"
	"tuner/search"
	"tuner/search/verdict"
)

// Model is an analyzed campaign's model with the configuration that is deployed.
type Model struct {
	Name          string              // that it is served under
	Input         string              // folder of the results, as the user named it
	Configuration string              // name of the configuration in the results
	Config        *modelconfig.Config // of the configuration, without the warm-up that the repository adds
	Precision     string
	Provider      string              // execution provider
	Runtime       string              // ONNX Runtime build, flavour@version
	Options       modelconfig.Options // of the configuration's sessions
	Instances     int
	Threads       int // of each instance; 0: a thread for each core
	SHA256        string
	State         verdict.State                       // of the answer that the results give; "" in results without one
	Kept          *float64                            // probability that it keeps all constraints, 0..1; nil where that is not known
	Load          measure.Load                        // its best load within the constraints
	Values        map[measure.Metric]measure.Estimate // there
	Memory        float64                             // bytes that the server's process holds with its largest batches, loading included; 0 unknown
	LaunchTime    time.Duration                       // of an engine with the model, the longest that was measured; 0 unknown
	Cosine        *float64                            // of its outputs with the original's, of the output that agrees least; nil where nothing was compared
	Server        string                              // that the figures come from, "" the bundled engine
	Remote        bool                                // it ran already, on a machine of which nothing is known
	Host          hostinfo.Host                       // that it was measured on; zero where that is not known
	Fingerprint   string                              // of the host, "" likewise
}

// folder is the model's deployable folder, which `tuner analyze` wrote.
func (m Model) folder() string { return filepath.Join(m.Input, "repository", m.Name) }

// readModel reads an analyzed campaign's result.
func readModel(input string) (Model, error) {
	path := filepath.Join(input, result.FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Model{}, inputErrorf("no analyzed result in %q: run 'tuner analyze --input %s' first, or name its output folder", input, input)
	}
	if err != nil {
		return Model{}, inputErrorf("cannot read %q: %w", path, durable.Cause(err))
	}
	m, err := parseResult(path, text)
	if err != nil {
		return Model{}, err
	}
	m.Input = filepath.Clean(input)
	return m, checkFolder(m)
}

// checkFolder compares the deployable folder's configuration with the result's: the folder may come
// from an earlier analysis.
func checkFolder(m Model) error {
	path := filepath.Join(m.folder(), "config.pbtxt")
	text, err := os.ReadFile(path)
	if err != nil {
		return inputErrorf("cannot read %q: %w; 'tuner analyze' writes it (formats: repository)", path, durable.Cause(err))
	}
	config, err := modelconfig.Parse(path, text)
	if err != nil {
		return &InputError{err}
	}
	config = modelconfig.Clone(config)
	config.ModelWarmup = m.Config.GetModelWarmup()
	if !modelconfig.Equal(config, m.Config) {
		return inputErrorf("%s is not the configuration %s of %s; 'tuner analyze' writes both anew (formats: repository)", path, m.Configuration, result.FileName)
	}
	return nil
}

// modelName matches the names that are folders everywhere, and need no quotes anywhere.
var modelName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// parseResult reads result.json. path is for messages.
func parseResult(path string, text []byte) (Model, error) {
	d, err := result.Parse(path, text)
	if err != nil {
		return Model{}, &InputError{err}
	}
	switch {
	case !modelName.MatchString(d.Model):
		return Model{}, inputErrorf("%s: model: the name %q cannot be a folder; allowed are letters, digits and _ . - (not first)", path, d.Model)
	case d.Best == "":
		return Model{}, &InfeasibleError{fmt.Errorf("cannot export %q, since nothing satisfies the constraints: %s", path, d.Summary)}
	}
	i := slices.IndexFunc(d.Configurations, func(c result.Configuration) bool { return c.Name == d.Best })
	if i < 0 {
		return Model{}, inputErrorf("%s: best: there is no configuration %q", path, d.Best)
	}
	best := d.Configurations[i]
	m := Model{
		Name: d.Model, Configuration: best.Name, Precision: best.Setup.Precision, Provider: best.Setup.Provider, Runtime: best.Setup.Runtime,
		Instances: 1, State: d.Answer.State, Kept: d.Answer.Probability,
		Cosine: cosine(d.Variants, best.Setup.Precision, search.Place{Provider: best.Setup.Provider, Runtime: best.Setup.Runtime}),
	}
	if n := best.Setup.Instances; n != nil {
		m.Instances = max(1, *n)
	}
	if best.BestLoad != nil {
		m.Load = *best.BestLoad
	}
	if m.Config, err = modelconfig.Parse(path+": config of "+best.Name, []byte(best.Config)); err != nil {
		return Model{}, &InputError{err}
	}
	if m.Config.GetName() != d.Model {
		return Model{}, inputErrorf("%s: model: %q is configured as %q", path, d.Model, m.Config.GetName())
	}
	if m.Options, err = modelconfig.ORTOptions(m.Config); err != nil {
		return Model{}, inputErrorf("%s: config of %s: %w", path, best.Name, err)
	}
	m.Threads = m.sessionThreads()
	if d.Origin != nil {
		for _, file := range d.Origin.Models {
			if file.Precision == m.Precision {
				m.SHA256 = file.SHA256
			}
		}
	}
	if err := m.addFigures(d, best); err != nil {
		return Model{}, inputErrorf("%s: machine: %w", path, err)
	}
	return m, checkFigures(path, m)
}

// Modes of servers, as result.json has them.
const (
	modeBundled = "bundled"
	modeRemote  = "remote"
)

// serverOf is the server that the figures of the search or of the finals come from.
func serverOf(d result.Result, confirmed bool) journal.ServerInfo {
	bundled := journal.ServerInfo{Mode: modeBundled}
	switch {
	case d.Origin == nil:
		return bundled
	case confirmed && d.Origin.Finals != nil:
		return *d.Origin.Finals
	case d.Origin.Server != nil:
		return *d.Origin.Server
	}
	return bundled
}

// addFigures adds what was measured of the configuration: the figures at its best load, their
// server and machine, and the longest launch at any load. Memory is the one figure of the
// configuration. Older results have none: there it is the most of any load. The memory of a server
// that ran already is unknown, since the figure is that of its whole machine.
func (m *Model) addFigures(d result.Result, best result.Configuration) error {
	for _, p := range best.Points {
		server := serverOf(d, p.Confirmed)
		isRemote := server.Mode == modeRemote
		m.LaunchTime = max(m.LaunchTime, seconds(p.Launch))
		if p.Searched != nil {
			m.LaunchTime = max(m.LaunchTime, seconds(p.Searched.Launch))
		}
		if !isRemote {
			m.Memory = max(m.Memory, p.Values[measure.Memory].Value)
		}
		if p.Load != m.Load {
			continue
		}
		m.Values, m.Remote = map[measure.Metric]measure.Estimate{}, isRemote
		for metric, e := range p.Values {
			m.Values[metric] = e.Measured()
		}
		if server.Mode != modeBundled {
			m.Server = p.Server
		}
		if isRemote || d.Origin == nil {
			continue
		}
		m.Fingerprint = d.Origin.Fingerprint
		if d.Machine != nil {
			if err := json.Unmarshal(d.Machine, &m.Host); err != nil {
				return err
			}
		}
	}
	if best.Memory != nil && best.Memory.Value > 0 && !m.Remote {
		m.Memory = best.Memory.Value
	}
	return nil
}

// ownThreads is the accelerator of the configuration that has threads of its own only (OpenVINO):
// ONNX Runtime's number does not reach it. It is nil if there is none.
func (m Model) ownThreads() *modelconfig.Accelerator {
	i := slices.IndexFunc(m.Options.CPUAccelerators, func(a modelconfig.Accelerator) bool { return provider.Of(a.Name).Threads.Only })
	if i < 0 {
		return nil
	}
	return &m.Options.CPUAccelerators[i]
}

// sessionThreads is how many threads an instance has; 0: one for each core. Operators side by side
// have threads of their own, and the thread that runs the session belongs to both kinds.
func (m Model) sessionThreads() int {
	o := m.Options
	if a := m.ownThreads(); a != nil {
		n, _ := strconv.Atoi(a.Parameters[provider.Of(a.Name).Threads.Option]) // 0 where it is not set
		return max(0, n)
	}
	if !o.Parallel {
		return o.IntraOpThreads
	}
	if o.IntraOpThreads == 0 || o.InterOpThreads == 0 {
		return 0
	}
	return o.IntraOpThreads + o.InterOpThreads - 1
}

// knowsMachine reports whether the machine is known that the model was measured on.
func (m Model) knowsMachine() bool { return m.Host.CPU.Logical > 0 }

// The most that a figure may be, so that what is derived from it is still a number: of a load, of
// instances and threads, and of a value.
const (
	mostLoad  = 1e6
	mostCount = 1e4
	mostValue = 1e15
)

// isLoad reports whether a load is a concurrency or a rate, and not absurd.
func isLoad(l measure.Load) bool {
	return (l.Concurrency >= 1) != (l.RequestRate > 0) && l.Level() > 0 && l.Level() <= mostLoad && l.BatchSize >= 1 && l.BatchSize <= mostCount
}

// checkFigures refuses figures that nothing can be derived from.
func checkFigures(path string, m Model) error {
	rate, p99 := m.Values[measure.Throughput].Value, m.Values[measure.LatencyP99].Value
	switch {
	case !isLoad(m.Load):
		return inputErrorf("%s: best_load of %s: %s is no load", path, m.Configuration, m.Load)
	case m.Instances > mostCount || m.Threads > mostCount:
		return inputErrorf("%s: setup of %s: %d instances of %d threads cannot be", path, m.Configuration, m.Instances, m.Threads)
	case m.GPUs() > mostCount:
		return inputErrorf("%s: config of %s: %d GPUs cannot be", path, m.Configuration, m.GPUs())
	case m.Memory > mostValue:
		return inputErrorf("%s: memory of %s: %g cannot be", path, m.Configuration, m.Memory)
	case !(rate > 0) || !(p99 > 0):
		return inputErrorf("%s: %s has no throughput and latency_p99 at %s", path, m.Configuration, m.Load)
	}
	for metric, e := range m.Values {
		if e.Value < 0 || e.Value > mostValue {
			return inputErrorf("%s: %s of %s: %g cannot be", path, metric, m.Configuration, e.Value)
		}
	}
	return nil
}

// cosine is the least mean cosine of a variant's outputs in a place; nil where nothing was
// compared.
func cosine(variants []result.Variant, precision string, place search.Place) *float64 {
	for _, v := range variants {
		if v.Precision != precision {
			continue
		}
		report, ok := v.Accuracy[place.String()]
		if !ok {
			report = v.Accuracy[place.Provider] // where a single build was measured, places do not name it
		}
		if least, ok := report.LeastCosine(); ok {
			return &least
		}
		return nil
	}
	return nil
}

// GPUs is how many GPUs a server has that serves as was measured: of those that the configuration
// lists up to the last one, since a server numbers its GPUs from 0; without a list all of the
// machine's. 0 for CPUs alone.
func (m Model) GPUs() int { return m.gpusWith(max(1, len(m.Host.GPUs))) }

// leastGPUs is how many GPUs a server must have: instances that list none are content with one.
func (m Model) leastGPUs() int { return m.gpusWith(1) }

// gpusWith is how many GPUs the configuration takes where instances without a list are on so many.
func (m Model) gpusWith(unlisted int) int {
	n := 0
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

// Concurrency is how many requests are in flight at the load: of a rate, by Little's law.
func (m Model) Concurrency() int {
	if m.Load.Concurrency > 0 {
		return m.Load.Concurrency
	}
	latency := m.Values[measure.LatencyAvg].Value
	return max(1, int(math.Ceil(min(m.Load.RequestRate*latency, mostLoad))))
}

// hostPolicies lists the host policies that the configuration names.
func (m Model) hostPolicies() []string {
	var names []string
	for _, g := range m.Config.GetInstanceGroup() {
		if name := g.GetHostPolicy(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
