package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"tuner/analyze"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/precision/places"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
	"tuner/ort/provider/probe"
	"tuner/ort/sessionoption"
	"tuner/pipeline/steps"
)

// optimizedDir is the folder of the optimized model in the output folder.
const optimizedDir = "optimized"

// optimize makes the fifth step: it writes the graph that ONNX Runtime makes of the winner's model
// at the winner's graph level. It comes after the search, which finds the winner. It always removes
// the result of an earlier run, which may have had another winner.
func (j job) optimize(ctx context.Context, r analyze.Result) error {
	o, reason, failure := j.optimizable(r)
	return j.log.Do(ctx, steps.Optimize, o.key, func() (steps.Outcome, error) {
		if err := removeOptimized(o.dir()); err != nil {
			return steps.Outcome{}, err
		}
		switch {
		case failure != nil:
			return steps.Outcome{}, failure
		case reason != "":
			return steps.Skip("%s", reason), nil
		case ctx.Err() != nil:
			return steps.Outcome{State: steps.Interrupted}, nil
		}
		return o.write(ctx)
	})
}

// removeOptimized removes the optimized model of an earlier run. A foreign folder stays and is an
// error, since readers would take it for the winner's.
func removeOptimized(dir string) error {
	why, err := foreignIn(dir)
	if err != nil {
		return err
	}
	if why != "" {
		return exit.Usagef("cannot replace or remove the optimized model %q: %s; move it away", dir, why)
	}
	return removeFolder(dir)
}

// optimizedModel describes a model whose optimized graph can be written.
type optimizedModel struct {
	output    string // output folder of the campaign
	path      string // path of the model
	level     string // value of graph_optimization
	build     ortlib.Build
	libraries addon.Libraries
	external  bool   // it has external weights
	key       string // digest of all dependencies; "" if nothing can be written
}

func (o optimizedModel) dir() string { return filepath.Join(o.output, optimizedDir) }

// optimizable returns the winner's model, or the reason why it has no optimized graph to write.
func (j job) optimizable(r analyze.Result) (o optimizedModel, reason string, err error) {
	o.output = j.profile().Output
	best, found := r.Winner()
	switch {
	case !found:
		return o, unfoundText(r), nil
	case best.Setup.Provider != provider.CPU:
		return o, fmt.Sprintf("the best runs on %s, which compiles the model itself", best.Setup.Provider), nil
	}
	options, err := modelconfig.ORTOptions(best.Deployed)
	if err != nil {
		return o, "", err
	}
	level := options.Settings.Value(sessionoption.GraphOptimization)
	if level == sessionoption.Disabled {
		return o, "the best has graph optimization disabled", nil
	}
	i := slices.IndexFunc(j.campaign.Builds, func(b ortlib.Build) bool { return b.Name() == best.Setup.Runtime })
	if i < 0 {
		return o, fmt.Sprintf("the best runs on %s, which is not a library on this machine", best.Setup.Runtime), nil
	}
	file, _ := r.Header.File(best.Setup.Precision)
	model, err := onnx.Read(file.Path)
	if err != nil {
		return o, "", exit.With(exit.Usage, err)
	}
	o.path, o.level, o.external = file.Path, level, len(model.ExternalFiles()) > 0
	o.build, o.libraries = j.campaign.Builds[i], j.campaign.Setup.Subject.Libraries
	library, err := places.ContentName(o.build)
	if err != nil {
		return o, "", err
	}
	o.key, err = digestOf(file.SHA256, o.level, library)
	return o, "", err
}

// write makes a child process write the optimized graph into its folder, which must not exist. The
// folder is written completely, with its receipt, or not at all.
func (o optimizedModel) write(ctx context.Context) (steps.Outcome, error) {
	p, err := probe.New()
	if err != nil {
		return steps.Outcome{}, err
	}
	p.Libraries = o.libraries
	var outcome steps.Outcome
	err = durable.InFolder(o.output, func(temp string) error {
		fresh := filepath.Join(temp, optimizedDir)
		if err := os.Mkdir(fresh, 0o755); err != nil {
			return fmt.Errorf("cannot write into folder %q: %w", o.output, durable.Cause(err))
		}
		answer := p.Optimize(ctx, o.build, o.path, o.level, filepath.Join(fresh, "model.onnx"), o.external)
		switch {
		case ctx.Err() != nil: // nothing else depends on it
			outcome.State = steps.Interrupted
			return nil
		case answer.Error != "":
			outcome = steps.Skip("ONNX Runtime %s does not write this graph: %s", o.build.Name(), answer.Reason())
			return nil
		}
		err := writeReceipt(fresh)
		if err == nil {
			err = os.Rename(fresh, o.dir())
		}
		if err != nil {
			return fmt.Errorf("cannot write %q: %w", o.dir(), durable.Cause(err))
		}
		outcome.Text = fmt.Sprintf("%s: the graph that ONNX Runtime %s makes at level %s, for processors like this one",
			filepath.Join(o.dir(), "model.onnx"), o.build.Version, o.level)
		outcome.Files = []string{o.dir()}
		return nil
	})
	if err != nil {
		return steps.Outcome{}, exit.OfFiles(err)
	}
	return outcome, nil
}
