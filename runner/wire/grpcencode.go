package wire

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// encodeGRPC writes an infer request as a gRPC message with its head.
func encodeGRPC(o Options, r api.InferRequest) ([]byte, error) {
	if _, err := requestFields(o); err != nil { // Dial would find the error only after the first loading
		return nil, err
	}
	parameters, err := grpcParameters(o)
	if err != nil {
		return nil, err
	}
	// Two concatenated messages are one message with the fields of both.
	message, err := proto.MarshalOptions{Deterministic: true}.Marshal(&pb.ModelInferRequest{Parameters: parameters})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the request of model %q: %w", r.Model, err)
	}
	request, err := api.EncodeGRPC(r)
	if err != nil {
		return nil, err
	}
	message = append(message, request...)
	head := [messageHead]byte{}
	if o.Compression != "" {
		head[0] = 1
		if message, err = compress(o.Compression, message); err != nil {
			return nil, err
		}
	}
	if len(message) > math.MaxInt32 {
		return nil, &InputError{fmt.Sprintf("the request of model %q has %d bytes: gRPC carries %d", r.Model, len(message), math.MaxInt32)}
	}
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	return append(head[:], message...), nil
}

// grpcParameters returns the parameters that the options add to requests.
func grpcParameters(o Options) (map[string]*pb.InferParameter, error) {
	parameters := map[string]*pb.InferParameter{}
	if o.Protocol == GRPCStream { // asks for a mark on the last answer, also if it has no outputs
		parameters["triton_enable_empty_final_response"] = &pb.InferParameter{ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: true}}
	}
	for _, p := range o.Parameters {
		switch value := p.Value.(type) {
		case int64:
			parameters[p.Name] = &pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: value}}
		case string:
			parameters[p.Name] = &pb.InferParameter{ParameterChoice: &pb.InferParameter_StringParam{StringParam: value}}
		case bool:
			parameters[p.Name] = &pb.InferParameter{ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: value}}
		default:
			return nil, &InputError{fmt.Sprintf("request parameter %q is %T: expected int64, string or bool", p.Name, p.Value)}
		}
	}
	return parameters, nil
}

// compress compresses a message. gRPC calls zlib's format deflate.
func compress(encoding string, message []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	default:
		return nil, &InputError{fmt.Sprintf("compression %q is not known: use \"gzip\" or \"deflate\"", encoding)}
	}
	if _, err := w.Write(message); err != nil {
		return nil, fmt.Errorf("cannot compress a request: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress a request: %w", err)
	}
	return out.Bytes(), nil
}

// decompress reverses compress.
func decompress(encoding string, message []byte) ([]byte, error) {
	var r io.ReadCloser
	var err error
	switch encoding {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(message))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(message))
	default:
		return nil, fmt.Errorf("cannot read an answer that is compressed by %q", encoding)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot decompress an answer: %w", err)
	}
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, mostKept+1))
	if err == nil && len(out) > mostKept {
		err = fmt.Errorf("it is larger than %d bytes", mostKept)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot decompress an answer: %w", err)
	}
	return out, nil
}
