package main

import (
	"bufio"
	"bytes"
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

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// reply is an answer over HTTP.
type reply struct {
	status int
	body   string
}

// get sends a request on its own connection.
func (v *server) get(ctx context.Context, path string) (int, string, error) {
	return v.send(ctx, http.MethodGet, path, nil)
}

// send sends a request on its own connection. headers are names and values in turn.
func (v *server) send(ctx context.Context, method, path string, body []byte, headers ...string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, v.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Close = true
	response, err := v.web.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// raw sends bytes and reads all answers until the connection ends, or is silent for a second.
func raw(ctx context.Context, network, address, text string) ([]reply, error) {
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // fails only for a closed connection, like the next call
	_, _ = io.WriteString(conn, text)                      // the server may rightly close the connection
	var got []reply
	for r := bufio.NewReader(conn); ; {
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return got, nil
		}
		body, _ := io.ReadAll(response.Body) // a part of it suffices
		got = append(got, reply{response.StatusCode, string(body)})
	}
}

// dial opens a connection that is closed with the attack at the latest.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}

// crowd opens n connections at once and keeps them. The server may refuse the last ones.
func crowd(ctx context.Context, n int, address, text string) ([]net.Conn, error) {
	var all []net.Conn
	for range n {
		conn, err := dial(ctx, "tcp", address)
		if err != nil {
			if len(all) == 0 {
				return nil, err
			}
			break
		}
		_, _ = io.WriteString(conn, text) // a refused connection fails
		all = append(all, conn)
	}
	return all, nil
}

func hangUp(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// post returns a POST request as bytes.
func post(path, headers, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", path, headers, len(body), body)
}

const inferSimple = "/v2/models/simple/infer"

// sum returns a request to the model simple in JSON, and the required part of its answer.
func sum() (body, want string) {
	a, b := rand.IntN(1000), rand.IntN(1000)
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat(fmt.Sprint(n, ","), 16), ",") }
	return fmt.Sprintf(`{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],"data":[%s]},{"name":"INPUT1","datatype":"INT32","shape":[1,16],"data":[%s]}]}`,
			list(a), list(b)),
		fmt.Sprintf(`"data":[%s]`, list(a+b))
}

// adds checks the answer of the model simple within a time.
func (v *server) adds(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, want := sum()
	status, text, err := v.send(ctx, "POST", inferSimple, []byte(body))
	if err != nil || status != 200 || !strings.Contains(text, want) {
		return errors.Join(fmt.Errorf("an inference of another client: %d %s", status, cell(text)), err)
	}
	return nil
}

// serves checks that a server is alive and adds correctly.
func (v *server) serves(ctx context.Context) error {
	return errors.Join(v.alive(ctx), v.adds(ctx, 10*time.Second))
}

// dialGRPC opens a connection with a small window for answers, so that they wait in the server.
func dialGRPC(address string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(64 << 10), grpc.WithInitialConnWindowSize(64 << 10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30))}, options...)...)
}

// message returns a request to a model with one input.
func message(model, input, datatype string, shape []int64, data []byte) *pb.ModelInferRequest {
	return &pb.ModelInferRequest{
		ModelName: model, RawInputContents: [][]byte{data},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: input, Datatype: datatype, Shape: shape}},
	}
}

// int64s returns a tensor in wire form.
func int64s(values ...int64) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return data
}

// binaryBody returns an HTTP request with one input in binary form, and all outputs binary.
func binaryBody(input, datatype string, shape []int64, data []byte) (body []byte, header string) {
	dims := strings.ReplaceAll(fmt.Sprint(shape), " ", ",")
	head := fmt.Sprintf(`{"inputs":[{"name":%q,"datatype":%q,"shape":%s,"parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}`,
		input, datatype, dims, len(data))
	return append([]byte(head), data...), fmt.Sprintf("%s: %d\r\n", api.HeaderLength, len(head))
}
