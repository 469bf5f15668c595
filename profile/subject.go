package profile

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/measure/arrivals"
	"tuner/model/mix"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/shapes"
	"tuner/model/precision/recipe"
	"tuner/model/tensors"
	"tuner/ort/addon"
	"tuner/search"
	"tuner/spec"
)

// Subject is the subject of a campaign: a model in one or more precisions, with its default
// configuration.
type Subject struct {
	Name   string
	Files  []File              // the original precision first, then by name
	Model  *onnx.Model         // of the original precision: inputs and shapes
	Config *modelconfig.Config // default configuration, complete
	// Libraries that a server of the model opens beside ONNX Runtime, by absolute paths
	Libraries addon.Libraries
	Rows      *Rows           // rows from which requests are drawn; nil: random values
	Mix       mix.Mix         // kinds of requests; nil: all have one shape
	Trace     *arrivals.Trace // of the arrivals; nil without one
	// Values say how random values are made, by input, where the model's file does not say it: of a pipeline,
	// as the stages take them
	Values map[string]inputs.Input
	// Padded has the kinds of the mix as the server gets them, by the values of the knob padding
	Padded map[search.Value]mix.Mix
}

// File is the model file of one precision.
type File struct {
	Precision string
	Bytes     int64 // size of the model file only
	Source    modelrepo.Source
	stamps    []stamp // stamps of all its files before they were read
}

// File returns the model file of a precision, and whether there is one.
func (s Subject) File(precision string) (File, bool) {
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Precision == precision })
	if i < 0 {
		return File{}, false
	}
	return s.Files[i], true
}

// InputError means that something from the user cannot be used. The program ends with exit code 2.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// ExitCode implements exit.Coded.
func (e *InputError) ExitCode() int { return exit.Usage }

// Place has the facts of the machine on which a default configuration depends.
type Place struct {
	GPUs int // number of GPUs
	// Outputs returns the shapes that ONNX Runtime declares for a model file's outputs, by name; -1
	// for open sizes. An output that it does not know has the shape that package shapes infers. nil
	// knows none.
	Outputs func(model string) map[string][]int64
}

// OpenSubject reads a profile's model files and makes the default configuration: the user's
// config.pbtxt if it exists, completed like Triton does. Errors are InputErrors.
func OpenSubject(p spec.Profile, there Place) (Subject, error) {
	libraries, err := p.Model.Libraries.Resolve(addon.InFile())
	if err != nil {
		return Subject{}, &InputError{fmt.Errorf("%s: %w", p.Path, err)}
	}
	s := Subject{Name: p.Name, Libraries: libraries}
	origin, err := locate(p)
	if err != nil {
		return Subject{}, &InputError{err}
	}
	paths := maps.Clone(p.Model.Precisions)
	if paths[recipe.Original] == p.Model.Path {
		paths[recipe.Original] = origin.model
	}
	var problems []error
	for _, precision := range orderPrecisions(paths) {
		model, file, err := openFile(precision, paths[precision], origin.folder)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s: %s: %w", p.Path, modelField(p, precision), err))
			continue
		case s.Model == nil:
			s.Model = model
		default:
			if err := sameSignature(s.Model, model); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", p.Path, modelField(p, precision), err))
			}
		}
		s.Files = append(s.Files, file)
	}
	if err := errors.Join(problems...); err != nil {
		return Subject{}, &InputError{err}
	}
	s.Model = withOutputs(s.Model, there.Outputs)
	if s.Config, err = defaultConfig(p, origin, s, there.GPUs); err != nil {
		return Subject{}, &InputError{err}
	}
	if s.Rows, err = ReadRows(p, s.Model); err != nil {
		return Subject{}, err
	}
	if s.Trace, err = traceOf(p); err != nil {
		return Subject{}, &InputError{err}
	}
	if s.Mix, err = mixOf(p, s); err == nil {
		s.Padded, err = paddedOf(p, s)
	}
	if err != nil {
		return Subject{}, &InputError{err}
	}
	if p.Inputs.Mix.OfTrace {
		s.Trace.Kinds = kindsOf(*s.Trace)
	}
	return s, nil
}

// orderPrecisions puts the original first and sorts the others by name.
func orderPrecisions(paths map[string]string) []string {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(paths)), func(name string) bool { return name == recipe.Original })
	return append([]string{recipe.Original}, others...)
}

// modelField returns the profile's field for a precision's model file.
func modelField(p spec.Profile, precision string) string {
	if precision == recipe.Original && p.Model.Precisions[precision] == p.Model.Path {
		return "model"
	}
	return "space.precision." + precision
}

