package draft

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/golden"
	"tuner/model/precision/recipe"
	"tuner/search"
	"tuner/spec"
)

// allFormats are the formats that the written analyze.yaml names.
func allFormats() []string {
	return []string{"table", "csv", "data", "png", "html", "junit", spec.FormatConfig, spec.FormatRepository, spec.FormatHelm}
}

// parse reads a profile that must be valid.
func parse(t *testing.T, text string) spec.Profile {
	t.Helper()
	p, err := spec.ParseProfile("profile.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func starterTexts(t *testing.T, s Starter) (profile, analyze string) {
	t.Helper()
	p, err := s.Profile()
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Analyze()
	if err != nil {
		t.Fatal(err)
	}
	return string(p), string(a)
}

func minilmStarter() Starter {
	s := NewStarter("../models/minilm.onnx")
	s.Config, s.Cores, s.Batching = "config.pbtxt", 6, true
	s.Precisions = recipe.Choice{Names: []string{"fp32", "int8"},
		Left: []recipe.Left{{Name: "int8_static", Reason: "int8 converts 36 of its 36 layers, and needs no calibration"}}}
	s.Shapes = []StarterShape{{"input_ids", []int64{128}, "INT64[batch,sequence]", "a text of 128 tokens"}}
	return s
}

func TestStarterText(t *testing.T) {
	t.Parallel()
	profile, analyze := starterTexts(t, minilmStarter())
	golden.Check(t, filepath.Join("testdata", "starter.profile.yaml"), profile)
	golden.Check(t, filepath.Join("testdata", "starter.analyze.yaml"), analyze)
}

// The written file is valid. It has the same meaning as a profile without a space on that machine.
func TestStarterParses(t *testing.T) {
	t.Parallel()
	check := func(name string, s Starter) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profile, analyze := starterTexts(t, s)
			p, err := spec.ParseProfile("profile.yaml", []byte(profile))
			if err != nil {
				t.Fatal(err)
			}
			facts := search.Facts{Cores: s.Cores, Batching: s.Batching}
			if s.OnGPU {
				facts.Base = map[string]search.Value{search.KnobExecutionProvider: "cuda"}
			}
			if diff := cmp.Diff(parse(t, "model: a").Space(facts), p.Space(facts)); diff != "" {
				t.Errorf("space: %s", diff)
			}
			if p.Name != s.Name || p.Model.Path != s.Model {
				t.Errorf("name %q, model %q", p.Name, p.Model.Path)
			}
			for _, shape := range s.Shapes {
				if diff := cmp.Diff(shape.Dims, p.Inputs.Shape[shape.Input]); diff != "" {
					t.Errorf("%s: %s", shape.Input, diff)
				}
			}
			a, err := spec.ParseAnalyze("analyze.yaml", []byte(analyze), allFormats())
			if err != nil {
				t.Fatal(err)
			}
			if a.Input != p.Output {
				t.Errorf("analyze reads %q, profile writes %q", a.Input, p.Output)
			}
			if diff := cmp.Diff(allFormats(), a.Formats); diff != "" {
				t.Errorf("analyze leaves formats out (-all +written):\n%s", diff)
			}
		})
	}
	check("minilm", minilmStarter())
	check("on a GPU", Starter{Model: "m.onnx", Name: "m", Output: "out", Cores: 8, OnGPU: true, Batching: true})
	check("plain", Starter{Model: "m.onnx", Name: "m", Output: "out", Cores: 1})
	odd := NewStarter("/data/it's: a #model, {new}\t\n.onnx")
	odd.Shapes = []StarterShape{{`a: "b"`, []int64{3, 224}, "a\nnote: x", ""}, {"yes", nil, "note", "one: \"two\"\n#3"}}
	odd.Shapes[1].Dims = []int64{1}
	check("odd names", odd)
}

