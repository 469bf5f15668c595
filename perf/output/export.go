package output

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tuner/measure"
	"tuner/perf"
	"tuner/runner/load"
	"tuner/runner/payload"
)

// Export writes perf_analyzer's profile export while the run continues. It has every request of the
// windows, with the wall-clock times of its sending and its responses in ns since 1970. Begin and
// End enclose a level; Close completes the document. Values of outputs are not kept: each response
// has an empty object. Requests of an open loop also have their scheduled instant.
//
// Export is for one goroutine. After an error of writing, all later calls return it.
type Export struct {
	w       *bufio.Writer
	program string
	inputs  [][]byte // "request_inputs" of each request, as JSON
	levels  int

	begin   time.Time // of the level, as is the rest
	open    bool      // the load is an open loop
	records int
	line    []byte // buffer for one request
}

// NewExport prepares the values of the inputs, which are the same for each sending of a request.
// Record n belongs to request n modulo their number.
func NewExport(w io.Writer, s perf.Settings, requests []payload.Request) *Export {
	e := &Export{w: bufio.NewWriterSize(w, 1<<16), program: s.Program}
	for _, r := range requests {
		e.inputs = append(e.inputs, inputsJSON(r.Infer.Inputs, s.Batch))
	}
	return e
}

// Begin begins a level whose records count from begin.
func (e *Export) Begin(l measure.Load, begin time.Time) error {
	e.begin, e.open, e.records = begin, isOpen(l), 0
	line := append(e.line[:0], e.opening()...)
	e.levels++
	line = append(line, `{"experiment":{"mode":`...)
	if e.open {
		line = append(line, `"request_rate","value":`...)
		line = append(line, decimal(l.RequestRate)...)
	} else {
		line = append(line, `"concurrency","value":`...)
		line = strconv.AppendInt(line, int64(l.Concurrency), 10)
	}
	return e.put(append(line, `},"requests":[`...))
}

// Record adds a request. A failed request has no responses.
func (e *Export) Record(r load.Record) error {
	line := e.line[:0]
	if e.records > 0 {
		line = append(line, ',')
	}
	e.records++
	line = append(line, `{"timestamp":`...)
	line = e.instant(line, r.Sent)
	line = append(line, `,"request_inputs":`...)
	line = append(line, e.inputs[r.Request%len(e.inputs)]...)
	line = append(line, `,"response_timestamps":[`...)
	for i, d := range r.Responses {
		if i > 0 {
			line = append(line, ',')
		}
		line = e.instant(line, d)
	}
	line = append(line, `],"response_outputs":[`...)
	for i := range r.Responses {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, `{}`...)
	}
	line = append(line, ']')
	if e.open {
		line = e.instant(append(line, `,"scheduled":`...), r.Scheduled)
	}
	return e.put(append(line, '}'))
}

// End ends the level. edges are the edges of its windows.
func (e *Export) End(edges []time.Duration) error {
	line := append(e.line[:0], `],"window_boundaries":[`...)
	for i, d := range edges {
		if i > 0 {
			line = append(line, ',')
		}
		line = e.instant(line, d)
	}
	return e.put(append(line, `]}`...))
}

// Close completes the document. It does not close the underlying writer.
func (e *Export) Close() error {
	line := e.line[:0]
	if e.levels == 0 {
		line = append(line, e.opening()...)
	}
	line = append(line, `],"version":`...)
	line = append(line, quote(e.program)...)
	if err := e.put(append(line, `,"service_kind":"triton","endpoint":""}`+"\n"...)); err != nil {
		return err
	}
	return exportError(e.w.Flush())
}

// opening returns the text before a level. If there is no level, it comes before the end.
func (e *Export) opening() string {
	if e.levels > 0 {
		return ","
	}
	return `{"experiments":[`
}

// instant appends an instant of the level as ns since 1970. The offsets come from a monotonic
// clock, so that differences are latencies even if the wall clock jumps.
func (e *Export) instant(line []byte, d time.Duration) []byte {
	return strconv.AppendInt(line, e.begin.UnixNano()+int64(d), 10)
}

// put writes a line and keeps its memory for the next one.
func (e *Export) put(line []byte) error {
	e.line = line
	_, err := e.w.Write(line)
	return exportError(err)
}

func exportError(err error) error {
	if err != nil {
		return fmt.Errorf("cannot write profile export: %w", err)
	}
	return nil
}

// decimal prints a number with a decimal point, as perf_analyzer prints rates.
func decimal(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
