package conversion

import (
	"context"
	"fmt"
	"io"

	"tuner/internal/exit"
	"tuner/model/framework"
	"tuner/model/onnx"
	"tuner/model/precision"
	"tuner/model/precision/places"
)

// Job is a request with what is needed to read the model and to run it.
type Job struct {
	Request
	Data     Data             // of the comparison
	Library  string           // ONNX Runtime: a library or an installed build; "" for the default
	Version  string           // of the tool
	Source   framework.Source // of a framework's model; zero for an ONNX file
	Python   string           // program for a framework's model; "" for the default
	Messages io.Writer
}

// Run exports a framework's model, makes the variants, and writes them. The result may have variants
// although a later one failed. Without precisions it has only Model, the path of the exported file.
func (j Job) Run(ctx context.Context) (Result, error) {
	if err := j.checkTargets(); err != nil {
		return Result{}, err
	}
	isForeign := j.Source.Path != ""
	var model *onnx.Model
	var err error
	if !isForeign { // mistakes in the file are reported before problems of the machine
		if model, err = j.read(); err != nil {
			return Result{}, exit.With(exit.Usage, err)
		}
	}
	builds, err := places.Find(ctx, j.Library, j.Providers)
	if err != nil {
		return Result{}, exit.OrInterrupted(ctx, err)
	}
	opener, err := builds.Opener(j.Settings.Libraries, j.Messages)
	if err != nil {
		return Result{}, err
	}
	if isForeign {
		if j.Model, err = j.export(ctx, opener); err != nil || len(j.Precisions) == 0 {
			return Result{Request: j.Request}, err
		}
		if model, err = j.read(); err != nil {
			return Result{}, exit.With(exit.Usage, err)
		}
	}
	j.Settings.Progress = func(text string) { fmt.Fprintln(j.Messages, text) }
	maker, err := builds.Maker(ctx, j.Version, model, opener, j.Providers, j.Settings)
	if err != nil {
		return Result{}, Failed(ctx, err)
	}
	return j.Make(ctx, maker, builds)
}

// export converts a framework's model to ONNX and returns the path.
func (j Job) export(ctx context.Context, opener precision.Opener) (string, error) {
	out, err := exportTarget(j.Model, j.Dir, j.Force)
	if err != nil {
		return "", err
	}
	return out, Export(ctx, j.Messages, j.Source, j.Python, out, opener)
}

// read reads the model, and the data into the settings. The user can fix every error.
func (j *Job) read() (*onnx.Model, error) {
	model, err := onnx.Read(j.Model)
	if err != nil {
		return nil, err
	}
	if err := precision.CheckSource(model, j.Settings.Libraries); err != nil {
		return nil, err
	}
	j.Settings.Data, j.Settings.Calibration, err = j.Data.Read(model)
	return model, err
}
