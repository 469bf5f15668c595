package identity

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
)

// tracing says which activities each request notes in its trace, as the original does for tests of traces.
type tracing struct {
	enabled bool
	spans   int // that lie in each other, after the first one
	singles int // every so many of these have an event; 0: none
}

const (
	// activity is the time that each span of a trace takes.
	activity = 100 * time.Millisecond
	// maxSpans bounds the spans of a request in each other, so that its trace stays small.
	maxSpans = 1000
)

func newTracing(c *modelconfig.Config) (tracing, error) {
	var t tracing
	if p := c.GetParameters()["enable_custom_tracing"]; p != nil {
		enabled, err := strconv.ParseBool(p.GetStringValue())
		if err != nil {
			return t, fault.Errorf(fault.InvalidArgument, "cannot load model '%s': parameters[%q] is %q: give true or false", c.GetName(), "enable_custom_tracing", p.GetStringValue())
		}
		t.enabled = enabled
	}
	var errSpans, errSingles error
	t.spans, errSpans = parameter(c, "nested_span_count")
	t.singles, errSingles = parameter(c, "single_activity_frequency")
	if t.spans > maxSpans {
		errSpans = fault.Errorf(fault.InvalidArgument, "cannot load model '%s': parameters[%q] is %d: give a whole number from 0 to %d", c.GetName(), "nested_span_count", t.spans, maxSpans)
	}
	return t, errors.Join(errSpans, errSingles)
}

// note notes the activities of a request, in the original's order.
func (t tracing) note(r *engine.Apart) {
	if !t.enabled {
		return
	}
	const name, single = "CUSTOM_ACTIVITY", "CUSTOM_SINGLE_ACTIVITY"
	r.Note(name + "_START")
	time.Sleep(activity)
	r.Note(name + "_END")
	r.Note(single)
	for i := range t.spans {
		r.Note(fmt.Sprintf("%s%d_START", name, i))
		time.Sleep(activity)
		if t.singles > 0 && i%t.singles == 0 {
			r.Note(single)
		}
	}
	for i := t.spans - 1; i >= 0; i-- {
		r.Note(fmt.Sprintf("%s%d_END", name, i))
	}
}
