package modelanalyzer

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file that reports finds the campaigns of each client batch, unless there is one of the model alone.
func TestReportsOfSeveralBatches(t *testing.T) {
	t.Parallel()
	m := Machine{Dir: "/work", Folders: func(dir string) []string {
		if dir != "checkpoints" {
			t.Errorf("looks into %q", dir)
		}
		return []string{"alone", "alone-b4", "resnet-b16", "resnet-b8", "resnet-best", "resnet2-b1"}
	}}
	for text, want := range map[string][]string{
		"analysis_models: resnet":                                 {"resnet-b8", "resnet-b16"},
		"analysis_models: [resnet, alone]":                        {"resnet-b8", "resnet-b16", "alone"},
		"analysis_models: vgg":                                    {"vgg"}, // the error names it
		"report_model_configs: [resnet_config_3, alone_config_0]": {"resnet-b8", "resnet-b16", "alone"},
	} {
		f, err := ParseAnalyze("f.yaml", []byte(text), m, Options{})
		var got []string
		for _, a := range f.Analyses {
			got = append(got, filepath.Base(a.Input))
			if isSeveral := len(want) > 1; isSeveral && filepath.Base(a.Output) != filepath.Base(a.Input) {
				t.Errorf("%s: the results of %s are in %s", text, a.Input, a.Output)
			}
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}
