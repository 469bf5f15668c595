package snippet

import (
	"maps"
	"slices"

	"tuner/model/modelconfig"
	"tuner/ort/provider"
)

// Given returns the options that the engine passes to ONNX Runtime for a configuration's session
// options (modelconfig.Options.Given), without the providers' defaults.
func Given(o modelconfig.Options, at modelconfig.Device) (modelconfig.Options, []modelconfig.Provider, error) {
	given, providers, err := o.Given(at)
	if err != nil {
		return given, nil, err
	}
	// providers: always present
	providers = slices.DeleteFunc(providers, func(p modelconfig.Provider) bool { return p.Name == provider.CPU })
	for _, p := range providers {
		usual := provider.Of(p.Name).Defaults
		maps.DeleteFunc(p.Options, func(key, value string) bool { return usual[key] == value })
	}
	return given, providers, nil
}
