package campaign

import (
	"errors"
	"fmt"

	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/search"
	"tuner/spec/knobs"
)

// Policies returns the host policies of several models in a candidate, in their order, on a machine whose
// processors they divide; none if they share all processors.
func Policies(machine *isolation.Machine, c search.Candidate) ([]isolation.Policy, error) {
	value, _ := c.Get(search.KnobIsolation)
	cores, isDivided := value.Divided()
	if !isDivided {
		return nil, nil
	}
	if machine == nil {
		return nil, errors.New("cannot divide the processors among the models: the campaign does not know them")
	}
	policies, err := machine.Policies(cores)
	if err != nil {
		return nil, fmt.Errorf("candidate %s: %w", c, err)
	}
	return policies, nil
}

// Served returns the configuration of one of several models with its own candidate. Its instances work by the
// policy with an index, if there are any.
func Served(base *modelconfig.Config, own search.Candidate, policies []isolation.Policy, i int) (*modelconfig.Config, error) {
	config, err := knobs.Apply(base, own)
	if err != nil || i >= len(policies) {
		return config, err
	}
	return isolation.Bind(config, policies[i])
}
