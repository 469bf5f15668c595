package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine/api"
)

// messageHead is the length of gRPC's prefix of a message: a flag for compression, and the length.
const messageHead = 5

// unaryExchange speaks gRPC with one call per request: ModelInfer. Each slot has one call after the
// other.
type unaryExchange struct {
	*channel
	expected [][]api.Tensor // of the requests in flight, by slot
}

func newUnaryExchange(c *channel) *unaryExchange {
	return &unaryExchange{channel: c, expected: make([][]api.Tensor, len(c.calls))}
}

func (u *unaryExchange) send(slot int, p *Prepared) error {
	on := &u.calls[slot]
	u.expected[slot] = p.expected
	if err := u.open(on, p.expected != nil); err != nil {
		return err
	}
	return u.transmit(on, p.message, true)
}

func (u *unaryExchange) answering(slot int) bool {
	answer := &u.calls[slot].answer
	return answer.begun || answer.size > 0
}

// receive returns as soon as one call has ended. The requests that follow are sent before the next
// wait. So answers that were read together cause only one write.
func (u *unaryExchange) receive() (slot int, final, null bool, err error) {
	for {
		for slot := range u.calls {
			if on := &u.calls[slot]; on.id != 0 && on.answer.ended {
				on.id = 0
				return slot, true, false, judge(&on.answer, u.expected[slot])
			}
		}
		if err := u.step(); err != nil {
			return 0, true, false, err
		}
	}
}

// judge returns the error of a call that has ended, nil on success.
func judge(answer *reply, expected []api.Tensor) error {
	switch {
	case answer.failed != nil:
		return answer.failed
	case answer.size < messageHead:
		return errors.New("cannot read an answer: its status is OK, but it has no message")
	case expected == nil:
		return nil
	}
	message, size, err := answer.message(0)
	if err != nil {
		return err
	}
	if size != len(answer.data) {
		return fmt.Errorf("cannot read an answer of %d bytes: its message has %d", len(answer.data), size)
	}
	outputs, err := api.DecodeGRPC(message)
	if err != nil {
		return err
	}
	return compare(expected, outputs)
}

// message returns the decompressed message at an offset of the data. size is its length in the
// data, including its head; 0 while it is incomplete.
func (r *reply) message(from int) (message []byte, size int, err error) {
	data := r.data[from:]
	if len(data) < messageHead {
		return nil, 0, nil
	}
	length := int64(binary.BigEndian.Uint32(data[1:]))
	if length > mostKept {
		return nil, 0, fmt.Errorf("cannot read a message of %d bytes: %d are the most", length, mostKept)
	}
	if size = messageHead + int(length); len(data) < size {
		return nil, 0, nil
	}
	message = data[messageHead:size]
	switch data[0] {
	case 0:
		return message, size, nil
	case 1:
		message, err = decompress(r.head.encoding, message)
		return message, size, err
	default:
		return nil, 0, fmt.Errorf("cannot read a message that begins with %#x: expected 0 or 1, whether it is compressed", data[0])
	}
}

// streamExchange speaks gRPC with one call per connection: ModelStreamInfer. The messages of the
// call are the requests and their answers. A request of a decoupled model has any number of
// answers.
type streamExchange struct {
	*channel
	*call                 // the only call
	expected []api.Tensor // of the request in flight
	begun    bool         // of its answer
	read     int          // bytes of the data that are processed
	failed   error        // error of the request in flight, while answers are still to come
}

func newStreamExchange(c *channel) *streamExchange {
	return &streamExchange{channel: c, call: &c.calls[0]}
}

func (s *streamExchange) answering(int) bool { return s.begun || len(s.answer.data) > s.read }

func (s *streamExchange) send(_ int, p *Prepared) error {
	s.expected, s.failed, s.begun = p.expected, nil, false
	if s.answer.ended {
		s.read = 0
		if err := s.open(s.call, true); err != nil {
			return err
		}
	}
	return s.transmit(s.call, p.message, false)
}

