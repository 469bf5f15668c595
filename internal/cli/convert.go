package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tuner/internal/exit"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
)

// convertOptions are the flags of `tuner convert`.
type convertOptions struct {
	precisions  []string
	dir         string
	data        string
	calibration string
	method      string
	rows        int
	shapes      []string
	limit       limitOptions
	maxKept     string
	keepIO      bool
	force       bool
	providers   []string
	ortLibrary  string
	libraries   addon.Libraries
	output      string
	framework   frameworkOptions
	has         func(flag string) bool // whether a flag is set
}

func newConvert(con console) *cobra.Command {
	var o convertOptions
	cmd := verb(&cobra.Command{
		Use:   "convert MODEL --precision NAME[,NAME…]",
		Short: "Convert a model to other precisions, and check their accuracy",
		Long: "Makes variants of a model in other precisions.\n" + strings.Join(recipe.Sentences(""), "\n") + `
To make fp32 only turns a fixed batch dimension into a symbolic one. Each variant is run and compared with the original, on your data or
on random inputs.

With a limit (--metric and --min or --max), the nodes that hurt most stay in fp32 until it holds. A variant that still misses the limit is
rejected and not written.

A model of PyTorch, TensorFlow, scikit-learn, XGBoost or LightGBM is exported first, with your own Python, to FOLDER/NAME.onnx, and
compared with the framework. Variants are written to FOLDER/NAME.PRECISION.onnx, and cached. The original is never changed.`,
		Example: `  tuner convert model.onnx --precision int8
  tuner convert model.onnx --precision int8,fp16 --data rows.npz --metric cosine --min 0.99 -o out
  tuner convert resnet.onnx --precision int8_static --calibration images.npz --ep cpu,openvino
  tuner convert saved_model_folder -o out
  tuner convert forest.pkl --allow-pickle
  tuner convert bert.pt --precision int8 \
      --in-names ids,mask --in-shapes '[[-1,256],[-1,256]]' --in-types int64,int64`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("tuner convert takes one model (%d given)", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runConvert(cmd.Context(), con, o, args[0]) },
	})
	o.addFlags(cmd)
	return cmd
}

func runConvert(ctx context.Context, con console, o convertOptions, path string) error {
	job, err := o.job(con, path)
	if err != nil {
		return err
	}
	result, failure := job.Run(ctx)
	switch {
	case failure == nil && len(o.precisions) == 0:
		_, err := fmt.Fprintln(con.out, result.Model)
		return err
	case len(result.Variants) == 0:
		return failure
	}
	write := result.WriteText
	if o.output == "json" {
		write = result.WriteJSON
	}
	if err := write(con.out); err != nil {
		return err
	}
	if failure != nil {
		return failure
	}
	return result.Verdict()
}
