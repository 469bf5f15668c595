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

	"tuner/internal/alloctest"
)

// canned is a connection to a server that sends fixed bytes, whatever it receives.
type canned struct {
	net.Conn
	said io.Reader
}

func (c canned) Read(p []byte) (int, error)  { return c.said.Read(p) }
func (c canned) Write(p []byte) (int, error) { return len(p), nil }
func (c canned) SetDeadline(time.Time) error { return nil }

// cannedChannel returns a channel to a server that greets and then sends the given bytes.
func cannedChannel(t *testing.T, o Options, said []byte) *channel {
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
	c, err := newChannel(t.Context(), &link{raw: conn, conn: conn, in: bufio.NewReaderSize(conn, inputBuffer)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Reading ends for all bytes of a server. The seeds are Triton's answers to requests that it
// accepted and to one that it refused, in their own calls and on a stream.
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
		defer alloctest.Bound(t, len(said))()
		for _, protocol := range []Protocol{GRPC, GRPCStream} {
			o := Options{Address: "host:1", Protocol: protocol}
			under := cannedChannel(t, o, said)
			c, r := newConn(under.link, newUnaryExchange(under), 1), bytesRequest("m", 8)
			if protocol == GRPCStream {
				c.exchange = newStreamExchange(under)
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

// For all bytes of a server with several calls on a connection, each call ends exactly once, and
// only calls that were made end.
func FuzzSharedAnswers(f *testing.F) {
	frames := func(write func(p *peer)) []byte {
		var said bytes.Buffer
		write(&peer{Framer: http2.NewFramer(&said, nil)})
		return said.Bytes()
	}
	f.Add(frames(func(p *peer) { p.answer(5); p.answer(1); p.answer(3); p.answer(7) }))
	f.Add(frames(func(p *peer) {
		p.head(1)
		p.head(3)
		_ = p.WriteRSTStream(1, http2.ErrCodeCancel)
		p.answer(5)
		p.answer(7)
		p.trailers(3, "grpc-status", "0")
	}))
	f.Add(frames(func(p *peer) { p.answer(3); _ = p.WriteGoAway(3, http2.ErrCodeNo, nil); p.answer(1) }))
	f.Fuzz(func(t *testing.T, said []byte) {
		defer alloctest.Bound(t, len(said))()
		const calls = 3
		o := Options{Address: "host:1", Protocol: GRPC, Share: calls}
		under := cannedChannel(t, o, said)
		c, r := newConn(under.link, newUnaryExchange(under), calls), bytesRequest("m", 8)
		request := prepare(t, o, r, Format{}, r.Inputs...)
		var open [calls]bool
		for told := 0; !c.Broken(); told++ {
			if told > len(said) {
				t.Fatalf("%d requests were answered by %d bytes", told, len(said))
			}
			for slot := range open {
				if !open[slot] {
					c.Send(slot, request)
					open[slot] = true
				}
			}
			slot, final, null, _ := c.Receive()
			if !open[slot] || !final || null {
				t.Fatalf("slot %d is told, final %v, null %v, in flight are %v", slot, final, null, open)
			}
			open[slot] = false
		}
	})
}

// The data of an answer do not depend on how they are cut and padded.
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
		c := cannedChannel(t, Options{Address: "host:1", Protocol: GRPC}, said.Bytes())
		on := &c.calls[0]
		if err := c.open(on, true); err != nil {
			t.Fatal(err)
		}
		for !on.answer.ended {
			if err := c.step(); err != nil {
				t.Fatal(err)
			}
		}
		if on.answer.failed != nil || !bytes.Equal(on.answer.data, data) {
			t.Errorf("error %v, data %q, sent were %q", on.answer.failed, on.answer.data, data)
		}
	})
}

// parseStreamed finds the same as protobuf in every message of a stream that protobuf can read.
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
		defer alloctest.Bound(t, len(message))()
		_, _ = parseStreamed(message) // any result will do
		m := &pb.ModelStreamInferResponse{}
		if proto.Unmarshal(message, m) != nil {
			return
		}
		message, err := proto.Marshal(m) // as servers write it: each field once
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
