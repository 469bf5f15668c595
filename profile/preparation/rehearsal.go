package preparation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/precision"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/runner"
	"tuner/search"
	"tuner/spec"
)

// rehearse lets the bundled engine load the default configuration and answer one request of each
// kind that a campaign sends. So a campaign that cannot serve ends before conversions and trials, and
// the error says what to change. A campaign that has begun is not rehearsed again. Neither is one
// whose default computes elsewhere than on the CPU: other candidates may serve what it does not.
func (c *Campaign) rehearse(ctx context.Context, p spec.Profile, s profile.Subject, facts search.Facts) error {
	base := string(facts.Base[search.KnobExecutionProvider])
	if c.options.DryRun || !p.UsesBundled() || base != "" && base != provider.CPU || campaign.Exists(p.Output) {
		return nil
	}
	requests, err := profile.Rehearsal(p, s)
	if err != nil {
		return exit.OfFiles(fmt.Errorf("%s: load.inputs: %w", c.options.File, err))
	}
	scratch, err := durable.NewScratch("", "tuner-rehearsal-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the model: %w", err)
	}
	defer scratch.Close() // what stays is removed by the next one
	variant, err := modelrepo.Build(scratch.Dir, s.Files[0].Source, s.Config)
	if err != nil {
		return err
	}
	text, err := modelconfig.FormatJSON(s.Config)
	if err != nil {
		return fmt.Errorf("cannot print configuration: %w", err)
	}
	engine, finals := c.servers.Runners(nil)
	defer engine.Close(context.WithoutCancel(ctx))
	if finals != nil {
		defer finals.Close(context.WithoutCancel(ctx))
	}
	job := runner.Job{Repository: variant.Dir, Library: c.Setup.Library(search.Candidate{}), Model: variant.Model, Config: string(text)}
	for _, r := range requests {
		job.Requests = runner.Requests{r.Request}
		failure, err := engine.Rehearse(ctx, job)
		if err != nil {
			return exit.OrInterrupted(ctx, err)
		}
		if failure != nil && (failure.Stage == measure.StageLoad || failure.Stage == measure.StageErrors) {
			return refusal(p, s, r, *failure)
		}
	}
	return nil
}

// refusal returns the error for a model that does not load, or does not answer a request.
func refusal(p spec.Profile, s profile.Subject, r profile.Rehearsed, failure measure.Failure) error {
	reason, _, _ := strings.Cut(failure.Reason, "\n") // without the engine's log
	reason = strings.TrimSuffix(reason, "; its last output:")
	if op := precision.CustomOperator(s.Model); failure.Stage == measure.StageLoad && op != "" && len(s.Libraries.Operators) == 0 {
		return exit.Usagef("cannot tune the model %q: it uses the operator %s, which ONNX Runtime does not have: %s\n"+
			"    hint: name the library with that operator with --%s or in %s", p.Model.Path, op, reason, addon.FileFlag, addon.FileField)
	}
	if failure.Stage == measure.StageLoad {
		return exit.Usagef("cannot tune the model %q: ONNX Runtime does not load it in the default configuration: %s\n"+
			"    hint: install what it asks for, export the model again, or correct its config.pbtxt", p.Model.Path, reason)
	}
	return exit.Usagef("cannot tune the model %q: it does not answer %s: %s\n    hint: %s", p.Model.Path, r.What, reason, hintOf(p, r))
}

// hintOf says what the user can change so that a request is answered.
func hintOf(p spec.Profile, r profile.Rehearsed) string {
	var reasons []string
	for _, input := range slices.Sorted(maps.Keys(p.Inputs.Examples)) {
		reasons = append(reasons, fmt.Sprintf("%s %v (%s)", input, p.Inputs.Shape[input], p.Inputs.Examples[input]))
	}
	switch {
	case r.Rows > 1:
		return "one row is answered, so the model does not batch although its first dimensions are open; " +
			"serve it from a model folder whose config.pbtxt has max_batch_size: 0 and all inputs and outputs, or export it with a fixed first dimension"
	case p.Inputs.Data != "":
		return "give rows that the model answers in load.inputs.data (--data)"
	case len(reasons) > 0:
		return "sizes that tuner chose may be wrong: " + strings.Join(reasons, ", ") + "; give the model's own with --shape INPUT:SIZE,… or in load.inputs.shape, or, if it needs other values than random ones, rows with --data"
	default:
		return "the model may need other values than random ones: give rows that it answers with --data or in load.inputs.data"
	}
}
