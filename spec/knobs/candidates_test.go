package knobs_test

import (
	"path/filepath"
	"testing"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/knobs"
)

// completeConfig returns Triton's auto-completion of a small model with a batch dimension.
func completeConfig(t *testing.T) *modelconfig.Config {
	t.Helper()
	side := func(name string) []modelconfig.Tensor {
		return []modelconfig.Tensor{{Name: name, DataType: configpb.DataType_TYPE_FP32, Dims: []int64{-1, 8}}}
	}
	c, err := modelconfig.Complete(&modelconfig.Config{}, modelconfig.CompleteOptions{
		DirName: "m", HasModelFile: true, IO: &modelconfig.ModelIO{Inputs: side("x"), Outputs: side("y")}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every candidate of the shipped examples gives a configuration that Triton would accept and that
// survives writing and reading. It differs from all others, without precision and runtime, which
// are not part of the configuration.
func TestEveryCandidateApplies(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../configs/*.profile.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples found (%v)", err)
	}
	base := completeConfig(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			p, err := spec.ReadProfile(file)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]string{}
			for _, c := range p.Space(search.Facts{Cores: 2, Batching: true}).Candidates().All() {
				precision, _ := c.Get(search.KnobPrecision)
				runtime, _ := c.Get(search.KnobRuntime)
				applied, err := knobs.Apply(base, c)
				if err != nil {
					t.Fatal(err)
				}
				printed := formatConfig(t, applied)
				if !modelconfig.Equal(applied, parseConfig(t, printed)) {
					t.Fatalf("%s does not survive printing", c)
				}
				key := string(precision+" "+runtime) + printed
				if other := seen[key]; other != "" {
					t.Fatalf("%s and %s are the same configuration", c, other)
				}
				seen[key] = c.Key()
			}
		})
	}
}
