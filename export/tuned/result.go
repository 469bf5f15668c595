// Package tuned has the models of analyzed campaigns as an export deploys them: each with its
// configuration, its best load, and the figures there.
//
// It reads result.json and the deployable repository beside it (Read). From the models follow what a
// server of theirs needs: cores, memory, GPUs. Package export writes that for its targets. This package
// writes nothing, knows no target, and adds no decisions to those of the result.
package tuned

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/model/mix"
	"tuner/model/modelconfig"
	"tuner/ort/addon"
	"tuner/profile/journal"
	"tuner/report/result"
	"tuner/search"
	"tuner/spec/goals"
)

// Chosen is a configuration of a result, with its deployable model repository.
type Chosen struct {
	Configuration string // its name in result.json
	Repository    string // folder of a repository with the model
}

// Read reads an analyzed campaign's result in the folder input: its model, or several models of one server, in
// the best configuration or the chosen one.
// The exit code of the error is exit.Usage if the user can fix it, and exit.Infeasible if nothing satisfies the
// constraints.
func Read(input string, chosen *Chosen) ([]Model, error) {
	path := filepath.Join(input, result.FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Usagef("no analyzed result in %q: run 'tuner analyze --input %s' first, or name its output folder", input, words.ShellWord(input))
	}
	if err != nil {
		return nil, exit.Usagef("cannot read %q: %w", path, durable.Cause(err))
	}
	models, err := Parse(path, text, chosen)
	if err != nil {
		return nil, err
	}
	for i := range models {
		models[i].Input = filepath.Clean(input)
		for k := range models[i].Stages {
			models[i].Stages[k].Input = models[i].Input
		}
		for _, folder := range models[i].Folders() {
			if err := checkFolder(folder); err != nil {
				return nil, err
			}
		}
	}
	return models, nil
}

// checkFolder compares the deployable folder's configuration with the result's. The folder may come
// from an earlier analysis.
func checkFolder(m Model) error {
	path := filepath.Join(m.Folder(), "config.pbtxt")
	text, err := os.ReadFile(path)
	if err != nil {
		return exit.Usagef("cannot read %q: %w; run 'tuner analyze' to write it (formats: repository)", path, durable.Cause(err))
	}
	config, err := modelconfig.Parse(path, text)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	config = modelconfig.Clone(config)
	config.ModelWarmup = m.Config.GetModelWarmup()
	if !modelconfig.Equal(config, m.Config) {
		return exit.Usagef("%s is not the configuration %s of %s; run 'tuner analyze' to write both again (formats: repository)", path, m.Configuration, result.FileName)
	}
	return nil
}

// IsName reports whether a model's name is a valid folder name everywhere, and needs no quotes.
func IsName(name string) bool { return modelName.MatchString(name) }

var modelName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// Parse reads the chosen configuration of result.json, or with nil the best one. path appears in messages.
// The states of an answer are those of the best one alone.
func Parse(path string, text []byte, chosen *Chosen) ([]Model, error) {
	d, err := result.Parse(path, text)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	repository := ""
	if chosen != nil && chosen.Configuration != d.Best {
		d.Best, repository, d.Answer = chosen.Configuration, chosen.Repository, result.Answer{}
	}
	if d.Best == "" {
		return nil, exit.With(exit.Infeasible, fmt.Errorf("cannot export %q, since nothing satisfies the constraints: %s", path, d.Summary))
	}
	models, err := modelsOf(path, d, repository)
	return models, exit.With(exit.Usage, err)
}

// bestOf returns the best configuration of a result.
func bestOf(path string, d result.Result) (result.Configuration, error) {
	i := slices.IndexFunc(d.Configurations, func(c result.Configuration) bool { return c.Name == d.Best })
	if i < 0 {
		return result.Configuration{}, fmt.Errorf("%s: best: there is no configuration %q", path, d.Best)
	}
	return d.Configurations[i], nil
}

// modelOf makes the model of a result of one.
func modelOf(path string, d result.Result) (Model, error) {
	best, err := bestOf(path, d)
	if err != nil {
		return Model{}, err
	}
	m, err := folderOf(path, d, best)
	if err != nil {
		return Model{}, err
	}
	m.State, m.Kept, m.Mix = d.Answer.State, d.Answer.Probability, d.Mix
	if err := m.pad(best); err != nil {
		return Model{}, fmt.Errorf("%s: padding: %w", path, err)
	}
	for _, c := range d.Goal.Constraints {
		if c.Metric == measure.LatencyP99 && c.Max != nil {
			m.P99Limit = *c.Max
		}
		if !goals.IsServers(c.Metric) {
			m.Limits = append(m.Limits, c)
		}
	}
	if best.BestLoad != nil {
		m.Load = *best.BestLoad
	}
	if err := m.addFigures(d, best); err != nil {
		return Model{}, fmt.Errorf("%s: machine: %w", path, err)
	}
	return m, checkFigures(path, m)
}

