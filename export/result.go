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
	"tuner/model/mix"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/profile/journal"
	"tuner/report/result"
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
	Threads       int // per instance; 0: a thread for each core
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
	// agreement; nil if nothing was compared
	Cosine      *float64
	Server      string        // the measured server; "" the bundled engine
	Remote      bool          // the server was running already, on an unknown machine
	Host        hostinfo.Host // the measured machine; zero if unknown
	Fingerprint string        // of the host; "" if unknown
}

// folder returns the model's deployable folder from `tuner analyze`.
func (m Model) folder() string {
	if m.Repository != "" {
		return filepath.Join(m.Repository, m.Name)
	}
	return filepath.Join(m.Input, "repository", m.Name)
}

// readModel reads an analyzed campaign's result: its best configuration, or the chosen one.
func readModel(input string, chosen *Chosen) (Model, error) {
	path := filepath.Join(input, result.FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Model{}, inputErrorf("no analyzed result in %q: run 'tuner analyze --input %s' first, or name its output folder", input, input)
	}
	if err != nil {
		return Model{}, inputErrorf("cannot read %q: %w", path, durable.Cause(err))
	}
	m, err := parseChosen(path, text, chosen)
	if err != nil {
		return Model{}, err
	}
	m.Input = filepath.Clean(input)
	return m, checkFolder(m)
}

// checkFolder compares the deployable folder's configuration with the result's. The folder may come
// from an earlier analysis.
func checkFolder(m Model) error {
	path := filepath.Join(m.folder(), "config.pbtxt")
	text, err := os.ReadFile(path)
	if err != nil {
		return inputErrorf("cannot read %q: %w; run 'tuner analyze' to write it (formats: repository)", path, durable.Cause(err))
	}
	config, err := modelconfig.Parse(path, text)
	if err != nil {
		return &InputError{err}
	}
	config = modelconfig.Clone(config)
	config.ModelWarmup = m.Config.GetModelWarmup()
	if !modelconfig.Equal(config, m.Config) {
		return inputErrorf("%s is not the configuration %s of %s; run 'tuner analyze' to write both again (formats: repository)", path, m.Configuration, result.FileName)
	}
	return nil
}

