package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	packing "google.golang.org/grpc/encoding/gzip"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// Further ways of asking the questions: compressed, by the generate extension, on SageMaker's path,
// through shared memory, and by clients that read slowly.

// zipped asks in binary form over HTTP, with body and answer compressed.
func (s *site) zipped(coding string) func(context.Context) (asker, func()) {
	return func(context.Context) (asker, func()) {
		client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
		return func(ctx context.Context, q question) ([]api.Tensor, error) {
			body, header, err := api.EncodeHTTP(q.request)
			if err != nil {
				return nil, err
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.inferURL(q.request.Model), bytes.NewReader(compress(coding, body)))
			if err != nil {
				return nil, err
			}
			r.Header.Set("Content-Encoding", coding)
			r.Header.Set("Accept-Encoding", coding)
			r.Header.Set(api.HeaderLength, strconv.Itoa(header))
			response, err := client.Do(r)
			if err != nil {
				return nil, err
			}
			defer response.Body.Close()
			if got := response.Header.Get("Content-Encoding"); response.StatusCode == http.StatusOK && got != coding {
				return nil, fmt.Errorf("the answer has the coding %q, not %q", got, coding)
			}
			return binaryOf(response, coding, q.request.ID)
		}, client.CloseIdleConnections
	}
}

// compress packs data. A bytes.Buffer takes all, so that no error is possible.
func compress(coding string, data []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if coding == "deflate" {
		w = zlib.NewWriter(&b)
	}
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// binaryOf reads an answer over HTTP in binary form. coding is "" for one that is not compressed.
func binaryOf(response *http.Response, coding, id string) ([]api.Tensor, error) {
	var from io.Reader = response.Body
	var err error
	switch coding {
	case "gzip":
		from, err = gzip.NewReader(response.Body)
	case "deflate":
		from, err = zlib.NewReader(response.Body)
	}
	if err != nil {
		return nil, fmt.Errorf("status %d, and the body is not %s: %w", response.StatusCode, coding, err)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d with %s", response.StatusCode, text)
	}
	header, err := strconv.Atoi(response.Header.Get(api.HeaderLength))
	if err != nil {
		return nil, fmt.Errorf("the answer does not say where its binary part begins: %w", err)
	}
	return binaryAnswer(text, header, id)
}

// zippedUnary asks over gRPC with compressed messages.
func (s *site) zippedUnary(context.Context) (asker, func()) {
	return s.calls(grpc.UseCompressor(packing.Name))
}

// unarySteps asks over gRPC, with a question's place in its sequence.
func (s *site) unarySteps(context.Context) (asker, func()) { return s.calls() }

// calls asks over gRPC, on a connection of its own.
func (s *site) calls(options ...grpc.CallOption) (asker, func()) {
	connection, err := dial(s.at.GRPC)
	if err != nil {
		return func(context.Context, question) ([]api.Tensor, error) { return nil, err }, nothing
	}
	client := pb.NewGRPCInferenceServiceClient(connection)
	return func(ctx context.Context, q question) ([]api.Tensor, error) {
		answer, err := client.ModelInfer(ctx, message(q), options...)
		if err != nil {
			return nil, err
		}
		return outputsOf(answer, q)
	}, func() { _ = connection.Close() } // its only user has ended
}

// invocations asks on SageMaker's path, whose model the environment of the engine names.
func (s *site) invocations(context.Context) (asker, func()) {
	return inJSON(func(string) string { return "http://" + s.cloud + "/invocations" })
}

// generate asks the model of strings by the generate extension, and every second time for events.
func (s *site) generate(context.Context) (asker, func()) {
	client := &http.Client{Transport: &http.Transport{}}
	n := 0
	return func(ctx context.Context, q question) ([]api.Tensor, error) {
		in := q.request.Inputs[0]
		body, err := json.Marshal(map[string]any{in.Name: toJSON(in)})
		if err != nil {
			return nil, err
		}
		verb := []string{"generate", "generate_stream"}[n%2]
		n++
		status, text, err := post(ctx, client, "http://"+s.at.HTTP+"/v2/models/"+q.request.Model+"/"+verb, body)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			return nil, fmt.Errorf("status %d with %s", status, excerpt(text))
		}
		return generated(strings.TrimPrefix(strings.TrimSpace(string(text)), "data: "), in.Shape)
	}, client.CloseIdleConnections
}

