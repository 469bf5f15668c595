package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// Vandals are clients that break off, send invalid bytes, or are slow. They must not affect other
// clients.

const (
	vandalPause = 20 * time.Millisecond
	slowPause   = time.Second // between two bytes
	slowOnes    = 8
)

// connect opens a connection that sends nothing by itself.
func connect(address string) (*net.TCPConn, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// hangUp closes a connection in one of two ways: normally, or with a reset.
func hangUp(c *net.TCPConn, rude bool) {
	if rude {
		_ = c.SetLinger(0) // fails only for a closed connection
	}
	_ = c.Close()
}

// vandalize repeats an act on fresh connections.
func (s *site) vandalize(ctx context.Context, address string, act func(c *net.TCPConn, r *rand.Rand) error) {
	r := rand.New(rand.NewPCG(3, uint64(len(address))))
	for ctx.Err() == nil {
		c, err := connect(address)
		if err != nil {
			s.tally.fail("cannot connect: %v", err)
			return
		}
		_ = act(c, r) // the engine may rightly close first
		hangUp(c, r.IntN(2) == 0)
		s.tally.add(func(c *counts) { c.vanished++ })
		pause(ctx, vandalPause)
	}
}

// rawRequest returns a question in the form of an HTTP request.
func rawRequest(q question) []byte {
	body, header, err := api.EncodeHTTP(q.request)
	if err != nil {
		panic(err) // our own request: a bug of ours
	}
	head := fmt.Sprintf("POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s: %d\r\n\r\n", q.request.Model, len(body), api.HeaderLength, header)
	return append([]byte(head), body...)
}

// halfBodies sends a part of a request and leaves.
func (s *site) halfBodies(ctx context.Context) {
	s.vandalize(ctx, s.at.HTTP, func(c *net.TCPConn, r *rand.Rand) error {
		request := rawRequest(s.ask(text, r))
		_, err := c.Write(request[:r.IntN(len(request))])
		return err
	})
}

// leave sends a whole request and leaves before its answer.
func (s *site) leave(ctx context.Context) {
	s.vandalize(ctx, s.at.HTTP, func(c *net.TCPConn, r *rand.Rand) error {
		_, err := c.Write(rawRequest(s.ask(minilm, r)))
		time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond) // sometimes it is queued by then
		return err
	})
}

// rawBytes returns a client that sends bytes of no protocol.
func (s *site) rawBytes(address string) func(context.Context) {
	return func(ctx context.Context) {
		s.vandalize(ctx, address, func(c *net.TCPConn, r *rand.Rand) error {
			data := randomBytes(r, 2000)
			if r.IntN(2) == 0 {
				data = append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), data...) // so that HTTP/2 begins
			}
			_, err := c.Write(data)
			return err
		})
	}
}

func randomBytes(r *rand.Rand, limit int) []byte {
	data := make([]byte, 1+r.IntN(limit))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// cancel asks over gRPC, and cancels after a few milliseconds; on streams, too.
func (s *site) cancel(ctx context.Context) {
	r := rand.New(rand.NewPCG(4, 4))
	connection, err := dial(s.at.GRPC)
	if err != nil {
		s.tally.fail("cannot connect: %v", err)
		return
	}
	defer connection.Close()
	client := pb.NewGRPCInferenceServiceClient(connection)
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(8))*time.Millisecond)
		m := message(s.ask(minilm, r))
		if r.IntN(2) == 0 {
			_, err = client.ModelInfer(short, m)
		} else if stream, opened := client.ModelStreamInfer(short); opened == nil {
			for range 3 {
				err = errors.Join(err, stream.Send(m))
			}
			_, err = stream.Recv()
		}
		cancel()
		if code := status.Code(err); code != codes.OK && code != codes.DeadlineExceeded && code != codes.Canceled && ctx.Err() == nil {
			s.tally.fail("an impatient client got %v", err)
		}
		err = nil
		s.tally.add(func(c *counts) { c.vanished++ })
		pause(ctx, vandalPause)
	}
}

// garbage sends well-framed requests with wrong content. Each must be refused with a readable
// error.
func (s *site) garbage(ctx context.Context) {
	r := rand.New(rand.NewPCG(5, 5))
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	connection, err := dial(s.at.GRPC)
	if err != nil {
		s.tally.fail("cannot connect: %v", err)
		return
	}
	defer connection.Close()
	for life := context.WithoutCancel(ctx); ctx.Err() == nil; {
		for _, body := range nonsense(r) {
			code, answer, err := post(life, client, s.inferURL(simple), body)
			var failure api.Error
			if err != nil || code < 400 || json.Unmarshal(answer, &failure) != nil || failure.Text == "" {
				s.tally.fail("nonsense %s was answered with %d %s, %v", excerpt(body), code, excerpt(answer), err)
				continue
			}
			s.tally.add(func(c *counts) { c.nonsense++ })
		}
		err := patiently(life, func(ctx context.Context) error {
			return connection.Invoke(ctx, pb.GRPCInferenceService_ModelInfer_FullMethodName, truncated(r), new(emptypb.Empty))
		})
		switch status.Code(err) {
		case codes.OK, codes.Unavailable, codes.DeadlineExceeded:
			s.tally.fail("a truncated message was answered with %v", err)
		default:
			s.tally.add(func(c *counts) { c.nonsense++ })
		}
		pause(ctx, vandalPause)
	}
}

