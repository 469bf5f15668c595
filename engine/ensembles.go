package engine

import (
	"fmt"

	"tuner/engine/ensemble"
	"tuner/engine/served"
	"tuner/model/modelconfig"
)

// newEnsemble makes a version of an ensemble, whose models have been checked.
func (s *Server) newEnsemble(src *source, number int64, old *served.Model) (*served.Model, error) {
	graph, err := ensemble.New(src.Config)
	if err != nil {
		return nil, invalid(err)
	}
	labels, err := src.Labels(src.Config)
	if err != nil {
		return nil, invalid(err)
	}
	m := served.NewEnsemble(src.Name, number, src.Config, graph, s.enterSteps)
	m.Labels = s.stepLabels(graph, labels)
	s.count(m, old, false) // as in Triton, its counters begin again when a model of it is loaded again
	m.Pool.Keep(src.temp)
	return m, nil
}

// stepLabels completes the labels of an ensemble with those of its models. As in Triton, an output has
// the labels of the step that makes it, unless its own begin with one.
func (s *Server) stepLabels(g *ensemble.Graph, labels map[string][]string) map[string][]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, out := range g.Outputs {
		name := g.Tensors[out]
		if len(labels[name]) > 0 {
			continue
		}
		step, output := g.Origin(out)
		if step == nil {
			continue
		}
		m, err := s.find(step.Model, max(0, step.Version))
		if err != nil || m.Labels[output] == nil { // the load fails elsewhere if the model is gone
			continue
		}
		if labels == nil {
			labels = map[string][]string{}
		}
		labels[name] = m.Labels[output]
	}
	return labels
}

// checkSteps checks that an ensemble's models are ready, and that they fit together. Texts are
// Triton's. It returns nil for any other model. The caller holds Server.mu.
func (s *Server) checkSteps(src *source) error {
	steps := src.Config.GetEnsembleScheduling().GetStep()
	if len(steps) > 0 && s.options.Namespacing {
		return fmt.Errorf("ensemble '%s' is not served with --model-namespacing: leave the option out", src.Name)
	}
	models := map[string]*modelconfig.Config{}
	for _, step := range steps {
		name := step.GetModelName()
		m, err := s.find(name, 0)
		if err != nil {
			return fmt.Errorf("ensemble '%s' depends on '%s' which has no loaded version.", src.Name, name) //lint:ignore ST1005 Triton's wording
		}
		if m.Pool.HasSequences() {
			return fmt.Errorf("ensemble '%s' contains '%s', whose requests form sequences: this engine does not run it in ensembles", src.Name, name)
		}
		models[name] = m.Config
		if v := step.GetModelVersion(); v != -1 {
			if found := s.entries[name].versions[v]; found == nil || found.model == nil {
				//lint:ignore ST1005 Triton's wording
				return fmt.Errorf("ensemble '%s' depends on '%s' whose required version %d is not loaded.", src.Name, name, v)
			}
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return ensemble.Check(src.Config, models)
}

// enterSteps finds the models of the steps that a request needs, and enters their pools.
func (s *Server) enterSteps(g *ensemble.Graph, need *ensemble.Need, r *Request) ([]ensemble.Model, error) {
	models := make([]ensemble.Model, len(g.Steps))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range g.Steps {
		if !need.Steps[i] {
			continue
		}
		m, err := s.find(g.Steps[i].Model, max(0, g.Steps[i].Version))
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