// The user's requests replace the examples in the file. Without a request there is no limit.
func TestStarterOfAWish(t *testing.T) {
	t.Parallel()
	check := func(name string, w Wish, want string) {
		t.Helper()
		s := minilmStarter()
		s.Config, s.Wish = "", &w
		text, _ := starterTexts(t, s)
		p, err := spec.ParseProfile("out/minilm/profile.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, text)
		}
		asked := parse(t, want)
		if diff := cmp.Diff(asked.Goal, p.Goal); diff != "" {
			t.Errorf("%s: goal: %s", name, diff)
		}
		if diff := cmp.Diff(asked.Accuracy, p.Accuracy); diff != "" {
			t.Errorf("%s: accuracy: %s", name, diff)
		}
		if p.Mode != asked.Mode || p.Search.Budget != asked.Search.Budget || p.Search.Until != asked.Search.Until || !slices.Equal(p.Model.Convert, asked.Model.Convert) {
			t.Errorf("%s: mode %q, budget %v, until %v, precisions %v", name, p.Mode, p.Search.Budget, p.Search.Until, p.Model.Convert)
		}
	}
	check("nothing", Wish{}, "model: m.onnx\n")
	check("everything", Wish{Budget: "90s", Until: "2%", Objective: "latency_p95", P99: "30ms", Accuracy: "0.995", Precisions: []string{"int8", "fp32"}},
		"model: m.onnx\nsearch: {budget: 90s, until: 2%}\nobjective: latency_p95\nspace: {precision: [int8, fp32]}\n"+
			"constraints: {latency_p99: {max: 30ms}, accuracy: {metric: cosine, min: 0.995}}\n")
	check("a mode", Wish{Mode: spec.ModeOnline}, "model: m.onnx\nmode: online\n")
	check("a mode with an objective", Wish{Mode: spec.ModeOnline, Objective: "memory"}, "model: m.onnx\nmode: online\nobjective: memory\n")
	check("offline", Wish{Mode: spec.ModeOffline, P99: "30ms"}, "model: m.onnx\nmode: offline\nconstraints: {latency_p99: {max: 30ms}}\n")
	check("a limit alone", Wish{P99: "30"}, "model: m.onnx\nconstraints: {latency_p99: {max: 30}}\n")
	check("accuracy alone", Wish{Accuracy: "0.9"}, "model: m.onnx\nconstraints: {accuracy: {metric: cosine, min: 0.9}}\n")
	check("a precision alone", Wish{Precisions: []string{"fp32", "int8"}}, "model: m.onnx\nspace: {precision: [fp32, int8]}\n")
}

// The commented-out examples are valid too: the file stays valid if any one line is uncommented.
func TestStarterExamples(t *testing.T) {
	t.Parallel()
	gpu := minilmStarter()
	gpu.OnGPU = true
	onGPU, _ := starterTexts(t, gpu)
	profile, analyze := starterTexts(t, minilmStarter())
	check := func(text string, excluded map[string]string, parse func(string) error) {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			indent, example, found := strings.Cut(line, "# ")
			key, _, isField := strings.Cut(example, ": ")
			if !found || strings.TrimSpace(indent) != "" || !isField || strings.Contains(key, " ") {
				continue
			}
			tried := append([]string{}, lines...)
			tried[i] = indent + example
			joined := strings.Join(tried, "\n")
			if other := excluded[key]; other != "" {
				joined = strings.Replace(joined, "\n"+indent+other+":", "\n"+indent+"#"+other+":", 1)
			}
			if err := parse(joined); err != nil {
				t.Errorf("with line %d uncommented: %v", i+1, err)
			}
		}
	}
	for _, text := range []string{profile, onGPU} {
		check(text, map[string]string{"weights": "objective"}, func(text string) error {
			_, err := spec.ParseProfile("p.yaml", []byte(text))
			return err
		})
	}
	check(analyze, nil, func(text string) error {
		_, err := spec.ParseAnalyze("a.yaml", []byte(text), allFormats())
		return err
	})
}