// provoke runs a model that throws, over both protocols. Each answer must contain the thrown error.
func (s *site) provoke(ctx context.Context) {
	q := question{request: api.InferRequest{Model: failing, Inputs: []api.Tensor{
		{Name: "INPUT", Datatype: "FP32", Shape: []int64{1, 4}, Data: make([]byte, 16)},
	}}}
	for life := context.WithoutCancel(ctx); ctx.Err() == nil; {
		for _, ask := range []asker{through(s.http), through(s.grpc)} {
			var refused *api.StatusError
			err := patiently(life, func(ctx context.Context) error { return second(ask(ctx, q)) })
			if !errors.As(err, &refused) || !strings.Contains(refused.Text, "onnx runtime error") {
				s.tally.fail("a model that throws was answered with %v", err)
				continue
			}
			s.tally.add(func(c *counts) { c.nonsense++ })
		}
		pause(ctx, vandalPause)
	}
}

// patiently does something that waits for an answer, and gives up after the client's patience.
func patiently(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return do(ctx)
}

// nonsense makes bodies that no model can answer.
func nonsense(r *rand.Rand) [][]byte {
	good, err := jsonBody(askSimple(simple, r))
	if err != nil {
		panic(err) // our own request: a bug of ours
	}
	replace := func(old, with string) []byte { return bytes.Replace(good, []byte(old), []byte(with), 1) }
	return [][]byte{
		randomBytes(r, 300), good[:r.IntN(len(good)-1)], []byte(strings.Repeat("[", 5000)), []byte(`{"inputs":[]}`),
		replace(`"INPUT0"`, `"INPUT9"`), replace(`"INT32"`, `"INT33"`), replace(`"shape":[`, `"shape":[-1,`),
		replace(`"shape":[`, `"shape":[9223372036854775807,`), replace(`,16]`, `,15]`),
	}
}

// truncated returns a message that consists of the first bytes of a valid request.
func truncated(r *rand.Rand) proto.Message {
	whole, err := proto.Marshal(message(askSimple(simple, r)))
	if err != nil {
		panic(err) // our own request: a bug of ours
	}
	m := new(emptypb.Empty)
	m.ProtoReflect().SetUnknown(whole[:1+r.IntN(len(whole)-1)])
	return m
}

// slow keeps connections that send a byte per second, and then leave.
func (s *site) slow(ctx context.Context) {
	var all sync.WaitGroup
	for i := range uint64(slowOnes) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(6, i))
			for ctx.Err() == nil {
				s.dribble(ctx, r)
			}
		})
	}
	all.Wait()
}

func (s *site) dribble(ctx context.Context, r *rand.Rand) {
	c, err := connect(s.at.HTTP)
	if err != nil {
		s.tally.fail("cannot connect: %v", err)
		pause(ctx, slowPause)
		return
	}
	defer hangUp(c, r.IntN(2) == 0)
	request := rawRequest(s.ask(simple, r))
	first := r.IntN(len(request)) // in the header, or in the body
	if _, err := c.Write(request[:first]); err != nil {
		return
	}
	for _, b := range request[first:min(first+30, len(request)-1)] {
		if _, err := c.Write([]byte{b}); err != nil || ctx.Err() != nil {
			return
		}
		pause(ctx, slowPause)
	}
	s.tally.add(func(c *counts) { c.vanished++ })
}

// patient sends whole requests in small pieces over seconds, and must be answered.
func (s *site) patient(ctx context.Context) {
	r := rand.New(rand.NewPCG(8, 8))
	for life := context.WithoutCancel(ctx); ctx.Err() == nil; {
		s.once(life, simple, s.ask(simple, r), s.byPieces)
	}
}

// byPieces asks with a second between the pieces of the request.
func (s *site) byPieces(_ context.Context, q question) ([]api.Tensor, error) {
	c, err := connect(s.at.HTTP)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	for piece := range bytes.Lines(rawRequest(q)) { // line breaks in the body occur only by chance
		half := len(piece) / 2
		for _, part := range [][]byte{piece[:half], piece[half:]} {
			time.Sleep(slowPause)
			if _, err := c.Write(part); err != nil {
				return nil, err
			}
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return binaryOf(response, "", q.request.ID)
}

// binaryAnswer reads an answer that consists of JSON and binary outputs.
func binaryAnswer(text []byte, header int, id string) ([]api.Tensor, error) {
	if header < 0 || header > len(text) {
		return nil, fmt.Errorf("%d bytes of JSON in an answer of %d", header, len(text))
	}
	var answer struct {
		ID      string `json:"id"`
		Outputs []struct {
			jsonTensor
			Parameters struct {
				Size int `json:"binary_data_size"`
			} `json:"parameters"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(text[:header], &answer); err != nil {
		return nil, fmt.Errorf("the answer is no JSON: %w", err)
	}
	if answer.ID != id {
		return nil, fmt.Errorf("the answer is for request %q, not %q", answer.ID, id)
	}
	var out []api.Tensor
	rest := text[header:]
	for _, o := range answer.Outputs {
		size := o.Parameters.Size
		if size < 0 || size > len(rest) {
			return nil, fmt.Errorf("output %q has %d bytes, but %d are left", o.Name, size, len(rest))
		}
		out = append(out, api.Tensor{Name: o.Name, Datatype: o.Datatype, Shape: o.Shape, Data: rest[:size]})
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes belong to no output", len(rest))
	}
	return out, nil
}
