package spec

import (
	"path/filepath"
	"strings"
	"time"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/precision/recipe"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec/document"
	"tuner/spec/goals"
)

// profileDefaults has the default of every optional field in a profile.yaml; package spec/reference
// has the same. Name and Output follow from the model's file name (defaulted), space and load from
// the machine (Space).
func profileDefaults() Profile {
	return Profile{
		DeployTarget: TargetTriton,
		Runner:       bundledRunner(),
		Search: Search{
			Strategy: plan.Guided,
			Budget:   search.Budget{Time: 10 * time.Minute},
			Seed:     1,
			Window:   time.Second,
		},
		Load:     search.LoadAxis{BatchSize: 1},
		Goal:     search.Goal{Objective: goals.Single(measure.Throughput)},
		Accuracy: Accuracy{MaxKept: 0.25},
	}
}

// analyzeDefaults has the default of every optional field in an analyze.yaml; package
// spec/reference has the same. Output follows from Input. Formats are all formats.
func analyzeDefaults() Analyze {
	return Analyze{Top: 3, Rank: RankScore}
}

// defaulted sets the values that follow from other fields.
func (p Profile) defaulted() Profile {
	if p.Name == "" {
		p.Name = NameOf(p.Model.Path)
	}
	if p.Output == "" {
		p.Output = document.RelativeTo(p.Path, filepath.Join("out", p.Name))
	}
	precisions := map[string]string{recipe.Original: p.Model.Path}
	for name, file := range p.Model.Precisions {
		precisions[name] = file
	}
	p.Model.Precisions = precisions
	if p.Accuracy.Limit == nil && p.hasOther(search.KnobPrecision, recipe.Original) {
		p.Accuracy.Limit = DefaultLimit()
	}
	return p
}

// NameOf returns the default served name of a model: that of its file or folder.
func NameOf(model string) string {
	return modelconfig.ServableName(strings.TrimSuffix(filepath.Base(model), ".onnx"))
}

// DefaultThreads and DefaultInstances are the values of these knobs in a space for a machine's cores.
func DefaultThreads(cores int) []int { return powers(max(1, cores)) }

// DefaultInstances: see DefaultThreads.
func DefaultInstances(cores int) []int { return upTo(min(mostDefaultInstances, max(1, cores))) }
