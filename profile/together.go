package profile

import (
	"fmt"
	"path/filepath"
	"strings"

	"tuner/measure"
	"tuner/model/isolation"
	"tuner/model/modelrepo"
	"tuner/profile/campaign"
	"tuner/runner"
	"tuner/search"
)

// Several models are measured together: one process serves them from one repository, and each has the
// job of a campaign of it alone.

// partJobs returns a job with the parts of a trial of several models. A service trial is one of one of
// them: the candidate's process serves all from its repository, and this one alone gets requests.
func (e *Engines) partJobs(trial search.Trial) (runner.Job, error) {
	policies, err := campaign.Policies(e.setup.Processors, trial.Candidate)
	if err != nil {
		return runner.Job{}, err
	}
	job := runner.Job{Load: trial.Load}
	for i, part := range e.parts {
		name := part.setup.Subject.Name
		if len(trial.Sizes) > 0 && name != trial.Model {
			continue
		}
		one, err := part.ownJob(ownTrial(trial, name), policies, i)
		if err != nil {
			return runner.Job{}, fmt.Errorf("model %q: %w", name, err)
		}
		if len(trial.Sizes) > 0 {
			one.Policies = policies
			return one, nil
		}
		one.Percentiles = ownPercentiles(e.setup.Profile.Goal, one.Model)
		job.Parts = append(job.Parts, one)
	}
	if len(trial.Sizes) > 0 {
		return runner.Job{}, fmt.Errorf("cannot measure the service curve of model %q: the campaign does not have it", trial.Model)
	}
	job.Policies = policies
	return job, nil
}

// ownJob returns the job of one of several models, the one at an index of the policies, if there are any.
func (e *Engines) ownJob(own search.Trial, policies []isolation.Policy, i int) (runner.Job, error) {
	config, err := campaign.Served(e.setup.Subject.Config, own.Candidate, policies, i)
	if err != nil {
		return runner.Job{}, err
	}
	return e.jobOf(own, config)
}

// ownTrial returns what a trial asks of one of several models: its configuration, its traffic, and the
// limits on its figures without its name.
func ownTrial(trial search.Trial, model string) search.Trial {
	own := trial
	own.Candidate, own.Load, own.Worth = trial.Candidate.Of(model), trial.Load.Of(model), nil
	for _, c := range trial.Worth {
		if of, metric := c.Metric.Split(); of == model {
			c.Metric = metric
			own.Worth = append(own.Worth, c)
		}
	}
	return own
}

// ownPercentiles lists the latency percentiles of a model that the goal of several names.
func ownPercentiles(goal search.Goal, model string) []measure.Metric {
	var own []measure.Metric
	for _, m := range goal.Percentiles() {
		if of, metric := m.Split(); of == model {
			own = append(own, metric)
		}
	}
	return own
}

// group returns the repository with the variants of a candidate's models.
func (e *Engines) group(c search.Candidate) (string, error) {
	var variants []modelrepo.Variant
	var digests []string
	for _, part := range e.parts {
		v, err := part.variant(c.Of(part.setup.Subject.Name))
		if err != nil {
			return "", err
		}
		variants, digests = append(variants, v), append(digests, v.Digest)
	}
	if e.setup.Profile.IsPipeline() {
		v, err := e.variant(search.Candidate{})
		if err != nil {
			return "", err
		}
		variants, digests = append(variants, v), append(digests, v.Digest)
	}
	key := strings.Join(digests, " ")
	if g, ok := e.groups[key]; ok {
		return g.Dir, nil
	}
	root, err := filepath.Abs(filepath.Join(e.setup.Profile.Output, variantsFolder))
	if err != nil {
		return "", fmt.Errorf("cannot resolve %q: %w", e.setup.Profile.Output, err)
	}
	g, err := modelrepo.Together(root, variants...)
	if err != nil {
		return "", withRemedy(err)
	}
	e.groups[key] = g
	return g.Dir, nil
}
