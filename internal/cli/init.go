package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tuner/hostinfo"
	"tuner/internal/durable"
	"tuner/modelconfig"
	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/ortlib"
	"tuner/profile"
	"tuner/report/formats"
	"tuner/spec"
)

// configFileName is Triton's name of a model's configuration.
const configFileName = "config.pbtxt"

// initOptions are the flags of `tuner init`.
type initOptions struct {
	dir   string
	force bool
}

func newInit(con console) *cobra.Command {
	var o initOptions
	cmd := verb(&cobra.Command{
		Use:   "init MODEL",
		Short: "Write a commented profile and a complete configuration for a model",
		Long: `Reads an ONNX file and writes profile.yaml, analyze.yaml (each field explained, with values for this machine) and config.pbtxt,
the complete configuration that Triton's auto-completion makes of the model.

MODEL may also be a Triton model folder: its config.pbtxt is then the default configuration, and stays as it is.
No existing file is replaced without --force.`,
		Example: "  tuner init model.onnx\n  tuner init model.onnx -o work\n  tuner init repository/resnet -o work",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageErrorf("tuner init takes one model: an ONNX file or a Triton model folder (%d given)", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runInit(cmd.Context(), con, o, args[0]) },
	})
	cmd.Flags().StringVarP(&o.dir, "output-folder", "o", ".", "folder to write to; made when it does not exist")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace existing files")
	return cmd
}

// newFile is a file that init is about to write.
type newFile struct {
	path string
	text []byte
	note string // what it is, for people
}

func runInit(ctx context.Context, con console, o initOptions, model string) error {
	starter, subject, err := openStarter(ctx, "init", model, o.dir, nil)
	if err != nil {
		return err
	}
	files, err := initFiles(o.dir, starter, subject)
	if err != nil {
		return err
	}
	if err := writeNew(o.dir, files, o.force); err != nil {
		return inputError(err)
	}
	printInit(con, files, starter, subject)
	return nil
}

// openStarter reads a model for a verb, and collects what files that are written to dir say about it. given are the shapes of inputs
// that the user says, without the batch dimension.
func openStarter(ctx context.Context, asker, model, dir string, given map[string][]int64) (spec.Starter, profile.Subject, error) {
	fail := func(err error) (spec.Starter, profile.Subject, error) { return spec.Starter{}, profile.Subject{}, err }
	info, err := os.Stat(model)
	if err != nil {
		return fail(usageErrorf("cannot read the model %q: %v", model, durable.Cause(err)))
	}
	absolute, err := filepath.Abs(model)
	if err != nil {
		return fail(fmt.Errorf("cannot resolve %q: %w", model, err))
	}
	host := hostinfo.Read(ctx)
	source := spec.Profile{
		Path: asker, Name: spec.NewStarter(absolute).Name, // model may be ".", which has no name of its own
		Model: spec.ModelSource{Path: model, Precisions: map[string]string{spec.PrecisionOriginal: model}},
	}
	usual := func() (ortlib.Build, error) { return ortlib.Resolve("") }
	subject, err := profile.OpenSubject(source, gpusOf(ctx, host, usual))
	if err != nil {
		return fail(inputError(err))
	}
	starter, err := newStarter(model, dir, info.IsDir(), subject)
	if err == nil {
		starter.Shapes, err = exampleShapes(subject, given)
	}
	if err != nil {
		return fail(err)
	}
	starter.Cores = max(1, int(host.CPU.Usable()))
	return starter, subject, nil
}

// newStarter collects what the written files say about the model.
func newStarter(model, dir string, isFolder bool, subject profile.Subject) (spec.Starter, error) {
	path, err := pathFrom(dir, model)
	if err != nil {
		return spec.Starter{}, err
	}
	s := spec.NewStarter(path)
	s.Name, s.Output = subject.Name, filepath.Join("out", subject.Name)
	if !isFolder {
		s.Config = configFileName
	}
	s.Batching = inputs.Batches(subject.Model) && subject.Config.GetMaxBatchSize() > 0
	return s, nil
}