// generated reads the answer of the generate extension. One string is no list.
func generated(text string, shape []int64) ([]api.Tensor, error) {
	var answer struct {
		Output json.RawMessage `json:"OUTPUT0"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	if len(answer.Output) > 0 && answer.Output[0] == '"' {
		answer.Output = append(append([]byte{'['}, answer.Output...), ']')
	}
	data, err := fromJSON("BYTES", answer.Output)
	return []api.Tensor{{Name: "OUTPUT0", Datatype: "BYTES", Shape: shape, Data: data}}, err
}

// late asks over streams with a small window, and reads each answer two seconds after it has sent the question.
func (s *site) late(context.Context) (asker, func()) {
	const window = 64 << 10
	connection, err := dial(s.at.GRPC, grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window))
	if err != nil {
		return func(context.Context, question) ([]api.Tensor, error) { return nil, err }, nothing
	}
	client := pb.NewGRPCInferenceServiceClient(connection)
	return func(ctx context.Context, q question) ([]api.Tensor, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := client.ModelStreamInfer(ctx)
		if err != nil {
			return nil, err
		}
		if err := stream.Send(message(q)); err != nil {
			return nil, err
		}
		pause(ctx, 2*time.Second)
		return receive(stream, q)
	}, func() { _ = connection.Close() } // its only user has ended
}

// readSlowly asks for long answers over HTTP, and takes some seconds to read each.
func (s *site) readSlowly(ctx context.Context) {
	for life := context.WithoutCancel(ctx); ctx.Err() == nil; {
		q := echo(maxRows, unreadRow/2)
		want := q.request.Inputs[0]
		want.Name = "OUTPUT0"
		q.check = func(got []api.Tensor) error { return same(got, map[string]api.Tensor{want.Name: want}) }
		s.once(life, text, q, s.sipping)
	}
}

// sipping asks over HTTP, and reads the answer in small parts.
func (s *site) sipping(_ context.Context, q question) ([]api.Tensor, error) {
	c, err := connect(s.at.HTTP)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	// a small buffer, so that the answer waits in the engine
	if err := errors.Join(c.SetReadBuffer(16<<10), c.SetDeadline(time.Now().Add(patience))); err != nil {
		return nil, err
	}
	if _, err := c.Write(rawRequest(q)); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(sips{c}), nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return binaryOf(response, "", q.request.ID)
}

// sips is a connection that is read in small parts, 20 in some two seconds.
type sips struct{ io.Reader }

func (s sips) Read(p []byte) (int, error) {
	const part = 20 << 10
	time.Sleep(100 * time.Millisecond)
	return s.Reader.Read(p[:min(len(p), part)])
}

// regions numbers the regions of shared memory.
type regions struct{ n atomic.Int64 }

// Places in the region of a client, in bytes.
const (
	regionBytes = 64 << 10
	placeBytes  = 8 << 10 // for each tensor: the inputs first, then the outputs
	renewAfter  = 100     // questions, then the region is registered again
)

// shared asks a model of integers through a region of shared memory of its own, over HTTP or gRPC.
func (s *site) shared(overGRPC bool) func(context.Context) (asker, func()) {
	return func(context.Context) (asker, func()) {
		name := fmt.Sprintf("tuner-soak-%d-%d", os.Getpid(), s.regions.n.Add(1))
		path := filepath.Join("/dev/shm", name)
		r := &region{site: s, name: name, overGRPC: overGRPC, http: &http.Client{Transport: &http.Transport{}}}
		var err error
		if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = r.file.Truncate(regionBytes)
		}
		if err == nil {
			r.connection, err = dial(s.at.GRPC)
		}
		if err != nil {
			return func(context.Context, question) ([]api.Tensor, error) { return nil, err }, nothing
		}
		return r.ask, func() {
			_ = errors.Join(r.connection.Close(), r.file.Close(), os.Remove(path)) // the end of the program
			r.http.CloseIdleConnections()
		}
	}
}

// region is a client's region of shared memory.
type region struct {
	*site
	name       string
	overGRPC   bool
	file       *os.File
	http       *http.Client
	connection *grpc.ClientConn
	questions  int
}

// ask writes the inputs into the region, and reads the outputs out of it.
func (r *region) ask(ctx context.Context, q question) ([]api.Tensor, error) {
	if r.questions%renewAfter == 0 {
		if err := r.renew(ctx); err != nil {
			return nil, err
		}
	}
	r.questions++
	stale := bytes.Repeat([]byte{0xa5}, regionBytes)
	if _, err := r.file.WriteAt(stale, 0); err != nil {
		return nil, err
	}
	for i, t := range q.request.Inputs {
		if _, err := r.file.WriteAt(t.Data, int64(i)*placeBytes); err != nil {
			return nil, err
		}
	}
	outputs, err := r.exchange(ctx, q)
	for i := range outputs {
		t := &outputs[i]
		t.Data = make([]byte, 4*elements(t.Shape)) // of INT32
		k := map[string]int64{"OUTPUT0": 2, "OUTPUT1": 3}[t.Name]
		if _, err := r.file.ReadAt(t.Data, k*placeBytes); err != nil {
			return nil, err
		}
	}
	return outputs, err
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= min(max(d, 0), placeBytes) // a wrong answer may say anything
	}
	return min(n, placeBytes/4)
}

// exchange sends a question. The outputs of the answer have no data.
func (r *region) exchange(ctx context.Context, q question) ([]api.Tensor, error) {
	if r.overGRPC {
		m := message(q)
		m.RawInputContents = nil
		for i, in := range m.Inputs {
			in.Parameters = r.parameters(i, len(q.request.Inputs[i].Data))
		}
		for i := range 2 {
			m.Outputs = append(m.Outputs, &pb.ModelInferRequest_InferRequestedOutputTensor{Name: fmt.Sprint("OUTPUT", i), Parameters: r.parameters(2+i, placeBytes)})
		}
		answer, err := pb.NewGRPCInferenceServiceClient(r.connection).ModelInfer(ctx, m)
		if err != nil {
			return nil, err
		}
		var out []api.Tensor
		for _, o := range answer.GetOutputs() {
			out = append(out, api.Tensor{Name: o.GetName(), Datatype: o.GetDatatype(), Shape: o.GetShape()})
		}
		return out, nil
	}
	type tensor struct {
		Name       string         `json:"name"`
		Datatype   string         `json:"datatype,omitempty"`
		Shape      []int64        `json:"shape,omitempty"`
		Parameters map[string]any `json:"parameters"`
	}
	at := func(k, size int) map[string]any {
		return map[string]any{"shared_memory_region": r.name, "shared_memory_offset": k * placeBytes, "shared_memory_byte_size": size}
	}
	var body struct {
		ID      string   `json:"id"`
		Inputs  []tensor `json:"inputs"`
		Outputs []tensor `json:"outputs"`
	}
	body.ID = q.request.ID
	for i, t := range q.request.Inputs {
		body.Inputs = append(body.Inputs, tensor{t.Name, t.Datatype, t.Shape, at(i, len(t.Data))})
	}
	for i := range 2 {
		body.Outputs = append(body.Outputs, tensor{Name: fmt.Sprint("OUTPUT", i), Parameters: at(2+i, placeBytes)})
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	status, text, err := post(ctx, r.http, r.inferURL(q.request.Model), sent)
	if err != nil {
		return nil, err
	}
	var answer struct{ Outputs []tensor }
	if status != http.StatusOK || json.Unmarshal(text, &answer) != nil {
		return nil, fmt.Errorf("status %d with %s", status, text)
	}
	var out []api.Tensor
	for _, o := range answer.Outputs {
		out = append(out, api.Tensor{Name: o.Name, Datatype: o.Datatype, Shape: o.Shape})
	}
	return out, nil
}

func (r *region) parameters(k, size int) map[string]*pb.InferParameter {
	number := func(n int) *pb.InferParameter {
		return &pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: int64(n)}}
	}
	return map[string]*pb.InferParameter{
		"shared_memory_region": {ParameterChoice: &pb.InferParameter_StringParam{StringParam: r.name}},
		"shared_memory_offset": number(k * placeBytes), "shared_memory_byte_size": number(size),
	}
}

// renew registers the region again.
func (r *region) renew(ctx context.Context) error {
	at := "http://" + r.at.HTTP + "/v2/systemsharedmemory/region/" + r.name
	for _, call := range []struct{ verb, body string }{
		{"unregister", ""}, {"register", fmt.Sprintf(`{"key":"/%s","offset":0,"byte_size":%d}`, r.name, regionBytes)},
	} {
		status, text, err := post(ctx, r.http, at+"/"+call.verb, []byte(call.body))
		if err != nil || status != http.StatusOK {
			return errors.Join(fmt.Errorf("cannot %s a region: %d %s", call.verb, status, text), err)
		}
	}
	return nil
}

// follow returns a client that sends sequences to a model one after the other, and checks their sums.
func (s *site) follow(seed uint64, model string, open func(context.Context) (ask asker, done func())) func(context.Context) {
	return func(ctx context.Context) {
		r := rand.New(rand.NewPCG(seed, uint64(len(model))))
		life := context.WithoutCancel(ctx)
		ask, done := open(life)
		defer done()
		for n := uint64(1); ctx.Err() == nil; n++ {
			var sum int32
			length := 1 + r.IntN(longestSequence)
			for i := range length {
				q := askSum(model, r.Int32N(1000), &sum)
				q.place = place{id: (1+seed)<<32 + n, start: i == 0, end: i == length-1 || ctx.Err() != nil}
				if right := s.once(life, model, q, ask); !right || q.place.end {
					break
				}
				pause(ctx, time.Duration(r.Int64N(int64(2*s.pause)+1)))
			}
		}
	}
}

const longestSequence = 20

// askSum adds a number to a sequence, and asks for its sum.
func askSum(model string, number int32, sum *int32) question {
	*sum += number
	shape, want := []int64{1, 1}, binary.LittleEndian.AppendUint32(nil, uint32(*sum))
	return question{
		request: api.InferRequest{Model: model, ID: strconv.Itoa(int(number)), Inputs: []api.Tensor{
			{Name: "INPUT", Datatype: "INT32", Shape: shape, Data: binary.LittleEndian.AppendUint32(nil, uint32(number))},
		}},
		check: func(got []api.Tensor) error {
			return same(got, map[string]api.Tensor{"OUTPUT": {Datatype: "INT32", Shape: shape, Data: want}})
		},
	}
}

// summing configures a model that sums the numbers of a sequence. A client that waits for the processor keeps
// its slot.
func summing(strategy string) string {
	return `max_batch_size: 4
input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
sequence_batching {
  max_sequence_idle_microseconds: 120000000
  control_input [ { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "SUM" output_name: "NEXT_SUM" data_type: TYPE_INT32 dims: [ 1 ] initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]
  ` + strategy + "\n}\n"
}

// ensemble configures one of two models with simple's inputs and outputs.
func ensemble(first, second string) string {
	side := func(field, tensor string) (text string) {
		for i := range 2 {
			text += fmt.Sprintf("%s [ { name: \"%s%d\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n", field, tensor, i)
		}
		return text
	}
	step := func(model, from, to string) string {
		text := fmt.Sprintf("step [ { model_name: %q model_version: -1", model)
		for i := range 2 {
			text += fmt.Sprintf(" input_map { key: \"INPUT%d\" value: \"%s%d\" } output_map { key: \"OUTPUT%d\" value: \"%s%d\" }", i, from, i, i, to, i)
		}
		return text + " } ]\n"
	}
	return "platform: \"ensemble\"\nmax_batch_size: 4\n" + side("input", "INPUT") + side("output", "OUTPUT") +
		"ensemble_scheduling {\n" + step(first, "INPUT", "between") + step(second, "between", "OUTPUT") + "}\n"
}
