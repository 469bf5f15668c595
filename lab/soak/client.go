package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// patience is the time that a client waits for an answer. A request that takes longer is lost.
const patience = 60 * time.Second

// asker sends a question and returns the outputs.
type asker func(context.Context, question) ([]api.Tensor, error)

// client returns a client that sends questions to a model again and again and checks the answers.
// open makes its asker.
func (s *site) client(seed uint64, model string, open func(context.Context) (ask asker, done func())) func(context.Context) {
	return func(ctx context.Context) {
		r := rand.New(rand.NewPCG(seed, uint64(len(model))))
		// Clients finish a begun question after the end of the time.
		life := context.WithoutCancel(ctx)
		ask, done := open(life)
		defer done()
		for ctx.Err() == nil {
			s.once(life, model, s.ask(model, r), ask)
			pause(ctx, time.Duration(r.Int64N(int64(2*s.pause)+1)))
		}
	}
}

// once asks one question and counts the outcome. It reports whether the answer was right.
func (s *site) once(ctx context.Context, model string, q question, ask asker) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.tally.add(func(c *counts) { c.asked++ })
	before, begin := s.phase.now(), time.Now()
	outputs, err := ask(ctx, q)
	seconds := time.Since(begin).Seconds()
	mayRefuse := (model == volatile || model == guest) && (before.absent() || s.phase.now() != before)
	var refused *api.StatusError
	switch {
	case err == nil:
	case mayRefuse && errors.As(err, &refused) && isAbsence(refused.Text):
		s.tally.add(func(c *counts) { c.absent++ })
		return false
	default:
		s.tally.lose("%s: %v", model, err)
		return false
	}
	if err := q.check(outputs); err != nil {
		s.tally.mistake("%s: %v", model, err)
		return false
	}
	s.tally.add(func(c *counts) { c.checked++ })
	if works, until := s.onDuty(begin); model == simple && time.Now().Before(until) {
		s.tally.took(seconds, works)
	}
	return true
}

// isAbsence recognises the answers for a missing model.
func isAbsence(text string) bool {
	return strings.HasPrefix(text, "Request for unknown model: ") || strings.Contains(text, "has stopped accepting new inference requests")
}

// phase counts the loads and unloads of the volatile model. It is even while the model is loaded.
type phase struct{ n atomic.Int64 }

type moment int64

func (p *phase) now() moment                           { return moment(p.n.Load()) }
func (p *phase) next()                                 { p.n.Add(1) }
func (m moment) absent() bool                          { return m%2 == 1 }
func nothing()                                         {}
func (s *site) binary(context.Context) (asker, func()) { return through(s.http), nothing }
func (s *site) unary(context.Context) (asker, func())  { return through(s.grpc), nothing }

// through asks with one of tuner's own clients.
func through(c api.Client) asker {
	return func(ctx context.Context, q question) ([]api.Tensor, error) {
		encoded, err := c.Encode(q.request)
		if err != nil {
			return nil, err
		}
		answer, err := c.Infer(ctx, encoded)
		if err != nil {
			return nil, err
		}
		return answer.Outputs()
	}
}

// jsonTensor is a tensor in JSON.
type jsonTensor struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
	Data     any     `json:"data"`
}

// json asks in JSON, through Go's own HTTP client.
func (s *site) json(context.Context) (asker, func()) { return inJSON(s.inferURL) }

// inJSON asks in JSON at the URL of a model.
func inJSON(url func(model string) string) (asker, func()) {
	client := &http.Client{Transport: &http.Transport{}}
	return func(ctx context.Context, q question) ([]api.Tensor, error) {
		body, err := jsonBody(q)
		if err != nil {
			return nil, err
		}
		status, text, err := post(ctx, client, url(q.request.Model), body)
		if err != nil {
			return nil, err
		}
		return jsonAnswer(status, text, q.request.ID)
	}, client.CloseIdleConnections
}

func (s *site) inferURL(model string) string {
	return "http://" + s.at.HTTP + "/v2/models/" + model + "/infer"
}