// pathFrom writes a path as it is seen from dir. An absolute one stays absolute: it was meant so.
func pathFrom(dir, path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot resolve %q: %w", dir, err)
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot resolve %q: %w", path, err)
	}
	return filepath.Rel(from, to)
}

// exampleShapes gives every symbolic dimension, the batch left out, a size: the one that is given for it, also by another input
// that has the same symbol, or that the user's configuration fixes, else an example.
func exampleShapes(subject profile.Subject, given map[string][]int64) ([]spec.StarterShape, error) {
	configured := map[string][]int64{}
	for _, in := range subject.Config.GetInput() {
		configured[in.GetName()] = in.GetDims()
	}
	sizes, err := givenSizes(subject.Model, given)
	if err != nil {
		return nil, err
	}
	examples, batches := exampleSizes(subject.Model), inputs.Batches(subject.Model)
	var shapes []spec.StarterShape
	for _, in := range subject.Model.Inputs() {
		if dims := requestShape(in, batches); slices.ContainsFunc(dims, func(d onnx.Dim) bool { return !d.IsFixed() }) {
			shape := exampleShape(in, dims, configured[in.Name], sizes, examples)
			if own, ok := given[in.Name]; ok {
				shape.Dims, shape.Example = own, false
			}
			shapes = append(shapes, shape)
		}
	}
	return shapes, nil
}

// exampleSizes are examples by symbol, the same in all inputs: where an image has it, an
// image's.
func exampleSizes(m *onnx.Model) map[string]int64 {
	sizes, ofImages := map[string]int64{}, map[string]bool{}
	for _, in := range m.Inputs() {
		isImage := inputs.IsImage(in)
		for i, size := range inputs.Example(in) {
			symbol := in.Shape[i].Symbol
			if symbol != "" && (sizes[symbol] == 0 || isImage && !ofImages[symbol]) {
				sizes[symbol], ofImages[symbol] = size, isImage
			}
		}
	}
	return sizes
}

// requestShape is an input's shape without the batch dimension of a model that batches.
func requestShape(in onnx.Value, batches bool) []onnx.Dim {
	if batches {
		return in.Shape[1:]
	}
	return in.Shape
}

// givenSizes collects the sizes of symbols that shapes say, and refuses shapes that are none of the model's.
func givenSizes(m *onnx.Model, given map[string][]int64) (map[string]int64, error) {
	sizes, batches := map[string]int64{}, inputs.Batches(m)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(m.Inputs(), func(v onnx.Value) bool { return v.Name == name })
		if i < 0 {
			return nil, usageErrorf("--shape %s: the model has no such input; it has %v", name, m.Inputs())
		}
		dims := requestShape(m.Inputs()[i], batches)
		fits := len(dims) == len(given[name])
		for k := 0; fits && k < len(dims); k++ {
			fits = !dims[k].IsFixed() || dims[k].Size == given[name][k]
			if dims[k].Symbol != "" {
				sizes[dims[k].Symbol] = given[name][k]
			}
		}
		if !fits {
			return nil, usageErrorf("--shape %s: %v does not fit %s, of which the batch dimension is left out", name, given[name], m.Inputs()[i])
		}
	}
	return sizes, nil
}

// exampleShape settles the dimensions of one input. configured are those of the configuration, which may leave out the batch
// dimension that dims has, or the other way round: they are matched from the last on. given and examples are sizes of symbols.
func exampleShape(in onnx.Value, dims []onnx.Dim, configured []int64, given, examples map[string]int64) spec.StarterShape {
	shape := spec.StarterShape{Input: in.Name, Note: strings.TrimPrefix(in.String(), in.Name+" ")}
	own := inputs.Example(in)[len(in.Shape)-len(dims):]
	for i, d := range dims {
		size := d.Size
		fromEnd := len(configured) - len(dims) + i
		switch {
		case d.IsFixed():
		case given[d.Symbol] > 0:
			size = given[d.Symbol]
		case fromEnd >= 0 && configured[fromEnd] > 0:
			size = configured[fromEnd]
		default:
			size, shape.Example = cmp.Or(examples[d.Symbol], own[i]), true
			shape.Note += fmt.Sprintf("; %s = %d is an example", d, size)
		}
		shape.Dims = append(shape.Dims, size)
	}
	return shape
}

