package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"tuner/engine/api"
	"tuner/runner/wire"
)

func serve(t *testing.T, o Options) (*Server, Addresses) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, addresses
}

// inference makes a typical request of load generators.
func inference(id string) api.InferRequest {
	return api.InferRequest{Model: model, ID: id, Inputs: []api.Tensor{
		{Name: "x", Datatype: "FP32", Shape: []int64{elements}, Data: make([]byte, 4*elements)},
	}}
}

// clients returns one client of each protocol.
func clients(t *testing.T, a Addresses) map[string]api.Client {
	t.Helper()
	overGRPC, err := api.NewGRPC(a.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	overHTTP := api.NewHTTP(a.HTTP)
	t.Cleanup(func() { _ = errors.Join(overHTTP.Close(), overGRPC.Close()) })
	return map[string]api.Client{"HTTP": overHTTP, "gRPC": overGRPC}
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	s, addresses := serve(t, Options{})
	for name, c := range clients(t, addresses) {
		server, err := c.ServerMetadata(t.Context())
		if err != nil || !slices.Contains(server.Extensions, api.ExtensionStatistics) {
			t.Errorf("%s: metadata %+v, %v", name, server, err)
		}
		metadata, err := c.ModelMetadata(t.Context(), model)
		if diff := cmp.Diff(s.modelMetadata(), metadata); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		config, err := c.ModelConfig(t.Context(), model)
		if err != nil || config.GetName() != model || len(config.GetInput()) != 1 {
			t.Errorf("%s: configuration %v, %v", name, config, err)
		}
		if ready, err := c.ModelReady(t.Context(), model); !ready || err != nil {
			t.Errorf("%s: ready %v, %v", name, ready, err)
		}
		entries, err := c.Index(t.Context())
		if diff := cmp.Diff(index(), entries); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if _, err := c.ModelMetadata(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), `unknown model: "other"`) {
			t.Errorf("%s: unknown model: %v", name, err)
		}
		encoded, err := c.Encode(inference("7"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Infer(t.Context(), encoded)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		outputs, err := response.Outputs()
		want := []api.Tensor{{Name: "y", Datatype: "FP32", Shape: []int64{elements}, Data: make([]byte, 4*elements)}}
		if diff := cmp.Diff(want, outputs); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for name, c := range clients(t, addresses) {
		statistics, err := c.Statistics(t.Context(), model)
		if err != nil || len(statistics.ModelStats) != 1 || statistics.ModelStats[0].InferenceStats.Queue.Count != 2 {
			t.Errorf("%s: statistics %+v, %v", name, statistics, err)
		}
	}
}

// perf_analyzer needs the request's id in the answer.
func TestAnswerOfID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"": `{"model_name":"law","model_version":"1","outputs"`, "42": `"1","id":"42","outputs"`} {
		body, _, err := api.EncodeHTTP(inference(id))
		if err != nil {
			t.Fatal(err)
		}
		if answer := appendAnswer(nil, requestID(body)); !bytes.Contains(answer, []byte(want)) {
			t.Errorf("%q lacks %s", answer, want)
		}
	}
}

// ask sends n requests from each of some connections of a protocol. It returns the first error.
func ask(ctx context.Context, o wire.Options, connections, n int) error {
	p, err := wire.Prepare(o, inference(""), wire.Format{}, nil)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for range connections {
		group.Go(func() error {
			c, err := wire.Dial(ctx, o)
			if err != nil {
				return err
			}
			defer c.Close()
			defer context.AfterFunc(ctx, c.Interrupt)()
			for range n {
				c.Send(0, p)
				if _, _, _, err := c.Receive(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// With one server, every request begins when it has arrived and the one before it has ended
// (Lindley).
func TestOneServer(t *testing.T) {
	t.Parallel()
	s, addresses := serve(t, Options{Law: Exponential(200 * time.Microsecond), Servers: 1, Seed: 3})
	if err := ask(t.Context(), wire.Options{Address: addresses.HTTP}, 4, 50); err != nil {
		t.Fatal(err)
	}
	record := s.Record()
	if len(record) != 200 {
		t.Fatalf("the record has %d entries, expected 200", len(record))
	}
	slices.SortFunc(record, func(a, b Entry) int { return int(a.Begin - b.Begin) })
	free := int64(0)
	for i, e := range record {
		if e.Begin != max(e.Arrival, free) || e.End < e.Begin || e.Written < e.End {
			t.Fatalf("entry %d is %+v, and the server was free at %d", i, e, free)
		}
		free = e.End
	}
	byAnswer := func(a, b Entry) int { return int(a.Written - b.Written) }
	fetched, err := Fetch(t.Context(), addresses.HTTP, slices.MinFunc(record, byAnswer).Written, 1<<62)
	if diff := cmp.Diff(s.Record(), fetched); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	last := slices.MaxFunc(record, byAnswer).Written
	if fetched, err := Fetch(t.Context(), addresses.HTTP, last, last); len(fetched) != 0 || err != nil {
		t.Errorf("an empty window has %d entries, %v", len(fetched), err)
	}
	if _, err := Fetch(t.Context(), addresses.HTTP+"/x", 0, 0); err == nil {
		t.Error("a wrong address gives no error")
	}
}

// With any number of servers, no request waits.
func TestNoQueue(t *testing.T) {
	t.Parallel()
	s, addresses := serve(t, Options{Law: Deterministic(time.Millisecond), Records: 10})
	if err := ask(t.Context(), wire.Options{Address: addresses.HTTP}, 5, 5); err != nil {
		t.Fatal(err)
	}
	record := s.Record()
	if len(record) != 10 {
		t.Errorf("the record has %d entries, expected the latest 10", len(record))
	}
	for _, e := range record {
		if e.Begin != e.Arrival || e.End != e.Begin+1e6 {
			t.Errorf("%+v waited, or was not served for 1 ms", e)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	check := func(faults Faults, n int, want string, grpcToo bool) {
		t.Helper()
		_, addresses := serve(t, Options{Faults: faults})
		err := ask(t.Context(), wire.Options{Address: addresses.HTTP}, 1, n)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, expected %q", faults, err, want)
		}
		if !grpcToo {
			return
		}
		for name, c := range clients(t, addresses) {
			encoded, err := c.Encode(inference(""))
			for range n {
				if err == nil {
					_, err = c.Infer(t.Context(), encoded)
				}
			}
			if err == nil {
				t.Errorf("%+v: %s noticed nothing", faults, name)
			}
		}
	}
	check(Faults{FailEvery: 3}, 3, "server answered 500: this request was made to fail", true)
	check(Faults{CloseEvery: 2}, 3, "", false)
	check(Faults{DieAfter: 2}, 3, "", true)
	check(Faults{LongBody: true}, 1, "in the middle of an answer", false)
	check(Faults{BadHead: true}, 1, `begins with "HTTP/1.1 20x OK"`, false)
	_, addresses := serve(t, Options{Faults: Faults{Datatype: "INT64"}})
	for name, c := range clients(t, addresses) {
		if m, err := c.ModelMetadata(t.Context(), model); err != nil || m.Inputs[0].Datatype != "INT64" {
			t.Errorf("%s: metadata %+v, %v", name, m, err)
		}
	}
}

// A silent server does not answer, but it can be closed.
func TestSilence(t *testing.T) {
	t.Parallel()
	s, addresses := serve(t, Options{Faults: Faults{Silent: true}})
	o := wire.Options{Address: addresses.HTTP}
	p, err := wire.Prepare(o, inference(""), wire.Format{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wire.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Send(0, p)
	_ = s.Close()
	if _, _, _, err := c.Receive(); err == nil || !c.Broken() {
		t.Errorf("error %v, broken %v", err, c.Broken())
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, []string{"-law", "bimodal:1us:0.02:20", "-servers", "1", "-stall-every", "5s", "-stall-for", "1us"}, out, io.Discard)
	}()
	var addresses Addresses
	if err := json.NewDecoder(in).Decode(&addresses); err != nil {
		t.Fatal(err)
	}
	if err := ask(ctx, wire.Options{Address: addresses.HTTP}, 1, 1); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"-law", "x"}, {"more"}, {"-stall-every", "1s", "-stall-for", "2s"}, {"-servers", "-1"}, {"-http", "nowhere"}} {
		if err := Run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
