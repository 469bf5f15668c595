package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// A siege takes memory, connections and processor time from the engine. Others must be served as
// before.

const (
	silentOnes = 100              // connections that send nothing
	killEvery  = 10 * time.Second // a client is killed that often
	unreadOnes = 10               // connections that do not read
	unreadRow  = 200_000          // bytes of a row of a question whose answer is not read
	unreadTime = 5 * time.Second  // before such a client leaves
	bombBytes  = 1 << 30          // of a body that is sent as a megabyte
)

// unread asks for long answers over HTTP and gRPC, does not read them, and leaves after a while.
func (s *site) unread(ctx context.Context) {
	words, numbers := echo(maxRows, unreadRow), askWide(rand.New(rand.NewPCG(10, 10)))
	request := rawRequest(words)
	var all sync.WaitGroup
	for range unreadOnes {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := connect(s.at.HTTP)
				if err != nil {
					s.tally.fail("cannot connect: %v", err)
					return
				}
				// the engine stops reading once its answers are not read
				_ = c.SetWriteDeadline(time.Now().Add(unreadTime))
				for range 20 {
					if _, err := c.Write(request); err != nil {
						break
					}
				}
				pause(ctx, unreadTime)
				hangUp(c, true)
				s.tally.add(func(c *counts) { c.vanished++ })
			}
		})
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.unreadStream(ctx, []question{words, numbers}[n%2])
				s.tally.add(func(c *counts) { c.vanished++ })
			}
		})
	}
	all.Wait()
}

// unreadStream sends questions over a stream whose answers nobody takes.
func (s *site) unreadStream(ctx context.Context, q question) {
	connection, err := dial(s.at.GRPC)
	if err != nil {
		s.tally.fail("cannot connect: %v", err)
		return
	}
	defer connection.Close()
	life, cancel := context.WithTimeout(ctx, unreadTime)
	defer cancel()
	stream, err := pb.NewGRPCInferenceServiceClient(connection).ModelStreamInfer(life)
	for n := 0; err == nil && n < 20; n++ {
		err = stream.Send(message(q))
	}
	<-life.Done()
}

// echo is a question for long strings.
func echo(rows, length int) question {
	var data []byte
	for range rows {
		data = binary.LittleEndian.AppendUint32(data, uint32(length))
		data = append(data, bytes.Repeat([]byte{'x'}, length)...)
	}
	return question{request: api.InferRequest{Model: text, Inputs: []api.Tensor{
		{Name: "INPUT0", Datatype: "BYTES", Shape: []int64{int64(rows), 1}, Data: data},
	}}}
}

// pack makes a body that is a thousand times as long when unpacked. It takes seconds of CPU time.
func pack() []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	piece := make([]byte, 1<<20)
	for range bombBytes / len(piece) {
		_, _ = w.Write(piece) // a bytes.Buffer takes all
	}
	_ = w.Close()
	return packed.Bytes()
}

// bomb sends the body that pack makes. Each time it must be refused.
func (s *site) bomb(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	for life := context.WithoutCancel(ctx); ctx.Err() == nil; pause(ctx, time.Second) {
		r, err := http.NewRequestWithContext(life, http.MethodPost, s.inferURL(simple), bytes.NewReader(s.packed))
		if err != nil {
			panic(err) // our own request: a bug of ours
		}
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Set(api.HeaderLength, strconv.Itoa(bombBytes))
		answer, err := client.Do(r)
		if err != nil {
			s.tally.fail("a bomb was not answered: %v", err)
			continue
		}
		answer.Body.Close()
		if answer.StatusCode < 400 {
			s.tally.fail("a bomb was answered with status %d", answer.StatusCode)
			continue
		}
		s.tally.add(func(c *counts) { c.nonsense++ })
	}
}

// silent opens connections that say nothing, or stop after the first bytes of a request.
func (s *site) silent(ctx context.Context) {
	r := rand.New(rand.NewPCG(9, 9))
	for i := range silentOnes {
		c, err := connect([]string{s.at.HTTP, s.at.GRPC, s.at.Metrics}[i%3])
		if err != nil {
			s.tally.fail("cannot connect: %v", err)
			continue
		}
		defer hangUp(c, i%2 == 0)
		begin := []string{"", "POST /v2/models/simple/infer HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}[r.IntN(3)]
		_, _ = c.Write([]byte(begin)) // the engine may rightly close first
	}
	s.tally.add(func(c *counts) { c.vanished += silentOnes })
	<-ctx.Done()
}

// killed runs a client that is a process of its own. It is killed in the midst of its load, and begins
// again.
func (s *site) killed(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		protocol, address := "http", s.at.HTTP
		if n%2 == 1 {
			protocol, address = "grpc", s.at.GRPC
		}
		life, kill := context.WithTimeout(ctx, killEvery)
		c := exec.CommandContext(life, s.tuner, "perf", "-m", simple, "-i", protocol, "-u", address, "--concurrency-range", "4",
			"--budget", "1h", "--precision", "0.0001")
		c.WaitDelay = time.Second
		said, err := c.CombinedOutput()
		if life.Err() == nil {
			s.tally.fail("the client that is killed ended by itself: %v: %s", err, strings.TrimSpace(string(said)))
			<-life.Done()
		}
		kill()
		s.tally.add(func(c *counts) { c.vanished++ })
	}
}

// shift is the time for which the siege works, and then rests, in turn. So the latencies of others
// can be compared.
const shift = 30 * time.Second

// onDuty reports whether the siege works at an instant, and when that changes.
func (s *site) onDuty(at time.Time) (works bool, until time.Time) {
	n := at.Sub(s.begin) / shift
	return n%2 == 1, s.begin.Add((n + 1) * shift)
}

// inShifts returns work that rests in every second shift.
func (s *site) inShifts(work func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		for ctx.Err() == nil {
			works, until := s.onDuty(time.Now())
			if !works {
				pause(ctx, time.Until(until))
				continue
			}
			short, cancel := context.WithDeadline(ctx, until)
			work(short)
			cancel()
		}
	}
}