// origin has the paths of a profile's model and configuration.
type origin struct {
	model  string // ONNX file of the original precision
	config string // path of config.pbtxt; "" without one
	text   []byte // content of config
	// folder: the Triton model folder, with the other files that config names; "" without one
	folder string
}

// locate finds the original model file and the user's configuration. If the model is a Triton model
// folder, both are in it.
func locate(p spec.Profile) (origin, error) {
	info, err := os.Stat(p.Model.Path)
	if err != nil {
		return origin{}, fmt.Errorf("%s: model: cannot open %q: %w%s", p.Path, p.Model.Path, durable.Cause(err), pathHint(p))
	}
	o := origin{model: p.Model.Path, config: p.Model.Config}
	if info.IsDir() {
		folder, err := modelrepo.OpenModel(p.Model.Path)
		if err != nil {
			return origin{}, fmt.Errorf("%s: model: %w", p.Path, err)
		}
		if c, err := folder.Config(); err == nil && c.GetEnsembleScheduling() != nil {
			return origin{}, fmt.Errorf("%s: model: %q is an ensemble, which has no model file\n"+
				"    hint: name it in a profile in place of model, as pipeline: %[2]s (docs/how-to/pipelines.md)", p.Path, p.Model.Path)
		}
		o.folder = folder.Dir
		if o.config == "" {
			o.config = folder.ConfigPath
		}
		if o.model, err = folder.ModelFile(); err != nil {
			return origin{}, fmt.Errorf("%s: model: %w", p.Path, err)
		}
	}
	if o.config == "" {
		return o, nil
	}
	if o.text, err = os.ReadFile(o.config); err != nil {
		return origin{}, fmt.Errorf("%s: config: cannot read %q: %w%s", p.Path, o.config, durable.Cause(err), pathHint(p))
	}
	return o, nil
}

// pathHint says to what paths in a profile are relative; "" if the profile was made from flags.
func pathHint(p spec.Profile) string {
	if p.IsFromFlags() {
		return ""
	}
	return "; paths are relative to the file's folder"
}

// openFile reads one precision's model and computes its digest.
func openFile(precision, path, folder string) (*onnx.Model, File, error) {
	model, err := onnx.Read(path)
	if err != nil {
		return nil, File{}, err
	}
	if err := model.CheckServable(); err != nil {
		return nil, File{}, err
	}
	var data []string
	for _, f := range model.ExternalFiles() {
		data = append(data, f.Path)
	}
	stamps, err := newStamps(path, data)
	if err != nil {
		return nil, File{}, err
	}
	digest, err := model.Digest()
	if err != nil {
		return nil, File{}, fmt.Errorf("cannot compute the digest of %q: %w", path, err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, File{}, fmt.Errorf("cannot resolve %q: %w", path, err)
	}
	source := modelrepo.Source{Path: absolute, Data: data, Digest: digest, Folder: folder}
	return model, File{Precision: precision, Bytes: stamps[0].info.Size(), Source: source, stamps: stamps}, nil
}

// Content returns the bytes of the model file and of its external data together.
func (f File) Content() int64 {
	var sum int64
	for _, s := range f.stamps {
		sum += s.info.Size()
	}
	return sum
}

// sameSignature checks that another precision of a model has the same inputs and outputs: names,
// types and numbers of dimensions.
func sameSignature(original, other *onnx.Model) error {
	for _, side := range []struct {
		name string
		a, b []onnx.Value
	}{{"input", original.Inputs(), other.Inputs()}, {"output", original.Outputs(), other.Outputs()}} {
		a, b := byName(side.a), byName(side.b)
		namesOfA, namesOfB := slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))
		if !slices.Equal(namesOfA, namesOfB) {
			return fmt.Errorf("%s: %ss are %v, but those of %s are %v: every precision must serve the same requests",
				other.Path(), side.name, namesOfB, original.Path(), namesOfA)
		}
		for _, name := range namesOfA {
			if remedy := tensorRemedy(a[name], b[name]); remedy != "" {
				return fmt.Errorf("%s: the %s %s is %s in %s: every precision must serve the same requests; %s",
					other.Path(), side.name, b[name], a[name], original.Path(), remedy)
			}
		}
	}
	return nil
}

// tensorRemedy returns the remedy for a tensor whose type or rank differs from the original's; ""
// if they are equal. An unknown rank matches.
func tensorRemedy(original, other onnx.Value) (remedy string) {
	switch {
	case original.Type.IsFloat() && other.Type.IsFloat() && original.Type != other.Type:
		return "make it with 'tuner convert --keep-io', which keeps the types of inputs and outputs"
	case original.Type != other.Type, original.Ranked && other.Ranked && len(original.Shape) != len(other.Shape):
		return "name a file with the same inputs and outputs"
	}
	return ""
}

