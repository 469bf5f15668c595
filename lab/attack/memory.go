package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "tuner/engine/api/inferencepb"
	"tuner/internal/memgroup"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

func random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// The memory of servers under attack, and the clients' share of it: three eighths.
const (
	podMemory   = 1 << 30
	clientsHold = podMemory / 8 * 3
	engineHolds = 256 << 20 // the engine and ONNX Runtime without clients
)

// pod makes a control group of podMemory for a server. It returns the command that joins it. If the
// kernel does not charge the memory to it, the scene's watch limits the server instead.
func (s *scene) pod() (limits string, err error) {
	group, err := memgroup.New("attack", podMemory)
	if err != nil {
		return "", notRun(err.Error())
	}
	s.groups = append(s.groups, group)
	return group.Enter(), nil
}

// generous serves a model whose answers have the size that its input asks for, and the model
// simple, in a pod.
func (s *scene) generous(ctx context.Context, flags ...string) (*server, error) {
	limits, err := s.pod()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.put("large", zeros(), "max_batch_size: 0\n"), s.add("simple", "simple", ""), s.add("text", "identity_string", "")); err != nil {
		return nil, err
	}
	return s.serve(ctx, limits, []string{"large", "simple", "text"}, flags...)
}

// zeros returns a model that answers as many zeros as its input asks for.
func zeros() []byte {
	g := build.NewGraph("zeros")
	shape := g.Input("SHAPE", onnx.Int64, onnx.Fixed(1))
	g.OutputAs("ZEROS", g.Node("ConstantOfShape", []string{shape}), onnx.Float, onnx.Symbol("n"))
	return marshal(g.Model())
}

// memory: small inputs that become large, and answers that nobody reads.
func memory() []attack {
	const bound = "the memory stays within the budget, others are served meanwhile"
	return []attack{
		{"B2", "100 clients over HTTP that do not read answers of 50 MB", bound, unreadHTTP},
		{"B1, B2", "a client over gRPC that does not read 200 answers of 8 MB", bound + ", health over gRPC too", unreadGRPC("none")},
		{"B2", "the same, answers compressed", bound + ", health over gRPC too", unreadGRPC("low")},
		{"B2", "a stream over gRPC that does not read 200 answers of 8 MB", bound, unreadStream},
		{"B2", "15 clients that read answers of 8 MB once the model was unloaded and loaded 3 times", "all answers are right, " + bound, heldAnswers},
		{"A7", "a request of 16 million empty strings", "refused with 503, memory within the budget", manyStrings},
		{"A7", "4 times 1 MB of gzip over gRPC that becomes 1 GiB each", "refused, memory within the budget", gzipBomb},
		{"A7", "30 MB of bytes_contents over gRPC, 15 million strings", "refused or answered, memory within the budget", typedStrings},
		{"§2", "16 clients with 40 MB each that stop before the last byte", bound, heldBodies},
	}
}

// meanwhile checks that others are served during an attack.
func (v *server) meanwhile(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err := v.serves(ctx); err != nil {
			return err
		}
	}
	return nil
}

func unreadHTTP(ctx context.Context, s *scene) (string, error) {
	v, err := s.generous(ctx)
	if err != nil {
		return "", err
	}
	body, header := binaryBody("SHAPE", "INT64", []int64{1}, int64s(50<<20/4))
	conns, err := crowd(ctx, 100, v.at.HTTP, post("/v2/models/large/infer", header, string(body)))
	if err != nil {
		return "", err
	}
	if err := v.meanwhile(ctx, 3*time.Second); err != nil {
		return "", err
	}
	refused := 0
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if r, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil); err == nil && r.StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	hangUp(conns)
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	seen, err := v.bounded(clientsHold + engineHolds + clientsHold/4)
	return fmt.Sprintf("%s, %d of 100 refused with 503", seen, refused), err
}

// reluctant is a connection that is not read once the attack has begun.
type reluctant struct {
	net.Conn
	stop <-chan struct{}
	life context.Context
}

