//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tuner/lab/peers"
)

// frameworkCase is a model of a framework (testdata/frameworks.py).
type frameworkCase struct {
	File      string             `json:"file"`
	Arguments []string           `json:"arguments"` // of tuner run
	Requests  []frameworkRequest `json:"requests"`  // of one row each
}

// frameworkRequest has inputs, and the framework's own outputs for them.
type frameworkRequest struct {
	Inputs  []json.RawMessage `json:"inputs"`
	Outputs []jsonTensor      `json:"outputs"`
}

// jsonTensor is a tensor in Triton's JSON.
type jsonTensor struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
	Data     []any   `json:"data"`
}

// frameworkTolerance is the largest difference from the framework's output, relative to the larger of
// the output and 1. Converters and ONNX Runtime sum in other orders, in 32 bits.
const frameworkTolerance = 1e-4

// TestFrameworks takes models of PyTorch, TensorFlow, scikit-learn, XGBoost and LightGBM from their
// files to repositories with `tuner run`. The engine and a real Triton serve these, and must answer
// as the framework does.
func TestFrameworks(t *testing.T) {
	dir, err := peers.Dir()
	if err != nil {
		t.Fatal(err)
	}
	maker, err := filepath.Abs("testdata/frameworks.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, framework := range []string{"torch", "tensorflow", "sklearn"} {
		t.Run(framework, func(t *testing.T) {
			python := filepath.Join(dir, "frameworks", framework, "bin", "python")
			folder := t.TempDir()
			runTool(t, folder, python, maker, framework, folder)
			text, err := os.ReadFile(filepath.Join(folder, "cases.json"))
			if err != nil {
				t.Fatal(err)
			}
			var cases []frameworkCase
			if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
				t.Fatalf("%d models, %v", len(cases), err)
			}
			for _, c := range cases {
				t.Run(c.File, func(t *testing.T) { c.check(t, folder, python) })
			}
		})
	}
}

// check runs tuner on the model, and asks both servers.
func (c frameworkCase) check(t *testing.T, folder, python string) {
	program, out := environment(t, "TUNER_BINARY"), "out-"+strings.ReplaceAll(c.File, ".", "-")
	args := append([]string{"run", c.File, "--budget", "4s", "--precision", "fp32", "-o", out, "--python", python, "--ort-library", find(t).ORTLibrary}, c.Arguments...)
	runTool(t, folder, program, args...)
	repository := filepath.Join(folder, out, "repository")
	models, err := os.ReadDir(repository)
	if err != nil || len(models) != 1 {
		t.Fatalf("the repository has %d models, %v", len(models), err)
	}
	engine, err := find(t).StartTuner(t.Context(), program, repository)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, engine)
	triton, err := find(t).StartTriton(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, triton)
	for name, s := range map[string]*peers.Server{"the engine": engine, "Triton": triton} {
		for row, r := range c.Requests {
			if err := r.compare(s, models[0].Name()); err != nil {
				t.Errorf("%s, row %d: %v", name, row, err)
			}
		}
	}
	t.Logf("%d rows", len(c.Requests))
}

// compare sends the inputs to a server, and compares its answer with the framework's outputs.
func (r frameworkRequest) compare(s *peers.Server, model string) error {
	body, err := json.Marshal(map[string]any{"inputs": r.Inputs})
	if err != nil {
		return err
	}
	// a connection that stays open would delay Triton's end
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post("http://"+s.HTTP+"/v2/models/"+model+"/infer", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s (%v)", response.Status, text, err)
	}
	var answer struct {
		Outputs []jsonTensor `json:"outputs"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	got := map[string]jsonTensor{}
	for _, one := range answer.Outputs {
		got[one.Name] = one
	}
	if len(got) != len(r.Outputs) {
		return fmt.Errorf("there are %d outputs, the framework has %d: %s", len(got), len(r.Outputs), text)
	}
	for _, want := range r.Outputs {
		if err := want.equals(got[want.Name]); err != nil {
			return fmt.Errorf("output %s: %w", want.Name, err)
		}
	}
	return nil
}

// equals compares a tensor with a server's. Triton gives an output that has the batch dimension alone
// a second one, of size 1.
func (want jsonTensor) equals(got jsonTensor) error {
	isWidened := len(want.Shape) == 1 && reflect.DeepEqual(got.Shape, []int64{want.Shape[0], 1})
	if got.Datatype != want.Datatype || !reflect.DeepEqual(got.Shape, want.Shape) && !isWidened || len(got.Data) != len(want.Data) {
		return fmt.Errorf("it is %s%v, the framework's is %s%v", got.Datatype, got.Shape, want.Datatype, want.Shape)
	}
	for i, w := range want.Data {
		number, isNumber := w.(float64)
		if !isNumber || want.Datatype == "INT64" {
			if got.Data[i] != w {
				return fmt.Errorf("element %d is %v, the framework's is %v", i, got.Data[i], w)
			}
			continue
		}
		g, _ := got.Data[i].(float64)
		if !(math.Abs(g-number) <= frameworkTolerance*max(1, math.Abs(number))) {
			return fmt.Errorf("element %d is %v, the framework's is %v", i, g, number)
		}
	}
	return nil
}