func byName(values []onnx.Value) map[string]onnx.Value {
	named := make(map[string]onnx.Value, len(values))
	for _, v := range values {
		named[v.Name] = v
	}
	return named
}

// defaultConfig completes the user's configuration, or an empty one, like Triton does.
func defaultConfig(p spec.Profile, o origin, s Subject, gpus int) (*modelconfig.Config, error) {
	config, model := &modelconfig.Config{}, s.Model
	if o.config != "" {
		parsed, err := modelconfig.Parse(o.config, o.text)
		if err != nil {
			return nil, err
		}
		config = modelconfig.Clone(parsed)
	}
	config.Name = p.Name
	if err := setOperators(config, s.Libraries); err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(model), err)
	}
	io := Signature(model)
	complete, err := modelconfig.Complete(config, modelconfig.CompleteOptions{DirName: p.Name, HasModelFile: true, IO: &io, GPUs: gpus})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(model), err)
	}
	if complete.GetSequenceBatching() != nil {
		return nil, fmt.Errorf("%s: model %q uses sequence_batching, and the load of a campaign has no sequences; measure it with perf_analyzer", o.name(model), p.Name)
	}
	if complete.GetEnsembleScheduling() != nil {
		return nil, fmt.Errorf("%s: model %q uses ensemble_scheduling, and an ensemble has no model file: name its folder in place of model, as pipeline", o.name(model), complete.GetName())
	}
	var unsupported error
	if p.UsesBundled() {
		unsupported = modelconfig.RefuseUnsupported(complete)
	}
	if err := errors.Join(unsupported, modelconfig.Validate(complete), modelconfig.CheckModel(complete, io)); err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(model), err)
	}
	return complete, nil
}

// name returns the file of the configuration.
func (o origin) name(model *onnx.Model) string {
	if o.config != "" {
		return o.config
	}
	return model.Path()
}

// Signature returns a model's inputs and outputs in the form of its configuration. Symbolic
// dimensions are -1.
func Signature(m *onnx.Model) modelconfig.ModelIO {
	return modelconfig.ModelIO{Inputs: tensorList(m.Inputs()), Outputs: tensorList(rankedOutputs(m)), Constants: tensorList(m.Replaceable()), Unbatched: inputs.Unbatched(m)}
}

// isUncertain reports whether ONNX Runtime may know more of an output's shape than the file says. Some
// exporters declare every output as a scalar, such as newer versions of paddle2onnx.
func isUncertain(v onnx.Value) bool {
	return len(v.Shape) == 0 || slices.ContainsFunc(v.Shape, func(d onnx.Dim) bool { return !d.IsFixed() })
}

// withOutputs returns the model with the shapes of outputs that ONNX Runtime declares. It asks only
// if the file leaves something open.
func withOutputs(m *onnx.Model, ask func(model string) map[string][]int64) *onnx.Model {
	if ask == nil || !slices.ContainsFunc(m.Outputs(), isUncertain) {
		return m
	}
	return m.WithOutputShapes(ask(m.Path()))
}

// rankedOutputs returns a model's outputs as ONNX Runtime sees them, unless it was asked itself. If
// the file has no shape, it uses the inferred one. Without a shape, an output would be a scalar, and
// the model could not batch. An open size is replaced by the inferred one too, since a configuration
// must have exactly ONNX Runtime's sizes.
func rankedOutputs(m *onnx.Model) []onnx.Value {
	outputs := slices.Clone(m.Outputs())
	isOpen := func(d onnx.Dim) bool { return !d.IsFixed() }
	if m.HasKnownOutputs() || !slices.ContainsFunc(outputs, isUncertain) {
		return outputs
	}
	known, _ := shapes.Infer(m) // empty for an invalid graph; ONNX Runtime reports the reason
	for i, v := range outputs {
		info := known[v.Name]
		switch {
		case !info.Ranked:
		case len(v.Shape) == 0:
			outputs[i].Shape, outputs[i].Ranked = info.Shape, true
		case len(info.Shape) == len(v.Shape):
			outputs[i].Shape = slices.Clone(v.Shape)
			for k, d := range info.Shape {
				if isOpen(v.Shape[k]) && d.IsFixed() {
					outputs[i].Shape[k] = d
				}
			}
		}
	}
	return outputs
}

func tensorList(values []onnx.Value) []modelconfig.Tensor {
	list := make([]modelconfig.Tensor, len(values))
	for i, v := range values {
		t := modelconfig.Tensor{Name: v.Name, DataType: tensors.DataType(v.Type)}
		for _, d := range v.Shape {
			t.Dims = append(t.Dims, d.Size)
		}
		list[i] = t
	}
	return list
}