func (r reluctant) Read(p []byte) (int, error) {
	select {
	case <-r.stop:
		<-r.life.Done()
		return 0, context.Canceled
	default:
		return r.Conn.Read(p)
	}
}

// deaf opens a gRPC connection, and returns a function that stops its reading.
func deaf(ctx context.Context, address string, options ...grpc.DialOption) (*grpc.ClientConn, func(), error) {
	stop := make(chan struct{})
	conn, err := dialGRPC(address, append(options, grpc.WithContextDialer(func(ctx2 context.Context, a string) (net.Conn, error) {
		c, err := dial(ctx, "tcp", a)
		return reluctant{c, stop, ctx}, err
	}))...)
	return conn, func() { close(stop) }, err
}

func unreadGRPC(compression string) func(context.Context, *scene) (string, error) {
	return func(ctx context.Context, s *scene) (string, error) {
		v, err := s.generous(ctx, "--grpc-infer-response-compression-level="+compression)
		if err != nil {
			return "", err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		conn, stop, err := deaf(ctx, v.at.GRPC)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		client := pb.NewGRPCInferenceServiceClient(conn)
		if _, err := client.ServerLive(ctx, &pb.ServerLiveRequest{}); err != nil {
			return "", err
		}
		stop()
		var calls errgroup.Group
		for range 200 {
			calls.Go(func() error {
				// nobody reads the answer
				_, _ = client.ModelInfer(ctx, message("large", "SHAPE", "INT64", []int64{1}, int64s(8<<20/4)))
				return nil
			})
		}
		err = v.meanwhile(ctx, 14*time.Second) // longer than the server needs to find the holder of the memory
		cancel()
		_ = calls.Wait() // its members return nil
		if err != nil {
			return "", err
		}
		return v.bounded(clientsHold + engineHolds + clientsHold/4)
	}
}

func unreadStream(ctx context.Context, s *scene) (string, error) {
	v, err := s.generous(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, stop, err := deaf(ctx, v.at.GRPC)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stream, err := pb.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(ctx)
	if err != nil {
		return "", err
	}
	time.Sleep(100 * time.Millisecond)
	stop()
	go func() { // it ends with the stream
		for range 200 {
			_ = stream.Send(message("large", "SHAPE", "INT64", []int64{1}, int64s(8<<20/4))) // the server may end it
		}
	}()
	err = v.meanwhile(ctx, 5*time.Second)
	cancel() // before the end of the connection, which waits for its reader
	if err != nil {
		return "", err
	}
	return v.bounded(clientsHold + engineHolds + clientsHold/4)
}

// heldAnswers leaves answers in the memory of a model that is unloaded and loaded again, and reads them later.
func heldAnswers(ctx context.Context, s *scene) (string, error) {
	v, err := s.generous(ctx)
	if err != nil {
		return "", err
	}
	const held, size = 15, 8 << 20
	var streams []pb.GRPCInferenceService_ModelStreamInferClient
	for range held {
		conn, err := dialGRPC(v.at.GRPC)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		stream, err := pb.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(ctx)
		if err != nil {
			return "", err
		}
		if err := stream.Send(message("large", "SHAPE", "INT64", []int64{1}, int64s(size/4))); err != nil {
			return "", err
		}
		streams = append(streams, stream)
	}
	for range 3 {
		if err := errors.Join(v.meanwhile(ctx, time.Second), v.UnloadModel(ctx, "large"), v.LoadModel(ctx, "large", "")); err != nil {
			return "", err
		}
	}
	for _, stream := range streams {
		answer, err := stream.Recv()
		if err != nil {
			return "", err
		}
		if got := answer.GetInferResponse().GetRawOutputContents(); len(got) != 1 || !bytes.Equal(got[0], make([]byte, size)) {
			return "", fmt.Errorf("an answer is wrong: %d outputs, error %q", len(got), answer.GetErrorMessage())
		}
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	seen, err := v.bounded(clientsHold + engineHolds + clientsHold/4)
	return fmt.Sprintf("%d answers right, %s", held, seen), err
}

func manyStrings(ctx context.Context, s *scene) (string, error) {
	v, err := s.generous(ctx)
	if err != nil {
		return "", err
	}
	body, header := binaryBody("INPUT0", "BYTES", []int64{1, 16 << 20}, make([]byte, 64<<20))
	name, length, _ := strings.Cut(strings.TrimSpace(header), ": ")
	status, text, err := v.send(ctx, "POST", "/v2/models/text/infer", body, name, length)
	if err != nil || status != http.StatusServiceUnavailable {
		return "", errors.Join(fmt.Errorf("got %d %s", status, cell(text)), err)
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	return v.bounded(clientsHold + engineHolds)
}

// bomb returns a gRPC request in wire form: a message of zeros that gzip compressed to a
// thousandth.
func bomb(size int) []byte {
	zipped := gzipped(make([]byte, size))
	return append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(zipped))), zipped...)
}

// calls makes a gRPC call with a body in wire form, and returns its status.
func (v *server) calls(ctx context.Context, method string, body []byte, headers ...string) (string, error) {
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.at.GRPC+"/inference.GRPCInferenceService/"+method, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // the trailers have the status
	return cmp.Or(response.Trailer.Get("Grpc-Status"), response.Header.Get("Grpc-Status")), nil
}

func gzipBomb(ctx context.Context, s *scene) (string, error) {
	v, err := s.generous(ctx)
	if err != nil {
		return "", err
	}
	data := bomb(1 << 30)
	var bombs errgroup.Group
	for range 4 {
		bombs.Go(func() error {
			got, err := v.calls(ctx, "ModelInfer", data, "Grpc-Encoding", "gzip")
			if err != nil || got != fmt.Sprint(int(codes.ResourceExhausted)) && got != fmt.Sprint(int(codes.Internal)) {
				return errors.Join(fmt.Errorf("a bomb got status %s", got), err)
			}
			return nil
		})
	}
	if err := errors.Join(v.meanwhile(ctx, 2*time.Second), bombs.Wait(), v.serves(ctx)); err != nil {
		return "", err
	}
	seen, err := v.bounded(clientsHold + engineHolds + clientsHold/4)
	return fmt.Sprintf("4 bombs of %d kB refused, %s", len(data)>>10, seen), err
}

func typedStrings(ctx context.Context, s *scene) (string, error) {
	v, err := s.generous(ctx)
	if err != nil {
		return "", err
	}
	conn, err := dialGRPC(v.at.GRPC)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	const n = 15 << 20
	m := message("text", "INPUT0", "BYTES", []int64{1, n}, nil)
	m.RawInputContents, m.Inputs[0].Contents = nil, &pb.InferTensorContents{BytesContents: make([][]byte, n)}
	_, err = pb.NewGRPCInferenceServiceClient(conn).ModelInfer(ctx, m)
	if c := status.Code(err); c != codes.OK && c != codes.ResourceExhausted {
		return "", err
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	return v.bounded(clientsHold + engineHolds + clientsHold/4)
}

func heldBodies(ctx context.Context, s *scene) (string, error) {
	v, err := s.generous(ctx)
	if err != nil {
		return "", err
	}
	body, header := binaryBody("INPUT0", "BYTES", []int64{1, 1}, make([]byte, 40<<20))
	request := post("/v2/models/text/infer", header, string(body))
	var all errgroup.Group
	for range 16 {
		all.Go(func() error {
			_, err := crowd(ctx, 1, v.at.HTTP, request[:len(request)-1])
			return err
		})
	}
	if err := errors.Join(v.meanwhile(ctx, 3*time.Second), all.Wait(), v.meanwhile(ctx, time.Second)); err != nil {
		return "", err
	}
	return v.bounded(clientsHold + engineHolds + clientsHold/4)
}

// gzipped compresses data for files.
func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}