// modelName matches names that are valid folder names everywhere, and need no quotes.
var modelName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// parseChosen reads the chosen configuration of result.json, or with nil the best one. The states of an
// answer are those of the best one alone.
func parseChosen(path string, text []byte, chosen *Chosen) (Model, error) {
	d, err := result.Parse(path, text)
	if err != nil {
		return Model{}, &InputError{err}
	}
	repository := ""
	if chosen != nil && chosen.Configuration != d.Best {
		d.Best, repository, d.Answer = chosen.Configuration, chosen.Repository, result.Answer{}
	}
	switch {
	case len(d.Models) > 0:
		return Model{}, inputErrorf("cannot export %q: no target takes several models of one server yet; serve the folder repository beside it", path)
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
		Repository: repository, Name: d.Model, Configuration: best.Name, Precision: best.Setup.Precision, Provider: best.Setup.Provider, Runtime: best.Setup.Runtime,
		Instances: 1, State: d.Answer.State, Kept: d.Answer.Probability, Mix: d.Mix,
		Cosine: cosine(d.Variants, best.Setup.Precision, search.Place{Provider: best.Setup.Provider, Runtime: best.Setup.Runtime}),
	}
	if padding, set := best.Settings.Get(search.KnobPadding); set && m.Mix != nil {
		how, err := mix.ParsePadding(string(padding))
		if err == nil {
			m.Mix, err = how.Padded(m.Mix)
		}
		if err != nil {
			return Model{}, inputErrorf("%s: padding: %w", path, err)
		}
	}
	for _, c := range d.Goal.Constraints {
		if c.Metric == measure.LatencyP99 && c.Max != nil {
			m.P99Limit = *c.Max
		}
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
		m.Operators = d.Origin.Operators
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

// Modes of servers in result.json.
const (
	modeBundled = "bundled"
	modeRemote  = "remote"
)

// serverOf returns the server that measured the search or the finals.
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

// addFigures adds the measurements of the configuration: the figures at its best load, their server
// and machine, and the longest launch at any load.
//
// A configuration has one memory figure. Older results have none, so the largest of any load is
// used. The memory of a server that was running already is unknown, since its figure covers the
// whole machine.
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

// knowsMachine reports whether the model's measured machine is known.
func (m Model) knowsMachine() bool { return m.Host.CPU.Logical > 0 }

// Upper limits of figures: of a load, of instances and threads, and of a value. Values derived from
// them stay finite.
const (
	mostLoad  = 1e6
	mostCount = 1e4
	mostValue = 1e15
)

// isLoad reports whether a load is a concurrency or a rate within the limits.
func isLoad(l measure.Load) bool {
	return (l.Concurrency >= 1) != (l.RequestRate > 0) && l.Level() > 0 && l.Level() <= mostLoad && l.BatchSize >= 1 && l.BatchSize <= mostCount
}

// checkFigures refuses figures from which no deployment can be derived.
func checkFigures(path string, m Model) error {
	rate, p99 := m.Values[measure.Throughput].Value, m.Values[measure.LatencyP99].Value
	switch {
	case !isLoad(m.Load):
		return inputErrorf("%s: best_load of %s: %s is not a load", path, m.Configuration, m.Load)
	case m.Instances > mostCount || m.Threads > mostCount:
		return inputErrorf("%s: setup of %s: %d instances of %d threads are impossible", path, m.Configuration, m.Instances, m.Threads)
	case m.GPUs() > mostCount:
		return inputErrorf("%s: config of %s: %d GPUs are impossible", path, m.Configuration, m.GPUs())
	case m.P99Limit < 0 || m.P99Limit > mostValue:
		return inputErrorf("%s: constraints: a latency_p99 of %g is impossible", path, m.P99Limit)
	case m.Memory > mostValue:
		return inputErrorf("%s: memory of %s: %g is impossible", path, m.Configuration, m.Memory)
	case !(rate > 0) || !(p99 > 0):
		return inputErrorf("%s: %s has no throughput and latency_p99 at %s", path, m.Configuration, m.Load)
	}
	for metric, e := range m.Values {
		if e.Value < 0 || e.Value > mostValue {
			return inputErrorf("%s: %s of %s: %g is impossible", path, metric, m.Configuration, e.Value)
		}
	}
	return nil
}

// cosine returns the lowest mean cosine of a variant's outputs in a place; nil if nothing was
// compared.
func cosine(variants []result.Variant, precision string, place search.Place) *float64 {
	for _, v := range variants {
		if v.Precision != precision {
			continue
		}
		report, ok := v.Accuracy[place.String()]
		if !ok {
			report = v.Accuracy[place.Provider] // with a single build, places do not name it
		}
		if least, ok := report.LeastCosine(); ok {
			return &least
		}
		return nil
	}
	return nil
}

// GPUs returns the number of GPUs that a server needs to serve as measured. It is the position of
// the last GPU in the configuration's lists, since a server numbers its GPUs from 0. Without a list
// it is the number in the machine. It is 0 for CPUs only.
func (m Model) GPUs() int { return m.gpusWith(max(1, len(m.Host.GPUs))) }

// leastGPUs returns the smallest number of GPUs of a server. Instances without a list need one.
func (m Model) leastGPUs() int { return m.gpusWith(1) }

// gpusWith returns the number of GPUs of the configuration. unlisted is the number for instances
// without a list.
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

// Concurrency returns the number of requests in flight at the load. For a rate it comes from
// Little's law.
func (m Model) Concurrency() int {
	if m.Load.Concurrency > 0 {
		return m.Load.Concurrency
	}
	latency := m.Values[measure.LatencyAvg].Value
	return max(1, int(math.Ceil(min(m.Load.RequestRate*latency, mostLoad))))
}

// hostPolicies lists the host policies in the configuration.
func (m Model) hostPolicies() []string {
	var names []string
	for _, g := range m.Config.GetInstanceGroup() {
		if name := g.GetHostPolicy(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