func post(ctx context.Context, client *http.Client, url string, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

func jsonBody(q question) ([]byte, error) {
	var inputs []jsonTensor
	for _, t := range q.request.Inputs {
		inputs = append(inputs, jsonTensor{t.Name, t.Datatype, t.Shape, toJSON(t)})
	}
	body := map[string]any{"id": q.request.ID, "inputs": inputs}
	if p := q.place; p.id != 0 {
		body["parameters"] = map[string]any{"sequence_id": p.id, "sequence_start": p.start, "sequence_end": p.end}
	}
	return json.Marshal(body)
}

// toJSON lists the elements of a tensor of INT32 or BYTES.
func toJSON(t api.Tensor) any {
	if t.Datatype == "BYTES" {
		values := []string{}
		for data := t.Data; len(data) > 0; {
			end := 4 + binary.LittleEndian.Uint32(data)
			values, data = append(values, string(data[4:end])), data[end:]
		}
		return values
	}
	values := []int32{}
	for data := t.Data; len(data) > 0; data = data[4:] {
		values = append(values, int32(binary.LittleEndian.Uint32(data)))
	}
	return values
}

func jsonAnswer(status int, text []byte, id string) ([]api.Tensor, error) {
	if status != http.StatusOK {
		var failure api.Error
		if err := json.Unmarshal(text, &failure); err != nil {
			return nil, fmt.Errorf("status %d with %q", status, text)
		}
		return nil, &api.StatusError{Status: status, Text: failure.Text}
	}
	var answer struct {
		ID      string `json:"id"`
		Outputs []struct {
			jsonTensor
			Data json.RawMessage `json:"data"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	if answer.ID != id {
		return nil, fmt.Errorf("the answer is for request %q, not %q", answer.ID, id)
	}
	var out []api.Tensor
	for _, o := range answer.Outputs {
		data, err := fromJSON(o.Datatype, o.Data)
		if err != nil {
			return nil, err
		}
		out = append(out, api.Tensor{Name: o.Name, Datatype: o.Datatype, Shape: o.Shape, Data: data})
	}
	return out, nil
}

func fromJSON(datatype string, text json.RawMessage) ([]byte, error) {
	var data []byte
	if datatype == "BYTES" {
		var values []string
		err := json.Unmarshal(text, &values)
		for _, v := range values {
			data = append(binary.LittleEndian.AppendUint32(data, uint32(len(v))), v...)
		}
		return data, err
	}
	var values []int32
	err := json.Unmarshal(text, &values)
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return data, err
}

// stream asks over one gRPC stream. It opens a new one if the stream has broken or an answer was
// lost.
func (s *site) stream(ctx context.Context) (asker, func()) {
	connection, err := dial(s.at.GRPC)
	if err != nil {
		return func(context.Context, question) ([]api.Tensor, error) { return nil, err }, nothing
	}
	var stream pb.GRPCInferenceService_ModelStreamInferClient
	drop := nothing
	ask := func(asking context.Context, q question) (out []api.Tensor, err error) {
		var life context.Context // of the stream: longer than a question, unless that runs out of time
		if stream == nil {
			life, drop = context.WithCancel(ctx)
		}
		stop := context.AfterFunc(asking, drop)
		if stream == nil {
			stream, err = pb.NewGRPCInferenceServiceClient(connection).ModelStreamInfer(life)
		}
		if err == nil {
			out, err = exchange(stream, q)
		}
		if inTime := stop(); err != nil || !inTime {
			drop()
			stream = nil
		}
		return out, err
	}
	return ask, func() { drop(); _ = connection.Close() } // the connection's only user has ended
}

func dial(address string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

func exchange(stream pb.GRPCInferenceService_ModelStreamInferClient, q question) ([]api.Tensor, error) {
	if err := stream.Send(message(q)); err != nil {
		return nil, err
	}
	return receive(stream, q)
}

// receive takes the answer to a question from a stream.
func receive(stream pb.GRPCInferenceService_ModelStreamInferClient, q question) ([]api.Tensor, error) {
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if answer.GetErrorMessage() != "" {
		return nil, &api.StatusError{Text: answer.GetErrorMessage()}
	}
	return outputsOf(answer.GetInferResponse(), q)
}

// outputsOf reads an answer over gRPC.
func outputsOf(response *pb.ModelInferResponse, q question) ([]api.Tensor, error) {
	if response.GetId() != q.request.ID {
		return nil, fmt.Errorf("the answer is for request %q, not %q", response.GetId(), q.request.ID)
	}
	contents := response.GetRawOutputContents()
	if len(contents) != len(response.GetOutputs()) {
		return nil, fmt.Errorf("the answer has %d outputs, and the contents of %d", len(response.GetOutputs()), len(contents))
	}
	var out []api.Tensor
	for i, o := range response.GetOutputs() {
		out = append(out, api.Tensor{Name: o.GetName(), Datatype: o.GetDatatype(), Shape: o.GetShape(), Data: contents[i]})
	}
	return out, nil
}

func message(q question) *pb.ModelInferRequest {
	m := &pb.ModelInferRequest{ModelName: q.request.Model, Id: q.request.ID}
	if p := q.place; p.id != 0 {
		m.Parameters = map[string]*pb.InferParameter{
			"sequence_id":    {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: int64(p.id)}},
			"sequence_start": {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: p.start}},
			"sequence_end":   {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: p.end}},
		}
	}
	for _, t := range q.request.Inputs {
		m.Inputs = append(m.Inputs, &pb.ModelInferRequest_InferInputTensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape})
		m.RawInputContents = append(m.RawInputContents, t.Data)
	}
	return m
}

// pause waits, but not beyond ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
