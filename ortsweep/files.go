package ortsweep

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/internal/durable"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/ortsweep/race"
	"tuner/ortsweep/snippet"
	"tuner/profile"
	"tuner/search"
)

// The files of a sweep.
const (
	jsonName   = "result.json"
	chartName  = "ortsweep.png"
	specName   = "ortsweep.yaml"
	configName = "winner.pbtxt"
	pythonName = "winner.py"
	cppName    = "winner.cc"
	goName     = "winner.go"
)

// CheckOutput accepts an output folder that is absent, empty or from a sweep, and refuses all
// others.
func CheckOutput(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &profile.InputError{Err: fmt.Errorf("cannot write results into %q: %w", dir, durable.Cause(err))}
	}
	ours := []string{jsonName, chartName, specName, configName, pythonName, cppName, goName, variantsFolder}
	isOurs := func(name string) bool { // includes files that a killed sweep was about to write
		return slices.ContainsFunc(ours, func(o string) bool { return name == o || strings.HasPrefix(name, "."+o+".") })
	}
	for _, e := range entries {
		if !isOurs(e.Name()) {
			return &profile.InputError{Err: fmt.Errorf("cannot write results into %q: it holds other files, such as %q; choose another folder", dir, e.Name())}
		}
	}
	return nil
}

// WriteAll writes the result into a folder and returns the paths of the written files. Each file is
// written completely or not at all. Without a figure for the default there is no winner, and the
// winner's files of an earlier sweep are removed.
func WriteAll(dir string, r Result) ([]string, error) {
	writers := []struct {
		name   string
		winner bool
		write  func(io.Writer, Result) error
	}{
		{jsonName, false, WriteJSON},
		{specName, false, writeSpec},
		{chartName, false, WriteChart},
		{configName, true, WriteConfig},
		{pythonName, true, snippetWriter(snippet.WritePython)},
		{cppName, true, snippetWriter(snippet.WriteCPP)},
		{goName, true, snippetWriter(snippet.WriteGo)},
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make folder %q: %w", dir, durable.Cause(err))
	}
	_, hasWinner := r.winner()
	var written []string
	for _, f := range writers {
		path := filepath.Join(dir, f.name)
		if f.winner && !hasWinner {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return written, fmt.Errorf("cannot remove %q, which an earlier sweep wrote: %w", path, durable.Cause(err))
			}
			continue
		}
		var b bytes.Buffer
		if err := f.write(&b, r); err != nil {
			return written, err
		}
		if err := durable.WriteFile(path, durable.Bytes(b.Bytes())); err != nil {
			return written, fmt.Errorf("cannot write %q: %w", path, durable.Cause(err))
		}
		written = append(written, path)
	}
	return written, nil
}

// writeSpec writes the ortsweep.yaml of the sweep, also if it came from flags.
func writeSpec(w io.Writer, r Result) error {
	if _, err := w.Write(r.Setup.Sweep.Text); err != nil {
		return fmt.Errorf("cannot write the specification: %w", err)
	}
	return nil
}

// about describes a winner's file in comment lines.
func (r Result) about(win race.Standing) []string {
	lines := []string{
		fmt.Sprintf("%s: %s.", r.Setup.Subject.Name, SettingText(win.Candidate)),
		fmt.Sprintf("Measured: %s: %s (95 %%: %s to %s).", r.measured(), r.Setup.ValueText(win.Value.Value), r.Setup.ValueText(win.Value.Lo), r.Setup.ValueText(win.Value.Hi)),
	}
	switch {
	case win.Verdict == race.Base:
		lines = append(lines, fmt.Sprintf("Not proven: %s; these are the default's settings.", r.Race.Why))
	case win.Candidate.IsDefault():
		lines = append(lines, "No setting beats the default beyond doubt.")
	case r.Race.Confirmed:
		lines = append(lines, fmt.Sprintf("Gain over the default on fresh launches: %s.", gainText(win.Gain)))
	default:
		lines = append(lines, fmt.Sprintf("Gain over the default: %s, not confirmed on fresh launches.", gainText(win.Gain)))
	}
	return lines
}

