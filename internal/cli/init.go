package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/ort/addon"
	"tuner/profile"
	"tuner/profile/starter"
	"tuner/report/formats"
	"tuner/spec/draft"
)

// initOptions are the flags of `tuner init`.
type initOptions struct {
	dir       string
	force     bool
	libraries addon.Libraries
}

func newInit(con console) *cobra.Command {
	var o initOptions
	cmd := verb(&cobra.Command{
		Use:   "init MODEL",
		Short: "Write the YAML files for a model, with explanations",
		Long: `Reads an ONNX file and writes three files. profile.yaml and analyze.yaml explain each field, and have values for this machine.
config.pbtxt is the complete configuration that Triton's auto-completion makes of the model.

MODEL may also be a Triton model folder. Its config.pbtxt is then the default configuration, and stays as it is.
No existing file is replaced without --force.`,
		Example: "  tuner init model.onnx\n  tuner init model.onnx -o work\n  tuner init repository/resnet -o work",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("tuner init takes one model: an ONNX file or a Triton model folder (%d given)", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runInit(cmd.Context(), con, o, args[0]) },
	})
	cmd.Flags().StringVarP(&o.dir, "output-folder", "o", ".", "`folder` to write to; it is made if it does not exist")
	addon.AddFlags(cmd.Flags(), &o.libraries)
	cmd.Flags().BoolVar(&o.force, "force", false, "replace existing files")
	return cmd
}

func runInit(ctx context.Context, con console, o initOptions, model string) error {
	opened, err := starter.Open(ctx, "init", model, o.libraries)
	if err != nil {
		return err
	}
	s, err := opened.Starter(o.dir, nil)
	if err != nil {
		return err
	}
	files, err := starter.Files(o.dir, s, opened.Subject, formats.All().Words())
	if err != nil {
		return err
	}
	if err := starter.WriteNew(o.dir, files, o.force); err != nil {
		return exit.OfFiles(err)
	}
	printInit(con, files, s, opened.Subject)
	return nil
}

// printInit reports what was read and written, and the next commands.
func printInit(con console, files []starter.File, s draft.Starter, subject profile.Subject) {
	fmt.Fprintf(con.out, "%s:\n", s.Name)
	for _, in := range subject.Model.Inputs() {
		fmt.Fprintf(con.out, "  input   %s\n", in)
	}
	for _, out := range subject.Model.Outputs() {
		fmt.Fprintf(con.out, "  output  %s\n", out)
	}
	fmt.Fprintln(con.out, "wrote:")
	for _, f := range files {
		fmt.Fprintf(con.out, "  %s  (%s)\n", f.Path, f.Note)
	}
	if s.Config == "" {
		fmt.Fprintln(con.out, "the model folder stays as it is")
	}
	if examples := s.Examples(); len(examples) > 0 {
		fmt.Fprintf(con.out, "check load.inputs.shape in %s: sizes of symbolic dimensions are examples\n", files[0].Path)
		for _, e := range examples {
			fmt.Fprintf(con.out, "  %s %v: %s\n", e.Input, e.Dims, e.Reason)
		}
	}
	fmt.Fprintf(con.out, "next:\n  tuner profile -f %s --dry-run\n  tuner profile -f %s\n  tuner analyze -f %s\n",
		words.ShellWord(files[0].Path), words.ShellWord(files[0].Path), words.ShellWord(files[1].Path))
}
