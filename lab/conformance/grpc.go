package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"tuner/engine/api/inferencepb"
)

// GRPCClient calls the methods of Triton's service, and of gRPC's health service, by name.
type GRPCClient struct{ conn *grpc.ClientConn }

// NewGRPCClient makes a client of the server at address.
func NewGRPCClient(address string) (*GRPCClient, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("cannot make a gRPC client of %s: %w", address, err)
	}
	return &GRPCClient{conn}, nil
}

// Close closes the connection.
func (g *GRPCClient) Close() error { return g.conn.Close() }

// Do calls the method of a case. The answer's status is that of gRPC; an error means that the call
// could not be made.
func (g *GRPCClient) Do(ctx context.Context, c Case) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	method, err := findMethod(c.Target)
	if err != nil {
		return Answer{}, err
	}
	var requests []proto.Message
	for _, part := range c.Parts {
		request := dynamicpb.NewMessage(method.Input())
		if err := prototext.Unmarshal([]byte(part), request); err != nil {
			return Answer{}, fmt.Errorf("cannot read the request: %w", err)
		}
		requests = append(requests, request)
	}
	name := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	if method.IsStreamingClient() {
		return g.stream(ctx, name, method, requests)
	}
	response := dynamicpb.NewMessage(method.Output())
	if err := g.conn.Invoke(ctx, name, requests[0], response); err != nil {
		return failed(err), nil
	}
	return succeeded([]proto.Message{response})
}

// stream sends requests one after the other, each after the answer to the one before. The order of
// answers to concurrent requests is tested elsewhere. The stream's end is the last answer's status.
func (g *GRPCClient) stream(ctx context.Context, name string, method protoreflect.MethodDescriptor, requests []proto.Message) (Answer, error) {
	stream, err := g.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name)
	if err != nil {
		return failed(err), nil
	}
	var responses []proto.Message
	for _, request := range requests {
		if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
			return failed(err), nil
		}
		response := dynamicpb.NewMessage(method.Output())
		if err := stream.RecvMsg(response); err != nil {
			return failed(err), nil
		}
		responses = append(responses, response)
	}
	if err := stream.CloseSend(); err != nil {
		return failed(err), nil
	}
	if err := stream.RecvMsg(dynamicpb.NewMessage(method.Output())); !errors.Is(err, io.EOF) {
		return failed(fmt.Errorf("the stream did not end after its last answer: %w", err)), nil
	}
	return succeeded(responses)
}

// findMethod finds a method of one of the two services by its bare name.
func findMethod(name string) (protoreflect.MethodDescriptor, error) {
	for _, file := range []protoreflect.FileDescriptor{inferencepb.File_engine_api_inferencepb_grpc_service_proto, healthpb.File_grpc_health_v1_health_proto} {
		for i := range file.Services().Len() {
			if method := file.Services().Get(i).Methods().ByName(protoreflect.Name(name)); method != nil {
				return method, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no gRPC method %q", name)
}

func failed(err error) Answer {
	s := status.Convert(err)
	return Answer{Status: s.Code().String(), Text: cleanText(s.Message())}
}

func succeeded(responses []proto.Message) (Answer, error) {
	a := Answer{Status: "OK"}
	var texts []string
	for _, response := range responses {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(response)
		if err != nil {
			return Answer{}, fmt.Errorf("cannot print the answer: %w", err)
		}
		texts = append(texts, normalize(text))
	}
	a.Text = strings.Join(texts, "\n")
	return a, nil
}
