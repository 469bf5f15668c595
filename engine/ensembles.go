package engine

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/engine/ensemble"
	"tuner/engine/served"
	"tuner/model/modelconfig"
)

// Step implements ensemble.Server.
func (l *loader) Step(name, model string) (id string, others []string) {
	own, others := l.candidates(name, model)
	id = pick(own, others, func(id string) bool { return l.Serves(id) || l.unfetched[id] != nil || l.Config(id) != nil })
	if id == own {
		return id, nil
	}
	return id, append(others, own)
}

// beside lists the further models that Triton loads with ensembles: with namespaces, models of all
// repositories that have the name of a step, and the steps of these.
func (l *loader) beside(names []string) (beside []string) {
	if !l.options.Namespacing {
		return nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	for queue := names; len(queue) > 0; queue = queue[1:] {
		for _, step := range l.Config(queue[0]).GetEnsembleScheduling().GetStep() {
			for _, id := range l.identities(step.GetModelName(), Override{}) {
				if !seen[id] && l.hasFolder(id) {
					seen[id] = true
					beside, queue = append(beside, id), append(queue, id)
				}
			}
		}
	}
	return beside
}

// step returns the identity of a step's model, among those that serve. With no such model, or
// several, it is that of the ensemble's repository. The caller holds Server.mu.
func (s *Server) step(ensemble, model string) string {
	own, others := s.candidates(ensemble, model)
	return cmp.Or(pick(own, others, s.serves), own)
}

// serves reports whether a version of a model is ready. The caller holds Server.mu.
func (s *Server) serves(id string) bool { return s.entries[id] != nil && s.entries[id].newest != nil }

// newEnsemble makes a version of an ensemble, whose models have been checked.
func (s *Server) newEnsemble(src *source, id string, number int64, old *served.Model) (*served.Model, error) {
	graph, err := ensemble.New(src.Config)
	if err != nil {
		return nil, invalid(err)
	}
	labels, err := src.Labels(src.Config)
	if err != nil {
		return nil, invalid(err)
	}
	steps, c := s.stepsOf(src, id)
	m := served.NewEnsemble(src.Name, number, c, graph, func(need *ensemble.Need, r *Request) ([]ensemble.Model, error) {
		return s.enterSteps(graph, steps, need, r)
	})
	m.Namespace = src.namespace
	models := s.modelsOf(graph, steps)
	m.Labels = stepLabels(graph, models, labels)
	m.SetSteps(slices.DeleteFunc(models, func(step *served.Model) bool { return step == nil }))
	s.count(m, old, false) // as in Triton, its counters begin again when a model of it is loaded again
	m.Pool.Keep(src.temp)
	return m, nil
}

// stepsOf returns the identities of an ensemble's models by step, and its configuration, in which Triton
// notes their repositories.
func (s *Server) stepsOf(src *source, id string) ([]string, *modelconfig.Config) {
	c := src.Config
	if s.options.Namespacing {
		c = proto.CloneOf(c)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var steps []string
	for _, step := range c.GetEnsembleScheduling().GetStep() {
		model := s.step(id, step.GetModelName())
		if steps = append(steps, model); s.options.Namespacing {
			step.ModelNamespace = s.namespace(model)
		}
	}
	return steps, c
}

// ofStep finds the model of a step by its identity. The caller holds Server.mu.
func (s *Server) ofStep(id string, version int64) (*served.Model, error) {
	if e := s.entries[id]; e != nil && !s.closing {
		return e.find(id, max(0, version))
	}
	return s.find(id, version) // for its error
}

// modelsOf lists the models of an ensemble by step. It is nil for one that is gone: the load fails elsewhere then.
func (s *Server) modelsOf(g *ensemble.Graph, steps []string) []*served.Model {
	models := make([]*served.Model, len(g.Steps))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range g.Steps {
		if m, err := s.ofStep(steps[i], g.Steps[i].Version); err == nil {
			models[i] = m
		}
	}
	return models
}

// stepLabels completes the labels of an ensemble with those of its models by step. As in Triton, an output has
// the labels of the step that makes it, unless its own begin with one.
func stepLabels(g *ensemble.Graph, models []*served.Model, labels map[string][]string) map[string][]string {
	for _, out := range g.Outputs {
		name := g.Tensors[out]
		if len(labels[name]) > 0 {
			continue
		}
		step, output := g.Origin(out)
		if step < 0 || models[step] == nil || models[step].Labels[output] == nil {
			continue
		}
		if labels == nil {
			labels = map[string][]string{}
		}
		labels[name] = models[step].Labels[output]
	}
	return labels
}

// checkSteps checks that an ensemble's models are ready, and that they fit together. Texts are
// Triton's. It returns nil for any other model. The caller holds Server.mu.
func (s *Server) checkSteps(src *source, id string) error {
	steps := src.Config.GetEnsembleScheduling().GetStep()
	models := map[string]ensemble.Part{}
	for _, step := range steps {
		name := step.GetModelName()
		part := s.step(id, name)
		m, err := s.ofStep(part, 0)
		if err != nil {
			return fmt.Errorf("ensemble '%s' depends on '%s' which has no loaded version.", id, name) //lint:ignore ST1005 Triton's wording
		}
		models[name] = ensemble.Part{ID: part, Config: m.Config, Requests: m.Requests()}
		if v := step.GetModelVersion(); v != -1 {
			if found := s.entries[part].versions[v]; found == nil || found.model == nil {
				//lint:ignore ST1005 Triton's wording
				return fmt.Errorf("ensemble '%s' depends on '%s' whose required version %d is not loaded.", id, part, v)
			}
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return ensemble.Check(ensemble.Part{ID: id, Config: src.Config}, models)
}

// enterSteps finds the models of the steps that a request needs, and enters their pools. steps are their
// identities.
func (s *Server) enterSteps(g *ensemble.Graph, steps []string, need *ensemble.Need, r *Request) ([]ensemble.Model, error) {
	models := make([]ensemble.Model, len(g.Steps))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range g.Steps {
		if !need.Steps[i] {
			continue
		}
		m, err := s.ofStep(steps[i], g.Steps[i].Version)
		if err != nil {
			for _, entered := range models[:i] {
				if entered != nil {
					entered.Leave()
				}
			}
			return nil, err
		}
		m.Pool.Enter()
		models[i] = m.Step(r)
	}
	return models, nil
}
