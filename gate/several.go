package gate

import (
	"fmt"

	"tuner/gate/decide"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/modelrepo"
	"tuner/profile"
	"tuner/runner"
	"tuner/spec"
)

// Several models on one server are gated together: each side serves all of them from one repository, and all are
// under load at once. Each has its own metrics and limits, by its name, and the server has those of the process.

// openSeveral is Open for several models.
func openSeveral(g spec.Gate, host hostinfo.Host, place func(runtime string) profile.Place) (Setup, error) {
	s := Setup{Spec: g, Candidate: Subject{Engine: g.Candidate.Engine}}
	var shares []measure.Part
	for _, m := range g.Each() {
		own, err := Open(m, host, place)
		if err != nil {
			return Setup{}, err
		}
		s.Models = append(s.Models, own)
		s.Fingerprint, s.Machine, s.Candidate.Libraries = own.Fingerprint, own.Machine, own.Candidate.Libraries
		shares = append(shares, measure.Part{Model: m.Name, Concurrency: own.Load.Concurrency, RequestRate: own.Load.RequestRate, BatchSize: own.Load.BatchSize})
	}
	if s.Models[0].Baseline != nil {
		s.Baseline = &Subject{Engine: g.Baseline.Engine}
		s.Baseline.Libraries = s.Models[0].Baseline.Libraries
	}
	mix, err := measure.NewMix(shares...)
	if err != nil {
		return Setup{}, fmt.Errorf("%s: %w", g.Path, err)
	}
	s.Load = measure.Load{Scale: 1, Mix: mix}
	return s, nil
}

// Each lists the setups of several models, or the setup of one.
func (s Setup) Each() []Setup {
	if len(s.Models) == 0 {
		return []Setup{s}
	}
	return s.Models
}

// LoadText describes the load for people. Of several models it names the load of each.
func (s Setup) LoadText() string {
	if !s.Load.Mix.IsZero() {
		return s.Load.Mix.String()
	}
	return s.Load.String()
}

// CandidateJob prepares what an engine needs to serve the candidate (Job), with a part for each of several models.
func (s Setup) CandidateJob() (runner.Job, error) {
	return s.sideJob(s.Candidate, func(m Setup) Subject { return m.Candidate })
}

// BaselineJob is CandidateJob for the baseline, which must be there.
func (s Setup) BaselineJob() (runner.Job, error) {
	return s.sideJob(*s.Baseline, func(m Setup) Subject { return *m.Baseline })
}

// Part is the verdict on one of several models, or on their server.
type Part struct {
	Model   string         // "" the server: figures of its process
	Verdict decide.Verdict // of all criteria together; one that fails decides
}

// Name returns the model's name, or that of the server, for people.
func (p Part) Name() string {
	if p.Model == "" {
		return "server"
	}
	return p.Model
}

// Parts lists the verdict on each of several models, in the order of the file, and then on their server. It leaves out
// those of which nothing is judged. It is empty for one model.
func (r Result) Parts() []Part {
	if len(r.Setup.Models) == 0 {
		return nil
	}
	verdicts := map[string]decide.Verdict{}
	add := func(model string, v decide.Verdict) { verdicts[model] = both(verdicts[model], v) }
	for _, row := range r.Rows {
		model, _ := row.Metric.Split()
		add(model, row.Verdict)
	}
	for _, a := range r.Accuracy {
		add(a.Model, a.Verdict())
	}
	for _, model := range r.Outcome.Broken {
		add(model, decide.Fail)
	}
	var list []Part
	for _, m := range r.Setup.Models {
		if v, has := verdicts[m.Spec.Name]; has {
			list = append(list, Part{m.Spec.Name, v})
		}
	}
	if v, has := verdicts[""]; has {
		list = append(list, Part{"", v})
	}
	return list
}

func (s Setup) sideJob(server Subject, of func(Setup) Subject) (runner.Job, error) {
	if len(s.Models) == 0 {
		return s.Job(server)
	}
	job := runner.Job{Pool: poolName, Library: server.Library, Load: s.Load, Windows: 1, Window: s.Spec.Window}
	root, err := s.variants()
	if err != nil {
		return runner.Job{}, err
	}
	var variants []modelrepo.Variant
	for _, m := range s.Models {
		part, variant, err := m.job(of(m))
		if err != nil {
			return runner.Job{}, fmt.Errorf("model %q: %w", m.Spec.Name, err)
		}
		job.Parts, variants = append(job.Parts, part), append(variants, variant)
	}
	together, err := modelrepo.Together(root, variants...)
	if err != nil {
		return runner.Job{}, withRemedy(err)
	}
	job.Repository = together.Dir
	return job, nil
}
