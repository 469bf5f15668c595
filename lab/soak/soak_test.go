package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// A check accepts the right answer, and detects each kind of error.
func TestChecks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	s := &site{known: []sentence{{make([]int64, sequence), make([]float32, dimensions)}}}
	for _, model := range []string{simple, text, wide, minilm, cached, chained, nested} {
		q := s.ask(model, r)
		right := answerOf(q)
		if err := q.check(right); err != nil {
			t.Errorf("%s: the right answer: %v", model, err)
		}
		for name, spoil := range map[string]func(*api.Tensor){
			"data":     func(t *api.Tensor) { t.Data = append([]byte(nil), t.Data...); t.Data[3] ^= 0x7f },
			"datatype": func(t *api.Tensor) { t.Datatype = "UINT8" },
			"shape":    func(t *api.Tensor) { t.Shape = []int64{99} },
		} {
			wrong := answerOf(q)
			spoil(&wrong[0])
			if q.check(wrong) == nil {
				t.Errorf("%s: wrong %s was accepted", model, name)
			}
		}
		if q.check(right[1:]) == nil {
			t.Errorf("%s: a missing output was accepted", model)
		}
	}
}

// A sequence's sums add up, and a wrong one is detected.
func TestSums(t *testing.T) {
	t.Parallel()
	var sum int32
	askSum(direct, 3, &sum)
	q := askSum(direct, 300, &sum)
	right := api.Tensor{Name: "OUTPUT", Datatype: "INT32", Shape: []int64{1, 1}, Data: []byte{47, 1, 0, 0}} // 303 = 47 + 256
	if err := q.check([]api.Tensor{right}); err != nil {
		t.Error(err)
	}
	right.Data = []byte{44, 1, 0, 0} // 300: the beginning was forgotten
	if q.check([]api.Tensor{right}) == nil {
		t.Error("a sum of the last number alone was accepted")
	}
}

// What is packed is unpacked again, and an answer with another coding is refused.
func TestCodings(t *testing.T) {
	t.Parallel()
	const text = `{"id":"7","outputs":[{"name":"A","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}abcd`
	answer := func(body []byte) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{api.HeaderLength: {strconv.Itoa(len(text) - 4)}}, Body: io.NopCloser(bytes.NewReader(body))}
	}
	for _, coding := range []string{"gzip", "deflate"} {
		got, err := binaryOf(answer(compress(coding, []byte(text))), coding, "7")
		if err != nil || len(got) != 1 || string(got[0].Data) != "abcd" {
			t.Errorf("%s: got %v, %v", coding, got, err)
		}
		if _, err := binaryOf(answer([]byte(text)), coding, "7"); err == nil {
			t.Errorf("%s: an answer that is not compressed was taken", coding)
		}
	}
}

