package stages

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"tuner/ort/addon"
	"tuner/search"
	"tuner/spec/document"
	"tuner/spec/knobs"
)

// ofStages lists fields of one model that belong to a stage of a pipeline.
func ofStages() []string { return []string{"model", "config", "name", "space", "accuracy"} }

// notOfPipelines lists fields that are not supported beside a pipeline.
func notOfPipelines() []string {
	return []string{"mode", "finals", "scale", "isolation", addon.ProviderField}
}

// NotAtTop lists the fields of a profile that a pipeline does not have at the top of the file.
func NotAtTop() []string { return slices.Concat(ofStages(), notOfPipelines()) }

// CheckTop reports those fields among the given ones.
func CheckTop(given map[string]document.Value) {
	for _, name := range NotAtTop() {
		field, has := given[name]
		switch {
		case !has:
		case name == "name":
			field.Fail(document.Error{Problem: "is not supported beside pipeline: it is served under the name of its folder", Hint: "remove the line"})
		case slices.Contains(notOfPipelines(), name):
			field.Fail(document.Error{Problem: "is not supported beside pipeline", Hint: "remove the line"})
		default:
			field.Fail(document.Error{Problem: "belongs to a stage", Hint: fmt.Sprintf("write models: {NAME: {%s: …}}", name)})
		}
	}
}

// NoAccuracy reports a limit on the accuracy of the whole pipeline.
func NoAccuracy(v document.Value) {
	v.Fail(document.Error{Problem: "belongs to a stage", Hint: "write models: {NAME: {constraints: {accuracy: …}}}"})
}

// NoLoad reports a field of a load below a stage.
func NoLoad(key, _ document.Value) bool {
	key.Fail(document.Error{Problem: "does not belong to a stage, whose requests come from the pipeline", Hint: "write load at the top of the file"})
	return true
}

// CheckLoad reports requests in a pipeline's load that no campaign of one can send.
func CheckLoad(load document.Value, repeats, hasMix bool) {
	if repeats {
		load.Child("arrivals").Fail(document.Error{Problem: "repeats, which is not supported beside pipeline", Allowed: "poisson, constant, {gamma: {cv: NUMBER}}"})
	}
	if hasMix {
		load.Child("inputs").Child("mix").Fail(document.Error{Problem: "is not supported beside pipeline: all requests have one shape",
			Hint: "write load: {inputs: {shape: {INPUT: [SIZE, …]}}}, or name rows of one shape in data"})
	}
}

// CheckBatch reports requests that are larger than every batch of a stage's space.
func CheckBatch(given map[string]document.Value, list []search.Knob, client int) {
	space, has := given["space"]
	knob, hasKnob := knobs.Find(list, search.KnobMaxBatchSize)
	if !has || !hasKnob {
		return
	}
	largest := math.MinInt
	for _, v := range knob.Values {
		if n, err := v.Int(); err == nil {
			largest = max(largest, n)
		}
	}
	if client > max(1, largest) {
		space.Child(search.KnobMaxBatchSize).Fail(document.Error{
			Problem: fmt.Sprintf("is at most %d, and client_batch_size is %d", largest, client), Hint: "a request of batch n needs max_batch_size n or more in every stage"})
	}
}

// File is the model file of a stage.
type File struct{ Stage, Path string }

// CheckFiles reports too few or too many stages, a stage that is the pipeline itself, and a file that
// is named twice.
func CheckFiles(section document.Value, list []File, pipeline string, most int) {
	switch n := len(list); {
	case section.Mistakes() > 0:
	case n == 0:
		section.Fail(document.Error{Problem: "has no stage", Allowed: "NAME: {space: …, …}, at least one"})
	case n > most:
		section.Fail(document.Error{Problem: fmt.Sprintf("has %d stages", n), Allowed: fmt.Sprintf("at most %d", most)})
	}
	files := map[string]string{}
	for _, f := range list {
		at := section.Child(f.Stage)
		if f.Stage == filepath.Base(pipeline) {
			at.Fail(document.Error{Problem: "has the name of the pipeline", Hint: "name the models that it calls"})
		}
		if other, twice := files[f.Path]; twice {
			at.Fail(document.Error{Problem: "is the file of " + other + ", too", Hint: "a stage is named once, however often the pipeline calls it"})
		}
		files[f.Path] = f.Stage
	}
}
