package output

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// exportDocument is perf_analyzer's profile export.
type exportDocument struct {
	Experiments []exportLevel `json:"experiments"`  // the levels, in the order of measuring
	Version     string        `json:"version"`      // name and version of the program that measured
	ServiceKind string        `json:"service_kind"` // kind of the service, always "triton"
	Endpoint    string        `json:"endpoint"`     // always "": perf_analyzer has it for other services
}

// exportLevel is a level with all its requests.
type exportLevel struct {
	Experiment exportLoad `json:"experiment"` // load of the level
	// requests that ended in any window of the level, also in a window that the stop rule left out
	Requests []exportRequest `json:"requests"`
	// edges of the windows, in nanoseconds since 1970
	WindowBoundaries []int64 `json:"window_boundaries"`
}

// exportLoad is the load of a level.
type exportLoad struct {
	Mode string `json:"mode" jsonschema:"enum=concurrency,enum=request_rate"` // kind of the load
	// requests in flight, or requests per second
	Value json.Number `json:"value"`
}

// exportRequest is a request with its responses.
type exportRequest struct {
	Timestamp int64 `json:"timestamp"` // instant of the sending, in nanoseconds since 1970
	// values of the first batch element, by input: a value, or a flat list. FP16, BF16 and numbers
	// that JSON does not have are null
	RequestInputs json.RawMessage `json:"request_inputs"`
	// instants of the responses, in nanoseconds since 1970; none if the request failed
	ResponseTimestamps []int64 `json:"response_timestamps"`
	// an empty object for each response, since values of outputs are not kept
	ResponseOutputs []exportOutput `json:"response_outputs"`
	// instant at which the schedule of an open loop had the request, in nanoseconds since 1970;
	// absent in a closed loop
	Scheduled int64 `json:"scheduled,omitempty"`
}

type exportOutput struct{}

// appendTo appends the request as package json encodes it. It is faster, since it does not read
// the inputs, which may be large, and it allocates nothing.
func (r exportRequest) appendTo(line []byte) []byte {
	line = strconv.AppendInt(append(line, `{"timestamp":`...), r.Timestamp, 10)
	line = append(append(line, `,"request_inputs":`...), r.RequestInputs...)
	line = append(line, `,"response_timestamps":[`...)
	for i, instant := range r.ResponseTimestamps {
		if i > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendInt(line, instant, 10)
	}
	line = append(line, `],"response_outputs":[`...)
	for i := range r.ResponseOutputs {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, `{}`...)
	}
	line = append(line, ']')
	if r.Scheduled != 0 {
		line = strconv.AppendInt(append(line, `,"scheduled":`...), r.Scheduled, 10)
	}
	return append(line, '}')
}

// aroundList returns the JSON of a value before and after the elements of its first list, which has
// none yet.
func aroundList(v any) (before, after []byte) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the value has only text and numbers
	}
	i := bytes.Index(text, []byte("[]")) + 1
	return text[:i], text[i:]
}
