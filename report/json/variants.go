package json

import (
	"cmp"
	"maps"
	"slices"

	"tuner/analyze"
	"tuner/pipeline/steps"
	"tuner/profile/journal"
	"tuner/report/result"
	"tuner/search"
)

func newSteps(list steps.List) []result.Step {
	var all []result.Step
	for _, s := range list {
		all = append(all, result.Step{Step: s.Name, State: s.State, Text: s.Text})
	}
	return all
}

func newVariant(r analyze.Result, v journal.Variant) result.Variant {
	j := result.Variant{Precision: v.Precision, Own: v.Own, Path: v.Path, SHA256: v.SHA256, Bytes: v.Bytes, Converted: v.Converted,
		Kept: v.Kept, Notes: v.Notes, Accuracy: v.Accuracy}
	for _, compared := range v.Accuracy {
		j.Data = "user"
		if compared.Synthetic {
			j.Data = "synthetic"
		}
	}
	for _, place := range slices.Sorted(maps.Keys(v.Accuracy)) {
		judge := search.ParsePlace(place)
		j.Judges = append(j.Judges, result.Judge{Provider: judge.Provider, Runtime: cmp.Or(judge.Runtime, r.Header.Runtime.Name())})
	}
	for _, place := range slices.Sorted(maps.Keys(v.Rejected)) {
		out := search.ParsePlace(place)
		j.Rejected = append(j.Rejected, result.Rejection{Provider: out.Provider, Runtime: out.Runtime, Reason: v.Rejected[place]})
	}
	return j
}
