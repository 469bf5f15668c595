package snippet

import (
	"maps"
	"slices"

	"tuner/model/modelconfig"
	"tuner/ort/provider"
)

// Given returns what the engine gives ONNX Runtime for a configuration's session options (modelconfig.Options.Given), without the
// defaults of the providers.
func Given(o modelconfig.Options, at modelconfig.Place) (modelconfig.Options, []modelconfig.Provider, error) {
	given, providers, err := o.Given(at)
	if err != nil {
		return given, nil, err
	}
	providers = slices.DeleteFunc(providers, func(p modelconfig.Provider) bool { return p.Name == provider.CPU }) // always there
	for _, p := range providers {
		usual := provider.Of(p.Name).Defaults
		maps.DeleteFunc(p.Options, func(key, value string) bool { return usual[key] == value })
	}
	return given, providers, nil
}
