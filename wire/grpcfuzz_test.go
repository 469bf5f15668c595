package wire

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"

	pb "tuner/engine/api/inferencepb"
)

// canned is a connection to a server that says what it says, whatever it is told.
type canned struct {
	net.Conn
	said io.Reader
}

func (c canned) Read(p []byte) (int, error)  { return c.said.Read(p) }
func (c canned) Write(p []byte) (int, error) { return len(p), nil }
func (c canned) SetDeadline(time.Time) error { return nil }

// cannedStream is a connection to a server that greets and then says what is given.
func cannedStream(t *testing.T, protocol Protocol, said []byte) *stream {
	t.Helper()
	var all bytes.Buffer
	f := http2.NewFramer(&all, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettingsAck(); err != nil {
		t.Fatal(err)
	}
	all.Write(said)
	conn := canned{said: &all}
	s, err := newStream(t.Context(), &link{raw: conn, conn: conn, in: bufio.NewReaderSize(conn, inputBuffer)}, Options{Address: "host:1", Protocol: protocol})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever a server says, reading it ends. The seeds are what Triton said: to requests that it answered and to one that it
// refused, on calls of their own and on a stream.
func FuzzGRPCAnswers(f *testing.F) {
	recorded, err := filepath.Glob(filepath.Join("testdata", "triton_grpc_*"))
	if err != nil || len(recorded) == 0 {
		f.Fatalf("no recorded answers: %v", err)
	}
	for _, path := range recorded {
		said, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		for _, protocol := range []Protocol{GRPC, GRPCStream} {
			o := Options{Address: "host:1", Protocol: protocol}
			s := cannedStream(t, protocol, said)
			c, r := &Conn{link: s.link, exchange: &unaryExchange{stream: s}}, bytesRequest("m", 8)
			if protocol == GRPCStream {
				c.exchange = &streamExchange{stream: s}
			}
			request := prepare(t, o, r, Format{}, r.Inputs...)
			for sent := 0; !c.Broken(); sent++ {
				if sent > len(said) {
					t.Fatalf("%d requests were answered by %d bytes", sent, len(said))
				}
				_, _, _ = all(c, request)
			}
		}
	})
}

// The data of an answer are the same however they are cut and padded.
func FuzzGRPCData(f *testing.F) {
	f.Add([]byte("message"), uint16(3), uint8(0))
	f.Add(bytes.Repeat([]byte("long message"), 1000), uint16(5000), uint8(200))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, pad uint8) {
		var said bytes.Buffer
		p := &peer{Framer: http2.NewFramer(&said, nil)}
		p.head(1)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(cut)+1)
			var err error
			if pad == 0 {
				err = p.WriteData(1, false, rest[:n])
			} else {
				err = p.WriteDataPadded(1, false, rest[:n], make([]byte, pad))
			}
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		p.trailers(1, "grpc-status", "0")
		s := cannedStream(t, GRPC, said.Bytes())
		if err := s.open(true); err != nil {
			t.Fatal(err)
		}
		for !s.answer.ended {
			if err := s.step(); err != nil {
				t.Fatal(err)
			}
		}
		if s.answer.failed != nil || !bytes.Equal(s.answer.data, data) {
			t.Errorf("error %v, data %q, sent were %q", s.answer.failed, s.answer.data, data)
		}
	})
}

// What is found in a message of a stream is what protobuf finds, where protobuf reads it.
func FuzzStreamed(f *testing.F) {
	for _, m := range []*pb.ModelStreamInferResponse{
		{ErrorMessage: "no"},
		{InferResponse: &pb.ModelInferResponse{ModelName: "m", Outputs: []*pb.ModelInferResponse_InferOutputTensor{{Name: "x"}}, RawOutputContents: [][]byte{{1}}}},
		{InferResponse: &pb.ModelInferResponse{Parameters: map[string]*pb.InferParameter{"triton_final_response": {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: false}}}}},
		{InferResponse: &pb.ModelInferResponse{Parameters: map[string]*pb.InferParameter{"triton_final_response": {}}}},
	} {
		seed, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		_, _ = parseStreamed(message) // anything
		m := &pb.ModelStreamInferResponse{}
		if proto.Unmarshal(message, m) != nil {
			return
		}
		message, err := proto.Marshal(m) // as servers write: each field once
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseStreamed(message)
		if err != nil {
			t.Fatal(err)
		}
		final, found := m.GetInferResponse().GetParameters()["triton_final_response"]
		want := streamed{
			failure: m.GetErrorMessage(), final: !found || final.GetBoolParam(),
			empty: m.GetErrorMessage() == "" && len(m.GetInferResponse().GetOutputs()) == 0,
		}
		got.response = nil
		if d := cmp.Diff(want, got, cmp.AllowUnexported(streamed{})); d != "" {
			t.Errorf("-protobuf +parsed:\n%s", d)
		}
	})
}