// The generate extension answers one string or a list.
func TestGenerated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"model_name":"text","OUTPUT0":"ab"}`: "\x02\x00\x00\x00ab", `{"OUTPUT0":["","[c"]}`: "\x00\x00\x00\x00\x02\x00\x00\x00[c",
	} {
		if got, err := generated(text, nil); err != nil || len(got) != 1 || string(got[0].Data) != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{`{}`, `{"OUTPUT0":3}`, `{"OUTPUT0":["a"`} {
		if got, err := generated(text, nil); err == nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// An export of spans is counted, and anything else is no export.
func TestCollector(t *testing.T) {
	t.Parallel()
	c, err := collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	export, err := proto.Marshal(&traces.ExportTraceServiceRequest{ResourceSpans: []*spans.ResourceSpans{{ScopeSpans: []*spans.ScopeSpans{{Spans: []*spans.Span{{}, {}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{export, export, []byte("no export")} {
		if _, _, err := post(t.Context(), http.DefaultClient, c.address(), body); err != nil {
			t.Fatal(err)
		}
	}
	if c.spans.Load() != 4 || c.broken.Load() != 1 {
		t.Errorf("%d spans and %d bad exports, want 4 and 1", c.spans.Load(), c.broken.Load())
	}
}

// answerOf computes the model's answer, independently of the checks.
func answerOf(q question) []api.Tensor {
	in := q.request.Inputs
	switch q.request.Model {
	case text, wide:
		out := in[0]
		out.Name = "OUTPUT0"
		return []api.Tensor{out}
	case minilm:
		return []api.Tensor{{Name: "embedding", Datatype: "FP32", Shape: []int64{in[0].Shape[0], dimensions}, Data: make([]byte, 4*dimensions*in[0].Shape[0])}}
	}
	a, b := toJSON(in[0]).([]int32), toJSON(in[1]).([]int32)
	sum, difference := make([]int32, len(a)), make([]int32, len(a))
	for i := range a {
		sum[i], difference[i] = a[i]+b[i], a[i]-b[i]
		switch q.request.Model { // (a+b)+(a-b) = 2a, and (a+b)-(a-b) = 2b; once more: 2a+2b and 2a-2b
		case chained:
			sum[i], difference[i] = 2*a[i], 2*b[i]
		case nested:
			sum[i], difference[i] = 2*(a[i]+b[i]), 2*(a[i]-b[i])
		}
	}
	tensor := func(name string, values []int32) api.Tensor {
		text, _ := json.Marshal(values)    // numbers
		data, _ := fromJSON("INT32", text) // just written
		return api.Tensor{Name: name, Datatype: "INT32", Shape: in[0].Shape, Data: data}
	}
	return []api.Tensor{tensor("OUTPUT0", sum), tensor("OUTPUT1", difference)}
}

// Only the volatile model may refuse, only because of its absence, and only while it may be absent.
func TestOnceCounts(t *testing.T) {
	t.Parallel()
	gone := &api.StatusError{Status: 404, Text: "Request for unknown model: 'volatile' has no available versions"}
	for name, tt := range map[string]struct {
		model  string
		absent bool
		err    error
		want   counts
	}{
		"right":            {simple, false, nil, counts{asked: 1, checked: 1}},
		"absent":           {volatile, true, gone, counts{asked: 1, absent: 1}},
		"present":          {volatile, false, gone, counts{asked: 1, lost: 1}},
		"another model":    {simple, true, gone, counts{asked: 1, lost: 1}},
		"another error":    {volatile, true, &api.StatusError{Status: 500, Text: "broken"}, counts{asked: 1, lost: 1}},
		"no answer at all": {volatile, true, io.EOF, counts{asked: 1, lost: 1}},
		"wrong":            {simple, false, nil, counts{asked: 1, wrong: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &site{tally: &tally{}}
			if tt.absent {
				s.phase.next()
			}
			q := askSimple(tt.model, rand.New(rand.NewPCG(1, 1)))
			s.once(t.Context(), tt.model, q, func(context.Context, question) ([]api.Tensor, error) {
				return answerOf(q)[tt.want.wrong:], tt.err
			})
			if got := s.tally.now(); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if err := s.tally.verdict(io.Discard); (err != nil) != (tt.want.checked == 0) {
				t.Errorf("verdict %v", err)
			}
		})
	}
}

// A run is good only if answers were checked, nothing failed, and every request has one outcome.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		counts counts
		want   string // empty: good
	}{
		"good":               {counts{asked: 3, checked: 2, absent: 1}, ""},
		"nothing happened":   {counts{}, "not one answer was checked"},
		"never there":        {counts{asked: 1, absent: 1}, "not one answer was checked"},
		"lost":               {counts{asked: 2, checked: 1, lost: 1}, "1 lost and 0 wrong of 2 requests"},
		"wrong":              {counts{asked: 2, checked: 1, wrong: 1}, "0 lost and 1 wrong of 2 requests"},
		"a failed operation": {counts{asked: 1, checked: 1, failed: 1}, "1 failures beside the requests"},
		"no outcome":         {counts{asked: 3, checked: 1, absent: 1}, "3 requests, but 2 outcomes"},
		"counted twice":      {counts{asked: 1, checked: 2}, "1 requests, but 2 outcomes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&tally{counts: tt.counts}).verdict(io.Discard)
			if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// silent is a server whose first stream never answers. The others answer with the output of
// answerOf.
type silent struct {
	pb.UnimplementedGRPCInferenceServiceServer
	question question
	streams  atomic.Int32
	silence  func() // called when the first stream has its question
}

func (s *silent) ModelStreamInfer(stream pb.GRPCInferenceService_ModelStreamInferServer) error {
	first := s.streams.Add(1) == 1
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if first {
			s.silence()
			<-stream.Context().Done()
			return nil
		}
		response := &pb.ModelInferResponse{Id: m.GetId()}
		for _, o := range answerOf(s.question) {
			response.Outputs = append(response.Outputs, &pb.ModelInferResponse_InferOutputTensor{Name: o.Name, Datatype: o.Datatype, Shape: o.Shape})
			response.RawOutputContents = append(response.RawOutputContents, o.Data)
		}
		if err := stream.Send(&pb.ModelStreamInferResponse{InferResponse: response}); err != nil {
			return err
		}
	}
}

// A missing answer on a stream counts as lost when the client's patience ends. The next questions
// use another stream.
func TestStreamLosesPatience(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := askSimple(simple, rand.New(rand.NewPCG(1, 1)))
	asking, giveUp := context.WithCancel(t.Context())
	peer := &silent{question: q, silence: giveUp}
	server := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(server, peer)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	s := &site{tally: &tally{}, at: api.Announcement{GRPC: l.Addr().String()}}
	ask, done := s.stream(t.Context())
	s.once(asking, simple, q, ask)
	for range 2 {
		s.once(t.Context(), simple, q, ask)
	}
	if got, want := s.tally.now(), (counts{asked: 3, checked: 2, lost: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := peer.streams.Load(); n != 2 {
		t.Errorf("%d streams, want 2", n)
	}
	done()
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// The binary part of an answer must be exactly as its JSON part declares.
func TestBinaryAnswer(t *testing.T) {
	t.Parallel()
	const good = `{"id":"7","outputs":[{"name":"A","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}`
	for name, tt := range map[string]struct {
		json, data, id string
		header         int // beside the length of json
		good           bool
	}{
		"good":         {good, "abcd", "7", 0, true},
		"short":        {good, "abc", "7", 0, false},
		"long":         {good, "abcde", "7", 0, false},
		"another id":   {good, "abcd", "8", 0, false},
		"no JSON":      {good[1:], "abcd", "7", 0, false},
		"long header":  {good, "abcd", "7", 5, false},
		"minus header": {good, "abcd", "7", -len(good) - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := binaryAnswer([]byte(tt.json+tt.data), len(tt.json)+tt.header, tt.id)
			if (err == nil) != tt.good || tt.good && string(got[0].Data) != tt.data {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// Steady growth is reported. Oscillation, or growth only at the start, is not.
func TestGrowth(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value func(i int) float64
		grows bool
	}{
		"steady":        {func(i int) float64 { return float64(i) }, true},
		"flat":          {func(i int) float64 { return 20 + 10*float64(i%2) }, false},
		"at the start":  {func(i int) float64 { return float64(min(i, 30)) }, false},
		"within bounds": {func(i int) float64 { return 1000 + float64(i)/2 }, false}, // 10 % of 1000 are allowed
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatch("", nil, &tally{}, io.Discard)
			for i := range 90 {
				w.series["descriptors"] = append(w.series["descriptors"], tt.value(i))
			}
			if err := w.verdict(); (err != nil) != tt.grows || tt.grows && !strings.Contains(err.Error(), "descriptors grew") {
				t.Errorf("verdict %v, want growth %v", err, tt.grows)
			}
		})
	}
}

// A long run must have readings; a short one cannot.
func TestReadingsAreNeeded(t *testing.T) {
	t.Parallel()
	for lasted, good := range map[time.Duration]bool{shortRun - 1: true, shortRun: false} {
		w := newWatch("", nil, &tally{}, io.Discard)
		w.lasted = lasted
		if err := w.verdict(); (err == nil) != good {
			t.Errorf("%v without readings: %v", lasted, err)
		}
	}
}

func TestRepositoryNeedsModels(t *testing.T) {
	t.Parallel()
	if err := writeRepository(t.TempDir(), "nowhere"); err == nil {
		t.Error("no models, but no error")
	}
	if err := run(t.Context(), options{models: "nowhere"}, io.Discard, io.Discard); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}
