package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// addSub computes the outputs of simple.
func addSub(a, b []byte) (sum, difference []byte) {
	for i := 0; i < len(a); i += 4 {
		x, y := binary.LittleEndian.Uint32(a[i:]), binary.LittleEndian.Uint32(b[i:])
		sum, difference = binary.LittleEndian.AppendUint32(sum, x+y), binary.LittleEndian.AppendUint32(difference, x-y)
	}
	return sum, difference
}

// serveHTTP answers requests of simple over HTTP and counts them.
func serveHTTP(t *testing.T, answered *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) < 128 || r.URL.Path != "/v2/models/simple/infer" {
			http.Error(w, `{"error":"bad request"}`, http.StatusBadRequest)
			return
		}
		if length := r.Header.Get(api.HeaderLength); length != fmt.Sprint(len(body)-128) {
			http.Error(w, `{"error":"bad length"}`, http.StatusBadRequest)
			return
		}
		sum, difference := addSub(body[len(body)-128:len(body)-64], body[len(body)-64:])
		_, _ = w.Write(append(append([]byte(`{"model_name":"simple"}`), sum...), difference...))
		answered.Add(1)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

type grpcServer struct {
	pb.UnimplementedGRPCInferenceServiceServer
	answered *atomic.Int64
}

func (s grpcServer) ModelInfer(_ context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	raw := r.GetRawInputContents()
	if r.GetModelName() != simple || len(raw) != 2 {
		return nil, errors.New("bad request")
	}
	sum, difference := addSub(raw[0], raw[1])
	s.answered.Add(1)
	outputs := []*pb.ModelInferResponse_InferOutputTensor{{Name: "OUTPUT0"}, {Name: "OUTPUT1"}}
	return &pb.ModelInferResponse{Outputs: outputs, RawOutputContents: [][]byte{sum, difference}}, nil
}

// serveGRPC answers requests of simple over gRPC and counts them.
func serveGRPC(t *testing.T, answered *atomic.Int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(server, grpcServer{answered: answered})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func TestLightClientCountsWhatIsAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		serve func(*testing.T, *atomic.Int64) string
		dial  func(context.Context, string) (sender, error)
		extra int64 // requests that check the server before the counted ones
	}{
		{"HTTP", serveHTTP, dialSimpleHTTP, 0},
		{"gRPC", serveGRPC, dialSimpleGRPC, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var answered atomic.Int64
			l := light{concurrency: 3, window: 50 * time.Millisecond, dial: c.dial}
			got, err := l.run(t.Context(), c.serve(t, &answered))
			if err != nil {
				t.Fatal(err)
			}
			counted := float64(answered.Load() - c.extra)
			if most := counted / l.window.Seconds(); counted < 3 || got.Throughput <= 0 || got.Throughput > most {
				t.Errorf("%v requests/s, expected at most %v", got.Throughput, most)
			}
			if got.P50 <= 0 || got.P99 < got.P50 {
				t.Errorf("latencies %v and %v", got.P50, got.P99)
			}
		})
	}
}

// answerWith answers every line-delimited request on one connection with the same bytes.
func answerWith(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for request := make([]byte, 4096); ; {
			if _, err := conn.Read(request); err != nil {
				return
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func TestLightHTTPClientRefusesWrongAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, answer, want string }{
		{"an error", "HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\n\r\nbad", `answered "HTTP/1.1 400": bad`},
		{"other tensors", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "wrong answer"},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", "without Content-Length"},
		{"a bad length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", `length " -1"`},
		{"a huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := light{concurrency: 1, window: 20 * time.Millisecond, dial: dialSimpleHTTP}
			_, err := l.run(t.Context(), answerWith(t, c.answer))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %q in it", err, c.want)
			}
		})
	}
}

func TestSimpleRequest(t *testing.T) {
	t.Parallel()
	r, sum, difference := simpleRequest()
	wantSum, wantDifference := addSub(r.Inputs[0].Data, r.Inputs[1].Data)
	if !bytes.Equal(sum, wantSum) || !bytes.Equal(difference, wantDifference) {
		t.Errorf("% x and % x, expected % x and % x", sum, difference, wantSum, wantDifference)
	}
}