func (s *streamExchange) receive() (slot int, final, null bool, err error) {
	message, err := s.next()
	if err != nil {
		return 0, true, false, err
	}
	s.begun = true
	r, err := parseStreamed(message)
	if err != nil {
		return 0, true, false, err
	}
	switch {
	case s.failed != nil: // the first error is returned
	case r.failure != "":
		s.failed = &api.StatusError{Status: streamFailure, Text: r.failure}
	case s.expected != nil && !r.empty:
		outputs, err := api.DecodeGRPC(r.response)
		if err != nil {
			return 0, true, false, err
		}
		s.failed = compare(s.expected, outputs)
	}
	if !r.final {
		return 0, false, r.empty, nil
	}
	return 0, true, r.empty, s.failed
}

// next waits for a message.
func (s *streamExchange) next() ([]byte, error) {
	for {
		message, size, err := s.answer.message(s.read)
		if err != nil {
			return nil, err
		}
		if size > 0 {
			s.read += size
			return message, nil
		}
		if s.read > 0 { // make room
			s.answer.data, s.read = append(s.answer.data[:0], s.answer.data[s.read:]...), 0
		}
		switch {
		case s.answer.ended && s.answer.failed != nil:
			return nil, s.answer.failed
		case s.answer.ended:
			return nil, errors.New("the server ended the stream before it answered the request")
		}
		if err := s.step(); err != nil {
			return nil, err
		}
	}
}

// streamFailure is the status of a request that failed on a stream: gRPC's UNKNOWN, since a stream
// carries only the text.
const streamFailure = 2

// streamed holds the parts of a ModelStreamInferResponse that are used.
type streamed struct {
	failure  string // field error_message
	response []byte // field infer_response
	final    bool   // it is the last answer to its request
	empty    bool   // it has no outputs, and is only the sign of the end
}

// parseStreamed finds the two fields of a ModelStreamInferResponse. It also finds whether the
// answer is the last one to its request, which holds unless the parameter is false. Source:
// Triton's protocol extension for decoupled models.
func parseStreamed(message []byte) (streamed, error) {
	s := streamed{final: true, empty: true}
	err := eachField(message, func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			s.failure = string(value)
		case 2:
			s.response = value
		}
		return nil
	})
	if err != nil {
		return streamed{}, err
	}
	err = eachField(s.response, func(field protowire.Number, value []byte) error {
		switch field {
		case 4: // field parameters
			isFinal, found, err := finalParameter(value)
			if found {
				s.final = isFinal
			}
			return err
		case 5: // field outputs
			s.empty = false
		}
		return nil
	})
	s.empty = s.empty && s.failure == ""
	return s, err
}

// finalParameter reads an entry of the parameters. found: it is the one for the last answer. final:
// its value.
func finalParameter(entry []byte) (final, found bool, err error) {
	var value []byte
	err = eachField(entry, func(field protowire.Number, v []byte) error {
		switch field {
		case 1:
			found = string(v) == "triton_final_response"
		case 2:
			value = v
		}
		return nil
	})
	if err != nil || !found {
		return false, false, err
	}
	for len(value) > 0 { // an InferParameter: bool_param is field 1
		field, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return false, false, protowire.ParseError(n)
		}
		value = value[n:]
		if field == 1 && kind == protowire.VarintType {
			v, n := protowire.ConsumeVarint(value)
			if n < 0 {
				return false, false, protowire.ParseError(n)
			}
			final, value = protowire.DecodeBool(v), value[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(field, kind, value); n < 0 {
			return false, false, protowire.ParseError(n)
		}
		value = value[n:]
	}
	return final, true, nil
}

// eachField calls f for each field of a message that holds bytes, such as a message or a text.
func eachField(message []byte, f func(field protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("cannot read an answer's message: %w", protowire.ParseError(n))
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(field, kind, message); n < 0 {
			return fmt.Errorf("cannot read an answer's message: %w", protowire.ParseError(n))
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if err := f(field, value); err != nil {
				return err
			}
		}
		message = message[n:]
	}
	return nil
}
