package output

import (
	"bufio"
	"encoding/json"
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

// Export writes perf_analyzer's profile export, an exportDocument, while the run continues. Begin
// and End enclose a level; Close completes the document.
//
// Export is for one goroutine. After an error of writing, all later calls return it.
type Export struct {
	w        *bufio.Writer
	inputs   []json.RawMessage // of each request
	document exportDocument    // without levels
	levels   int

	begin   time.Time     // of the level, as is the rest
	open    bool          // the load is an open loop
	level   exportLevel   // without requests
	request exportRequest // the latest one, whose memory is used again
	records int
	line    []byte // buffer for one request
}

// NewExport prepares the values of the inputs, which are the same for each sending of a request.
// Record n belongs to request n modulo their number.
func NewExport(w io.Writer, s perf.Settings, requests []payload.Request) *Export {
	e := &Export{w: bufio.NewWriterSize(w, 1<<16), document: exportDocument{Experiments: []exportLevel{}, Version: s.Program, ServiceKind: "triton"}}
	for _, r := range requests {
		e.inputs = append(e.inputs, inputsJSON(r.Infer.Inputs, s.Batch))
	}
	return e
}

// Begin begins a level whose records count from begin.
func (e *Export) Begin(l measure.Load, begin time.Time) error {
	e.begin, e.open, e.records = begin, isOpen(l), 0
	load := exportLoad{Mode: "concurrency", Value: json.Number(strconv.Itoa(l.Concurrency))}
	if e.open {
		load = exportLoad{Mode: "request_rate", Value: json.Number(decimal(l.RequestRate))}
	}
	e.level = exportLevel{Experiment: load, Requests: []exportRequest{}, WindowBoundaries: []int64{}}
	line := append(e.line[:0], e.opening()...)
	e.levels++
	before, _ := aroundList(e.level)
	return e.put(append(line, before...))
}

// Record adds a request. A failed request has no responses.
func (e *Export) Record(r load.Record) error {
	line := e.line[:0]
	if e.records > 0 {
		line = append(line, ',')
	}
	e.records++
	q := &e.request
	q.Timestamp, q.RequestInputs, q.ResponseTimestamps = e.instant(r.Sent), e.inputs[r.Request%len(e.inputs)], q.ResponseTimestamps[:0]
	for _, d := range r.Responses {
		q.ResponseTimestamps = append(q.ResponseTimestamps, e.instant(d))
	}
	q.ResponseOutputs = make([]exportOutput, len(r.Responses)) // of size 0: allocates nothing
	if q.Scheduled = 0; e.open {
		q.Scheduled = e.instant(r.Scheduled)
	}
	return e.put(q.appendTo(line))
}

// End ends the level. edges are the edges of its windows.
func (e *Export) End(edges []time.Duration) error {
	for _, d := range edges {
		e.level.WindowBoundaries = append(e.level.WindowBoundaries, e.instant(d))
	}
	_, after := aroundList(e.level)
	return e.put(append(e.line[:0], after...))
}

// Close completes the document. It does not close the underlying writer.
func (e *Export) Close() error {
	line := e.line[:0]
	if e.levels == 0 {
		line = append(line, e.opening()...)
	}
	_, after := aroundList(e.document)
	if err := e.put(append(append(line, after...), '\n')); err != nil {
		return err
	}
	return exportError(e.w.Flush())
}

// opening returns the text before a level. If there is no level, it comes before the end.
func (e *Export) opening() []byte {
	if e.levels > 0 {
		return []byte{','}
	}
	before, _ := aroundList(e.document)
	return before
}

// instant returns an instant of the level as ns since 1970. The offsets come from a monotonic
// clock, so that differences are latencies even if the wall clock jumps.
func (e *Export) instant(d time.Duration) int64 { return e.begin.UnixNano() + int64(d) }

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
