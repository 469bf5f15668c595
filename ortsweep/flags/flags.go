// Package flags has the options of `tuner ortsweep`, including OLive's forms. It makes the same
// specification from them as from an ortsweep.yaml.
//
// The flags become the text of an ortsweep.yaml. Package spec checks that text like a file, and the
// results' folder gets it as the file of the sweep. The package reads files, and measures nothing.
package flags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/model/framework"
	"tuner/ort/addon"
	"tuner/ortsweep/olive"
	"tuner/spec"
	"tuner/spec/document"
)

// Options are the values of the flags.
type Options struct {
	Quiet      bool
	Output     string // on stdout: "text" or "json"
	ORTLibrary string

	File, Model     string // ortsweep.yaml, or a model in its place; "": not given
	folder          string
	measure         string
	batch, sessions int
	budget          time.Duration
	shapes, knobs   []string
	libraries       []string // with operators
	data            string
	oliveFile       string
	tensors         olive.Tensors

	given func(flag string) bool // set on the command line, or by its variable
}

// Add defines all flags.
func (o *Options) Add(f *pflag.FlagSet) {
	o.given = f.Changed
	f.StringVarP(&o.File, "file", "f", "", "`ortsweep.yaml` (docs/reference/ortsweep.md)")
	f.StringVarP(&o.Model, "model", "m", "", "ONNX `file`, in place of -f")
	f.StringVarP(&o.folder, "output-folder", "o", "", "`folder` of the results (default out/NAME-ortsweep)")
	f.StringVar(&o.measure, "measure", "", "`figure` to race by: latency (of one execution by one session, the default) or throughput (of all sessions)")
	f.IntVar(&o.batch, "batch", 0, "rows in one execution (default 1)")
	f.IntVar(&o.sessions, "sessions", 0, "with --measure throughput: sessions side by side (default 1)")
	f.DurationVar(&o.budget, "budget", 0, "`time` for the race, conversions excluded (default 3m)")
	f.StringArrayVar(&o.shapes, "shape", nil, "NAME:SIZES of an input without the batch dimension, such as image:3,224,224; may be repeated")
	addon.AddFlag(f, &o.libraries)
	f.StringArrayVar(&o.knobs, "knob", nil, "`KNOB=VALUE,VALUE` to search in place of the default space; may be repeated")
	f.StringVar(&o.data, "data", "", "inputs to compare lower precisions on: npz, npy, folder, perf_analyzer's JSON (default: random inputs)")
	f.StringVar(&o.oliveFile, "olive", "", "OLive's optimization config (JSON), in place of a model")
	f.StringVar(&o.tensors.InNames, "in-names", "", "OLive: names of the inputs, such as input_ids,attention_mask")
	f.StringVar(&o.tensors.InShapes, "in-shapes", "", "OLive: shapes of the inputs, -1 for the batch, such as [[-1,256],[-1,256]]")
	f.StringVar(&o.tensors.InTypes, "in-types", "", "OLive: types of the inputs, such as int64,int64")
	f.StringVar(&o.tensors.OutNames, "out-names", "", "OLive: names of the outputs")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print no progress")
	terminal.AddFormat(f, &o.Output, "on stdout: text (the table) or json (the result)")
	f.StringVar(&o.ORTLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one (default $TUNER_ORT_LIBRARY, else all installed flavours; with --knob the cpu one)")
}

// Read reads the file, or makes a specification from the flags, from OLive's configuration or from
// OLive's variables. It reports settings of OLive that do not apply in messages.
func (o *Options) Read(messages io.Writer) (spec.Sweep, error) {
	if o.given("budget") && o.budget < time.Second {
		return spec.Sweep{}, exit.Usagef("--budget %v: it must be 1s or longer", o.budget)
	}
	if o.File != "" {
		return o.readFile()
	}
	settings, err := o.readOlive()
	if err != nil {
		return spec.Sweep{}, exit.With(exit.Usage, err)
	}
	for _, note := range settings.Notes {
		fmt.Fprintf(messages, "OLive's %s\n", note)
	}
	if err := o.checkModel(settings.Model); err != nil {
		return spec.Sweep{}, err
	}
	f, err := newSweepFile(o, settings)
	if err != nil {
		return spec.Sweep{}, err
	}
	text, err := f.text()
	if err != nil {
		return spec.Sweep{}, err
	}
	s, err := spec.ParseSweep(spec.FromFlags, text)
	if err != nil {
		return spec.Sweep{}, exit.With(exit.Usage, document.NamingFlags(err, fieldFlags()))
	}
	s.Text, err = f.movable(s.Output)
	return s, err
}

// fieldFlags lists the flags that set fields of an ortsweep.yaml.
func fieldFlags() []document.FieldFlag {
	return []document.FieldFlag{
		{Field: "output", Flag: "--output-folder"},
		{Field: "measure", Flag: "--measure"},
		{Field: "batch", Flag: "--batch"},
		{Field: "sessions", Flag: "--sessions"},
		{Field: "search.budget", Flag: "--budget"},
		{Field: "accuracy.data", Flag: "--data"},
		{Field: "load.inputs.shape.", Flag: "--shape "},
		{Field: addon.FileField, Flag: "--" + addon.FileFlag},
		{Field: "space.", Flag: "--knob "},
		{Field: "space", Flag: "--knob"},
	}
}

// checkModel reports mistakes in the model's path early, in terms of flags.
func (o *Options) checkModel(model string) error {
	if model == "" {
		return exit.Usagef("no model given: use -m model.onnx, or -f ortsweep.yaml")
	}
	if of, is := framework.Of(model); is {
		return exit.Usagef("cannot sweep %q: it is a model of %s; 'tuner convert %s' makes an ONNX file of it", model, of.Name, model)
	}
	if _, err := os.Stat(model); err != nil {
		hint := ""
		if o.oliveFile != "" {
			hint = "; the paths in " + o.oliveFile + " are relative to its folder"
		}
		return exit.Usagef("cannot open the model %q: %v%s", model, durable.Cause(err), hint)
	}
	return nil
}

// readFile reads an ortsweep.yaml. Among the flags for the sweep, only budget and output folder may
// be combined with it.
func (o *Options) readFile() (spec.Sweep, error) {
	for _, flag := range []string{"batch", "data", "in-names", "in-shapes", "in-types", "knob", "measure", "model", "olive", "out-names", "sessions", "shape", addon.FileFlag} {
		if o.given(flag) {
			return spec.Sweep{}, exit.Usagef("--%s contradicts -f: the file says it", flag)
		}
	}
	text, err := os.ReadFile(o.File)
	if err != nil {
		return spec.Sweep{}, exit.Usagef("cannot read %q: %v", o.File, durable.Cause(err))
	}
	s, err := spec.ParseSweep(filepath.Clean(o.File), text)
	if err != nil {
		return spec.Sweep{}, exit.With(exit.Usage, err)
	}
	if o.given("budget") {
		s.Search.Budget.Time = o.budget
	}
	if o.folder != "" {
		s.Output = o.folder
	}
	return s, nil
}

// readOlive collects the settings of OLive's forms: its configuration, or its flags, or its
// variables if no model is given.
func (o *Options) readOlive() (olive.Settings, error) {
	if o.oliveFile != "" {
		if o.Model != "" || !o.tensors.IsZero() {
			return olive.Settings{}, errors.New("--olive contradicts -m and --in-names: the configuration says them")
		}
		text, err := os.ReadFile(o.oliveFile)
		if err != nil {
			return olive.Settings{}, fmt.Errorf("cannot read %q: %v", o.oliveFile, durable.Cause(err))
		}
		return olive.ParseConfig(o.oliveFile, text)
	}
	if o.Model == "" && o.tensors.IsZero() {
		settings, _, err := olive.Variables(os.LookupEnv)
		return settings, err
	}
	in, out, err := o.tensors.Parse()
	return olive.Settings{Model: o.Model, Inputs: in, Outputs: out}, err
}

// ShapeError adds to an error about input shapes the way to set them.
func (o *Options) ShapeError(path string, err error) error {
	hint := "load: {inputs: {shape: {NAME: [SIZES]}}}, without the batch dimension"
	if o.File == "" {
		hint = "--shape NAME:SIZES without the batch dimension, or --in-names with --in-shapes"
	}
	return fmt.Errorf("%s: %w\n    hint: %s", spec.Place(path, "load.inputs", "shape"), err, hint)
}
