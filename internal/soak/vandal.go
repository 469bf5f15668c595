package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Vandals are clients that break off, send nonsense, or take their time. What they do must harm nobody else.

const (
	vandalPause = 20 * time.Millisecond
	slowPause   = time.Second // between two bytes
	slowOnes    = 8
)

// connect opens a connection that does nothing by itself.
func connect(address string) (*net.TCPConn, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// hangUp closes a connection in one of two ways: politely, or with a reset.
func hangUp(c *net.TCPConn, rude bool) {
	if rude {
		_ = c.SetLinger(0) // fails only for a connection that is gone
	}
	_ = c.Close()
}

// vandalize repeats an act on fresh connections.
func (s *site) vandalize(ctx context.Context, address string, act func(c *net.TCPConn, r *rand.Rand) error) {
	r := rand.New(rand.NewPCG(3, uint64(len(address))))
	for ctx.Err() == nil {
		c, err := connect(address)
		if err != nil {
			s.tally.lose("cannot connect: %v", err)
			return
		}
		_ = act(c, r) // the engine may close first, and is right to
		hangUp(c, r.IntN(2) == 0)
		s.tally.add(func(c *counts) { c.vanished++ })
		pause(ctx, vandalPause)
	}
}

// rawRequest is a question as it travels over HTTP.
func (s *site) rawRequest(model string, r *rand.Rand) []byte {
	body, header, err := api.EncodeHTTP(s.ask(model, r).request)
	if err != nil {
		panic(err) // our own request: a bug of ours
	}
	head := fmt.Sprintf("POST /v2/models/%s/infer HTTP/1.1\r\nHost: soak\r\nContent-Length: %d\r\n%s: %d\r\n\r\n", model, len(body), api.HeaderLength, header)
	return append([]byte(head), body...)
}

// halfBodies sends a part of a request and leaves.
func (s *site) halfBodies(ctx context.Context) {
	s.vandalize(ctx, s.at.HTTP, func(c *net.TCPConn, r *rand.Rand) error {
		request := s.rawRequest(text, r)
		_, err := c.Write(request[:r.IntN(len(request))])
		return err
	})
}

// leave sends a whole request and leaves before its answer.
func (s *site) leave(ctx context.Context) {
	s.vandalize(ctx, s.at.HTTP, func(c *net.TCPConn, r *rand.Rand) error {
		_, err := c.Write(s.rawRequest(minilm, r))
		time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond) // sometimes it is queued by then
		return err
	})
}

// rawBytes returns who sends what belongs to no protocol.
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

// cancel asks over gRPC, and loses patience after a few milliseconds; on streams, too.
func (s *site) cancel(ctx context.Context) {
	r := rand.New(rand.NewPCG(4, 4))
	connection, err := dial(s.at.GRPC)
	if err != nil {
		s.tally.lose("cannot connect: %v", err)
		return
	}
	defer connection.Close()
	client := pb.NewGRPCInferenceServiceClient(connection)
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(8))*time.Millisecond)
		m := message(s.ask(minilm, r).request)
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
			s.tally.mistake("an impatient client got %v", err)
		}
		err = nil
		s.tally.add(func(c *counts) { c.vanished++ })
		pause(ctx, vandalPause)
	}
}

// garbage sends well-framed requests whose content is wrong; each must be refused, with an error that can be read.
func (s *site) garbage(ctx context.Context) {
	r := rand.New(rand.NewPCG(5, 5))
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	connection, err := dial(s.at.GRPC)
	if err != nil {
		s.tally.lose("cannot connect: %v", err)
		return
	}
	defer connection.Close()
	for life := context.WithoutCancel(ctx); ctx.Err() == nil; {
		for _, body := range nonsense(r) {
			code, answer, err := post(life, client, s.inferURL(simple), body)
			var failure api.Error
			if err != nil || code < 400 || json.Unmarshal(answer, &failure) != nil || failure.Text == "" {
				s.tally.mistake("nonsense %s was answered with %d %s, %v", excerpt(body), code, excerpt(answer), err)
				continue
			}
			s.tally.add(func(c *counts) { c.nonsense++ })
		}
		if err := connection.Invoke(life, pb.GRPCInferenceService_ModelInfer_FullMethodName, truncated(r), new(emptypb.Empty)); status.Code(err) == codes.OK || status.Code(err) == codes.Unavailable {
			s.tally.mistake("a truncated message was answered with %v", err)
		}
		s.tally.add(func(c *counts) { c.nonsense++ })
		pause(ctx, vandalPause)
	}
}

// provoke runs a model that throws, over both protocols. Each request must be answered with what was thrown.
func (s *site) provoke(ctx context.Context) {
	q := question{request: api.InferRequest{Model: failing, Inputs: []api.Tensor{
		{Name: "INPUT", Datatype: "FP32", Shape: []int64{1, 4}, Data: make([]byte, 16)},
	}}}
	for life := context.WithoutCancel(ctx); ctx.Err() == nil; {
		for _, ask := range []asker{through(s.http), through(s.grpc)} {
			var refused *api.StatusError
			if _, err := ask(life, q); !errors.As(err, &refused) || !strings.Contains(refused.Text, "onnx runtime error") {
				s.tally.mistake("a model that throws was answered with %v", err)
				continue
			}
			s.tally.add(func(c *counts) { c.nonsense++ })
		}
		pause(ctx, vandalPause)
	}
}

// nonsense makes bodies that no model can answer.
func nonsense(r *rand.Rand) [][]byte {
	good, err := jsonBody(askSimple(simple, r).request)
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

// truncated is the front of a message, in a field that no message of the protocol lacks the end of.
func truncated(r *rand.Rand) proto.Message {
	whole, err := proto.Marshal(message(askSimple(simple, r).request))
	if err != nil {
		panic(err) // our own request: a bug of ours
	}
	m := new(emptypb.Empty)
	m.ProtoReflect().SetUnknown(whole[:1+r.IntN(len(whole)-1)])
	return m
}

// slow keeps connections that send a byte per second, and then go.
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
		s.tally.lose("cannot connect: %v", err)
		pause(ctx, slowPause)
		return
	}
	defer hangUp(c, r.IntN(2) == 0)
	request := s.rawRequest(simple, r)
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
	for ctx.Err() == nil {
		s.tally.add(func(c *counts) { c.asked++ })
		if err := s.byPieces(r); err != nil {
			s.tally.lose("a slow client: %v", err)
			continue
		}
		s.tally.add(func(c *counts) { c.checked++ })
	}
}

func (s *site) byPieces(r *rand.Rand) error {
	c, err := connect(s.at.HTTP)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for piece := range bytes.Lines(s.rawRequest(simple, r)) { // the body has line breaks by chance alone
		time.Sleep(slowPause)
		half := len(piece) / 2
		if _, err := c.Write(piece[:half]); err != nil {
			return err
		}
		time.Sleep(slowPause)
		if _, err := c.Write(piece[half:]); err != nil {
			return err
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d with %s", response.StatusCode, text)
	}
	return err
}
