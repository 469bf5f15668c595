//go:build linux && !noengine

package cli

import (
	"fmt"
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/internal/orttest"
)

// textsProfile is a profile of an ensemble whose first stage is a tokenizer with an operator of a library. Its
// requests are texts of the user.
const textsProfile = `pipeline: repository/search
op_libraries: [%q]
output: out
search: {budget: {time: 3m, trials: 8}, window: 100ms}
models:
  tokenizer: {space: {intra_op_threads: 1, instance_count: [1, 2]}}
  encoder: {space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 4]}}
load: {concurrency: [2, 8], inputs: {data: texts.json}}
`

// newTexts writes such an ensemble, and the texts.
func newTexts(t *testing.T) (w workplace, library string) {
	t.Helper()
	library = orttest.LettersLibrary(t)
	w = newPipeline(t, fmt.Sprintf(textsProfile, library))
	w.putModel("tokenizer", orttest.LettersModel(), `platform: "onnxruntime_onnx" max_batch_size: 8
input { name: "text" data_type: TYPE_STRING dims: 1 } output { name: "tokens" data_type: TYPE_FP32 dims: 16 }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching {}`)
	w.putProducts("encoder", 16, 64, 256, 12)
	w.put("search/config.pbtxt", `platform: "ensemble" max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: 1 } output { name: "SCORE" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step { model_name: "tokenizer" model_version: -1 input_map { key: "text" value: "TEXT" } output_map { key: "tokens" value: "tokens" } }
  step { model_name: "encoder" model_version: -1 input_map { key: "x" value: "tokens" } output_map { key: "y" value: "vector" } }
  step { model_name: "head" model_version: -1 input_map { key: "x" value: "vector" } output_map { key: "y" value: "SCORE" } }
}`)
	w.write("texts.json", textsOf("Thank you.", "Where is my order?", "The train to Basel leaves at 17:42."))
	return w, library
}

// textsOf returns a data file with texts for the ensemble.
func textsOf(texts ...string) string {
	rows := make([]string, len(texts))
	for i, text := range texts {
		rows[i] = fmt.Sprintf(`{"TEXT": [%q]}`, text)
	}
	return `{"data": [` + strings.Join(rows, ", ") + `]}`
}

// A tokenizer is the first stage of a campaign: its requests are the user's texts, its operator comes from a
// library that the profile names, and the written repository names that library. The campaign continues with the
// same texts alone. An export carries the library, and is verified with these texts.
func TestPipelineOfTexts(t *testing.T) {
	t.Parallel()
	w, library := newTexts(t)
	w.write("without.yaml", strings.Replace(w.read("profile.yaml"), fmt.Sprintf("op_libraries: [%q]\n", library), "", 1))
	p := w.run(exit.Usage, "profile", "without.yaml", "-q")
	expect(t, p.stderr.String(), `the stage "tokenizer" uses the operator test:Letters`, "name the library with that operator in op_libraries")

	w.run(exit.OK, "profile", "profile.yaml", "-q")
	p = w.run(exit.OK, "analyze", "--input", "out", "--explain")
	expect(t, p.stdout.String(), "ottleneck is encoder", "texts.json")
	expect(t, w.read("out/repository/tokenizer/config.pbtxt"), `op_library_filename: ["`+library+`"]`)
	w.run(exit.OK, "profile", "profile.yaml", "-q") // nothing is left to do

	w.run(exit.OK, "export", "compose", "--input", "out", "-o", "deploy")
	const carried = "deploy/model_repository/tokenizer/operators/libletters.so"
	expect(t, w.read("deploy/model_repository/tokenizer/config.pbtxt"), `op_library_filename: ["/models/tokenizer/operators/libletters.so"]`)
	w.reported(throughputOf(1))
	p = w.run(exit.Usage, "export", "verify", "deploy")
	expect(t, p.stderr.String(), `model "tokenizer" needs libraries`, "allow them with --op-library "+carried)
	p = w.run(exit.OK, "export", "verify", "deploy", "--op-library", carried)
	expect(t, p.stdout.String(), "passed  tokenizer: ready: ", "passed  search: inference: ", "passed  search: throughput: ",
		"passed  tokenizer: accuracy: the model is the one that was measured")
	p = w.run(exit.Usage, "export", "kubernetes", "--input", "out", "--storage", "s3://models", "-o", "elsewhere")
	expect(t, p.stderr.String(), `cannot export "tokenizer"`, `it needs the library "`+library+`"`)

	w.write("texts.json", textsOf("Another text."))
	p = w.run(exit.Usage, "profile", "profile.yaml", "-q")
	expect(t, p.stderr.String(), "data of the requests")
}