// WriteConfig writes the winner's config.pbtxt. Comments list the settings that a stock Triton
// ignores.
func WriteConfig(w io.Writer, r Result) error {
	win, _ := r.winner()
	config, err := r.Setup.config(win.Candidate)
	if err != nil {
		return err
	}
	text, err := modelconfig.Format(config)
	if err != nil {
		return fmt.Errorf("cannot write the winner's configuration: %w", err)
	}
	var b strings.Builder
	for _, line := range append(r.about(win), notOfTriton(win.Candidate)...) {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	fmt.Fprintf(&b, "\n%s", text)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write the winner's configuration: %w", err)
	}
	return nil
}

// notOfTriton lists the settings that a stock Triton's onnxruntime backend ignores, and those that
// are not part of a configuration.
func notOfTriton(c search.Candidate) []string {
	var lines []string
	for _, s := range c.Settings() {
		of, _, isOption := search.ProviderOption(s.Knob)
		setting := fmt.Sprintf("%s: %s", s.Knob, s.Value)
		switch {
		case s.Knob == search.KnobPrecision:
			lines = append(lines, fmt.Sprintf("The model file is that of precision %s.", s.Value))
		case s.Knob == search.KnobRuntime:
			lines = append(lines, fmt.Sprintf("A stock Triton has its own ONNX Runtime; this was measured with %s.", s.Value))
		case sessionoption.IsKnob(s.Knob) && !sessionoption.OfTriton(s.Knob):
			lines = append(lines, "A stock Triton ignores "+setting+"; tuner serve honours it.")
		case isOption && !provider.Of(of).Triton.TakesOptions():
			lines = append(lines, "A stock Triton does not pass "+setting+" on; tuner serve does.")
		case s.Knob == search.KnobExecutionProvider && provider.Of(string(s.Value)).Triton == provider.Missing:
			lines = append(lines, "A stock Triton has no execution provider "+string(s.Value)+"; tuner serve has.")
		}
	}
	return lines
}

// snippetWriter makes a writer of a program for the winner.
func snippetWriter(write func(io.Writer, snippet.Session) error) func(io.Writer, Result) error {
	return func(w io.Writer, r Result) error {
		s, err := r.session()
		if err != nil {
			return err
		}
		return write(w, s)
	}
}

// session returns the winner in the form for programs.
func (r Result) session() (snippet.Session, error) {
	win, _ := r.winner()
	config, err := r.Setup.config(win.Candidate)
	if err != nil {
		return snippet.Session{}, err
	}
	options, providers, err := r.Setup.given(config)
	if err != nil {
		return snippet.Session{}, fmt.Errorf("cannot read the session options of %s: %w", win.Candidate, err)
	}
	file, ok := r.Setup.Subject.File(precisionOf(win.Candidate))
	if !ok {
		return snippet.Session{}, fmt.Errorf("cannot name the model of %s: there is no file of its precision", win.Candidate)
	}
	model := cmp.Or(r.Models[precisionOf(win.Candidate)], file.Source.Path)
	s := snippet.Session{About: r.about(win), Model: model, Runtime: r.runtimeOf(win.Candidate).Name(), Options: options,
		Providers: providers, Operators: r.Setup.Subject.Libraries.Operators}
	if r.Setup.Sweep.Sessions > 1 {
		s.About = append(s.About, fmt.Sprintf("Measured with %d such sessions side by side.", r.Setup.Sweep.Sessions))
	}
	if options.ArenaShrinkage != "" {
		s.About = append(s.About, "Measured with the run option memory.enable_memory_arena_shrinkage: "+options.ArenaShrinkage+", which this program leaves out.")
	}
	s.Scalars = map[string]onnx.DataType{}
	outputs := r.Setup.Subject.Model.Outputs()
	for i, out := range profile.Signature(r.Setup.Subject.Model).Outputs { // with the shapes of ONNX Runtime
		if s.Outputs = append(s.Outputs, out.Name); len(out.Dims) == 0 {
			s.Scalars[out.Name] = outputs[i].Type
		}
	}
	s.Inputs, err = r.inputs()
	return s, err
}

// inputs returns the inputs of one measured request, with its batch.
func (r Result) inputs() ([]snippet.Input, error) {
	derived, err := inputs.Derive(r.Setup.Subject.Model, r.Setup.Subject.InputOptions(r.Setup.Profile))
	if err != nil {
		return nil, err
	}
	var list []snippet.Input
	for _, in := range derived {
		dims := in.Dims
		if in.Batched {
			dims = append([]int64{int64(r.Setup.Sweep.Batch)}, dims...)
		}
		list = append(list, snippet.Input{Name: in.Name, Type: onnx.DataType(in.Type), Shape: dims})
	}
	return list, nil
}
