package grpcapi

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/fault"
	"tuner/engine/logging"
)

// maxInFlight bounds the unanswered requests of one stream. At the bound the stream is not read on.
const maxInFlight = 1 << 10

// strictKey is a key of a stream's metadata. With the value "true" the first failed execution ends
// the stream with its status. Requests that are refused earlier are answered as on any stream, as
// in Triton.
const strictKey = "triton_grpc_error"

// streamed is a request of a stream, queued or refused.
type streamed struct {
	message *message
	pending *engine.Pending
	err     error            // reason, if it was refused
	entry   *logging.Request // its line; nil: none
}

// errStopping ends streams when the server ends.
var errStopping = status.Error(codes.Unavailable, "GRPC server is shutting down and has stopped accepting new requests.")

// flow holds the requests of a stream between their arrival and their answers.
type flow struct {
	client     *client // nil: no account is charged
	stream     uint32  // number of the stream
	write      encoder // of the answers
	compressed bool    // the answers
	queue      chan streamed
	unanswered atomic.Int64 // requests that have arrived and are not answered
}

// serveStream is the handler of ModelStreamInfer. It queues requests as they arrive, and answers
// them in the same order. A request that fails is answered with its error, and the stream
// continues, unless the client asked for its end. When the server stops, the queued requests are
// answered, and the stream ends, whatever its client still sends.
func serveStream(server any, stream grpc.ServerStream) error {
	s := server.(*service)
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	write, isCompressed, err := s.compressed(ctx, encodeStreamed)
	if err != nil {
		return err
	}
	f := &flow{client: clientOf(ctx), stream: streamOf(ctx), write: write, compressed: isCompressed, queue: make(chan streamed, maxInFlight)}
	received := make(chan error, 1)
	go func() {
		defer close(f.queue)
		received <- s.receive(ctx, stream, f)
	}()
	if err := s.answer(ctx, stream, f); err != nil {
		// The queued requests are given up. The receiver ends with the stream, which ends with this
		// call.
		go s.discard(ctx, f)
		return err
	}
	return <-received
}

// receive starts the requests of a stream until the last one, or until the server stops.
func (s *service) receive(ctx context.Context, stream grpc.ServerStream, f *flow) error {
	for {
		next := streamed{message: s.pool.take()}
		began := s.now()
		if err := stream.RecvMsg(next.message); err != nil {
			s.pool.put(next.message)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		next.message.reading = reading{began, s.now()}
		if s.requests.Wanted() {
			next.entry = begin(stream.Context(), pb.GRPCInferenceService_ModelStreamInfer_FullMethodName)
			next.message.describe(next.entry)
		}
		if next.message.copied > 0 {
			f.client.adopt(next.message, f.stream)
		}
		// before the check: either this goroutine sees that the server stops, or answer sees this
		// request
		f.unanswered.Add(1)
		select {
		case <-s.stopping:
			f.drop(s, next.message)
			return errStopping
		default:
		}
		if f.client.memory().IsFull() {
			next.err = fault.Full(f.client.memory())
		} else {
			next.pending, next.err = s.start(ctx, next.message, f.client)
		}
		f.queue <- next // answer or discard reads the queue to its end
	}
}

// answer answers the requests in their order, until the last one, a failed sending, or the server's
// stop.
func (s *service) answer(ctx context.Context, stream grpc.ServerStream, f *flow) error {
	md, _ := metadata.FromIncomingContext(ctx)
	strict := slices.Equal(md.Get(strictKey), []string{"true"})
	for {
		var next streamed
		var open bool
		select {
		case next, open = <-f.queue:
		case <-s.stopping: // requests that have arrived are still answered, and no more are started
			if f.unanswered.Load() == 0 {
				return errStopping
			}
			next, open = <-f.queue
		}
		if !open {
			return nil
		}
		t := next.message.request.Trace
		answer, err := s.finishStreamed(ctx, &next, f)
		f.drop(s, next.message)
		if err != nil && strict {
			t.End()
			return statusOf(err)
		}
		if err := send(stream, answer, t); err != nil {
			return err
		}
		f.unanswered.Add(-1)
	}
}

// discard waits for requests whose answers are not wanted.
func (s *service) discard(ctx context.Context, f *flow) {
	for next := range f.queue {
		if next.pending != nil {
			if response, err := next.pending.Wait(ctx); err == nil {
				response.Release()
			}
		}
		next.message.request.Trace.End()
		f.drop(s, next.message)
	}
}

// drop frees a message. It gives back the bytes of its frames. A unary call gives them back when it
// ends.
func (f *flow) drop(s *service, m *message) {
	f.client.leave(f.stream, m.size)
	s.pool.put(m)
}

// finishStreamed waits for the request and serialises its answer. The error is that of a request
// that was accepted and failed, for streams that end with it. The answer always has it.
func (s *service) finishStreamed(ctx context.Context, q *streamed, f *flow) (mem.BufferSlice, error) {
	if q.err != nil {
		s.note(q.entry, statusOf(q.err))
		return f.small(encodeRefusal(fault.TextOf(q.err), q.message)), nil
	}
	answer, err := s.finish(ctx, q.pending, q.message, f.client, f.write, q.entry)
	s.note(q.entry, statusOf(err))
	if err != nil {
		answer = f.small(encodeFailure(fault.TextOf(err), q.message))
	}
	return answer, err
}

// small passes on an answer that the charge of the call covers.
func (f *flow) small(answer mem.BufferSlice) mem.BufferSlice {
	if f.compressed {
		f.client.hold(f.stream, 0)
	}
	return answer
}