// initFiles makes the texts, and reads them back: what init writes is valid, or it is not written.
func initFiles(dir string, s spec.Starter, subject profile.Subject) ([]newFile, error) {
	profileText, err := s.Profile()
	if err != nil {
		return nil, err
	}
	analyzeText, err := s.Analyze()
	if err != nil {
		return nil, err
	}
	files := []newFile{
		{filepath.Join(dir, spec.ProfileName), profileText, "what to search"},
		{filepath.Join(dir, spec.AnalyzeName), analyzeText, "what to make of the results"},
	}
	_, profileErr := spec.ParseProfile(files[0].path, profileText)
	_, analyzeErr := spec.ParseAnalyze(files[1].path, analyzeText, formats.All().Words())
	if err := errors.Join(profileErr, analyzeErr); err != nil {
		return nil, usageErrorf("cannot write a valid profile for this model: %w", err)
	}
	if s.Config == "" {
		return files, nil
	}
	config, err := modelconfig.Format(subject.Config)
	if err != nil {
		return nil, err
	}
	header := fmt.Sprintf("# The default configuration of %s: what Triton's auto-completion makes of the model.\n"+
		"# tuner profile measures it first, and compares every other configuration with it.\n", s.Name)
	return append(files, newFile{filepath.Join(dir, s.Config), slices.Concat([]byte(header), config), "the default configuration"}), nil
}

// writeNew writes the files, all or none: none when one exists and may not be replaced.
func writeNew(dir string, files []newFile, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make folder %q: %w", dir, durable.Cause(err))
	}
	var existing []string
	for _, f := range files {
		if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) && !force {
			existing = append(existing, f.path)
		}
	}
	if len(existing) > 0 {
		return usageErrorf("cannot write %s: already there; use --force to replace, or -o for another folder", strings.Join(existing, ", "))
	}
	return replaceFiles(dir, files)
}

// replaceFiles writes all files under temporary names before it renames the first, so that a full disk leaves nothing behind
// and no half-written file is ever seen. All lie in dir.
func replaceFiles(dir string, files []newFile) error {
	var staged []string
	defer func() {
		for _, temp := range staged {
			_ = os.Remove(temp) // gone after the renaming
		}
	}()
	for _, f := range files {
		temp, err := durable.Stage(f.path, durable.Bytes(f.text))
		if err != nil {
			return fmt.Errorf("cannot write %q: %w", f.path, durable.Cause(err))
		}
		staged = append(staged, temp)
	}
	for i, f := range files {
		if err := os.Rename(staged[i], f.path); err != nil {
			return fmt.Errorf("cannot write %q: %w", f.path, durable.Cause(err))
		}
	}
	if err := durable.SyncDir(dir); err != nil {
		return fmt.Errorf("cannot flush folder %q: %w", dir, durable.Cause(err))
	}
	return nil
}

// printInit says what was read and written, and what comes next.
func printInit(con console, files []newFile, s spec.Starter, subject profile.Subject) {
	fmt.Fprintf(con.out, "%s:\n", s.Name)
	for _, in := range subject.Model.Inputs() {
		fmt.Fprintf(con.out, "  input   %s\n", in)
	}
	for _, out := range subject.Model.Outputs() {
		fmt.Fprintf(con.out, "  output  %s\n", out)
	}
	fmt.Fprintln(con.out, "wrote:")
	for _, f := range files {
		fmt.Fprintf(con.out, "  %s  (%s)\n", f.path, f.note)
	}
	if s.Config == "" {
		fmt.Fprintln(con.out, "the model folder stays as it is")
	}
	if len(s.Shapes) > 0 {
		fmt.Fprintf(con.out, "check load.inputs.shape in %s: sizes of symbolic dimensions are examples\n", files[0].path)
	}
	fmt.Fprintf(con.out, "next:\n  tuner profile -f %s --dry-run\n  tuner profile -f %s\n  tuner analyze -f %s\n",
		files[0].path, files[0].path, files[1].path)
}