// folderOf makes the model of a result with what belongs to its folder, and without load and figures.
func folderOf(path string, d result.Result, best result.Configuration) (Model, error) {
	if !IsName(d.Model) {
		return Model{}, fmt.Errorf("%s: model: the name %q cannot be a folder; allowed are letters, digits and _ . - (not first)", path, d.Model)
	}
	m := Model{
		Name: d.Model, Configuration: best.Name, Precision: best.Setup.Precision, Provider: best.Setup.Provider, Runtime: best.Setup.Runtime, Instances: 1,
		Cosine: cosine(d.Variants, best.Setup.Precision, search.Place{Provider: best.Setup.Provider, Runtime: best.Setup.Runtime}),
	}
	if n := best.Setup.Instances; n != nil {
		m.Instances = max(1, *n)
	}
	var err error
	if m.Config, err = modelconfig.Parse(path+": config of "+best.Name, []byte(best.Config)); err != nil {
		return Model{}, err
	}
	if m.Config.GetName() != d.Model {
		return Model{}, fmt.Errorf("%s: model: %q is configured as %q", path, d.Model, m.Config.GetName())
	}
	if m.Options, err = modelconfig.ORTOptions(m.Config); err != nil {
		return Model{}, fmt.Errorf("%s: config of %s: %w", path, best.Name, err)
	}
	m.Threads = m.sessionThreads()
	for _, p := range best.HostPolicies {
		policies, err := isolation.Parse([]string{p})
		if err != nil {
			return Model{}, fmt.Errorf("%s: host_policies of %s: %w", path, best.Name, err)
		}
		if slices.Contains(m.HostPolicies(), policies[0].Name) {
			m.Policies = append(m.Policies, p)
		}
	}
	if d.Origin != nil {
		named := m.Config.GetModelOperations().GetOpLibraryFilename()
		m.Operators = slices.DeleteFunc(slices.Clone(d.Origin.Operators), func(f addon.File) bool { return !slices.Contains(named, f.Path) })
		for _, file := range d.Origin.Models {
			if file.Precision == m.Precision {
				m.SHA256 = file.SHA256
			}
		}
	}
	return m, nil
}

// pad replaces the mix of a model by what its clients send.
func (m *Model) pad(best result.Configuration) error {
	padding, set := best.Settings.Get(search.KnobPadding)
	if !set || m.Mix == nil {
		return nil
	}
	how, err := mix.ParsePadding(string(padding))
	if err == nil {
		m.Mix, err = how.Padded(m.Mix)
	}
	return err
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

// Upper limits of figures: of a load, of instances and threads, and of a value. Values derived from
// them stay finite.
const (
	mostLoad  = 1e6
	mostCount = 1e4
	mostValue = 1e15
)

// IsLoad reports whether a load is a concurrency or a rate within the limits.
func IsLoad(l measure.Load) bool {
	return (l.Concurrency >= 1) != (l.RequestRate > 0) && l.Level() > 0 && l.Level() <= mostLoad && l.BatchSize >= 1 && l.BatchSize <= mostCount
}

// checkFigures refuses figures from which no deployment can be derived.
func checkFigures(path string, m Model) error {
	rate, p99 := m.Values[measure.Throughput].Value, m.Values[measure.LatencyP99].Value
	switch {
	case !IsLoad(m.Load):
		return fmt.Errorf("%s: best_load of %s: %s is not a load", path, m.Configuration, m.Load)
	case m.GPUs() > mostCount:
		return fmt.Errorf("%s: config of %s: %d GPUs are impossible", path, m.Configuration, m.GPUs())
	case m.P99Limit < 0 || m.P99Limit > mostValue:
		return fmt.Errorf("%s: constraints: a latency_p99 of %g is impossible", path, m.P99Limit)
	case m.Memory > mostValue:
		return fmt.Errorf("%s: memory of %s: %g is impossible", path, m.Configuration, m.Memory)
	case !(rate > 0) || !(p99 > 0):
		return fmt.Errorf("%s: %s has no throughput and latency_p99 at %s", path, m.Configuration, m.Load)
	}
	for _, s := range m.Folders() {
		if s.Instances > mostCount || s.Threads > mostCount {
			return fmt.Errorf("%s: setup of %s: %d instances of %d threads are impossible", path, m.Configuration, s.Instances, s.Threads)
		}
		if !(s.Calls >= 0 && s.Calls <= mostLoad) || s.Values[measure.QueueTime].Value > mostValue {
			return fmt.Errorf("%s: explanation of %s: %g calls of stage %q are impossible", path, m.Configuration, s.Calls, s.Name)
		}
	}
	for metric, e := range m.Values {
		if e.Value < 0 || e.Value > mostValue {
			return fmt.Errorf("%s: %s of %s: %g is impossible", path, metric, m.Configuration, e.Value)
		}
	}
	return nil
}

// cosine returns the lowest mean cosine of a variant's outputs in a place; nil if none has one, or
// nothing was compared.
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
