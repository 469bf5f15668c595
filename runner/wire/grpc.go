package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"tuner/engine/api"
)

// messageHead is the length of what gRPC puts in front of a message: whether it is compressed, and its length.
const messageHead = 5

// unaryExchange speaks gRPC with a call per request: ModelInfer. Each slot has one call after the other.
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

// receive returns as soon as one call has ended. Requests that are sent then go out before it next has to wait: with all
// that what was read together brought about.
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

// judge says how a call went that has ended.
func judge(answer *reply, expected []api.Tensor) error {
	switch {
	case answer.failed != nil:
		return answer.failed
	case answer.size < messageHead:
		return errors.New("cannot read an answer: it says that all is well, and has no message")
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

// message is the message that begins at an offset of the data, decompressed, and the bytes that it takes of them, its head
// included: 0 while it is not complete.
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

// streamExchange speaks gRPC with a call per connection, whose messages are the requests and their answers:
// ModelStreamInfer. A request of a decoupled model has any number of answers.
type streamExchange struct {
	*channel
	*call                 // the only one
	expected []api.Tensor // of the request in flight
	begun    bool         // its answer
	read     int          // bytes of the data that are done with
	failed   error        // why the request in flight failed, where answers are still to come
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
	case s.failed != nil: // the first error is told
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
		if s.read > 0 { // make place
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

// streamFailure is the status of a request that failed on a stream, which carries the text alone: gRPC's UNKNOWN.
const streamFailure = 2

// streamed is what matters of a ModelStreamInferResponse.
type streamed struct {
	failure  string // error_message
	response []byte // infer_response
	final    bool   // the last answer to its request
	empty    bool   // it carries no outputs, and is only the sign of the end
}

// parseStreamed finds the two fields of a ModelStreamInferResponse, and whether it is the last one of its request: it is
// unless the parameter says otherwise. Source: Triton's protocol extension for decoupled models.
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
		case 4: // parameters
			isFinal, found, err := finalParameter(value)
			if found {
				s.final = isFinal
			}
			return err
		case 5: // outputs
			s.empty = false
		}
		return nil
	})
	s.empty = s.empty && s.failure == ""
	return s, err
}

// finalParameter reads an entry of the parameters: whether it is the one that says which answer is the last, and if so,
// what it says.
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

// eachField calls f for each field of a message that is itself bytes: a message, a text.
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
