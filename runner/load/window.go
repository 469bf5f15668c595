package load

import (
	"time"

	"tuner/measure"
)

const (
	subWindows = 10 // slices of a window whose length is known
	// slices of any other window; at this number they are joined in pairs
	mostSubWindows = 20
	finestSlice    = time.Millisecond // width of a slice at first
	// a request of an open loop is late if it is sent later than this after its instant
	lateAfter = time.Millisecond
)

// window is a measured interval to which records are added as they arrive. It keeps latencies in
// histograms, so that its size does not depend on their number.
type window struct {
	from, to time.Duration // to is unknown while the window is open
	open     bool          // the load is an open loop
	width    time.Duration // width of a slice
	grows    bool          // its length is not known beforehand
	slices   []*slice
	store    *store

	counts    measure.Window // figures that are only counted
	delay     *measure.Recorder
	responses int
	failedAt  time.Duration // instant of the first failure
	firstSent time.Duration // unknown: nothing was sent
	lastEnd   time.Duration

	inFlight time.Duration // sum over the requests of the time in flight within the window
	// sending instants of requests that were in flight when the run failed
	aborted    []time.Duration
	unfinished int           // requests due before the end and not answered then
	oldest     time.Duration // when the oldest of them was due
}

// slice is an equal part of a window.
type slice struct {
	latency, service tally
}

// tally is a distribution that grows.
type tally struct {
	recorder *measure.Recorder // nil: no latency was recorded
	joined   measure.Histogram // latencies of slices that were joined to this one
	sum      time.Duration     // sum of joined
}

func (t *tally) record(d time.Duration, store *store) {
	if t.recorder == nil {
		t.recorder = store.lend()
	}
	t.recorder.Record(d)
}

// settle moves the recorder's latencies to joined, and returns the recorder to the store.
func (t *tally) settle(store *store) {
	if t.recorder == nil {
		return
	}
	t.joined, t.sum = measure.Merge(t.joined, t.recorder.Histogram()), t.sum+t.recorder.Sum()
	store.put(t.recorder)
	t.recorder = nil
}

// absorb settles both tallies and adds the other to t.
func (t *tally) absorb(other *tally, store *store) {
	t.settle(store)
	other.settle(store)
	t.joined, t.sum = measure.Merge(t.joined, other.joined), t.sum+other.sum
}

// store lends recorders to windows. Recorders are large, and only open windows need them.
type store struct{ free []*measure.Recorder }

func (s *store) lend() *measure.Recorder {
	if len(s.free) == 0 {
		return measure.NewRecorder()
	}
	r := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return r
}

func (s *store) put(r *measure.Recorder) {
	r.Reset()
	s.free = append(s.free, r)
}

// newWindow begins a window of the given length. 0: the length is not known beforehand.
func newWindow(from, length time.Duration, open bool, store *store) *window {
	w := &window{from: from, to: unknown, open: open, width: length / subWindows, store: store, delay: store.lend(), firstSent: unknown, oldest: unknown}
	if w.width <= 0 {
		w.width, w.grows = finestSlice, true
	}
	return w
}

// at returns the slice of an instant. An instant outside the window belongs to the nearest slice.
func (w *window) at(instant time.Duration) *slice {
	i := int(max(0, instant-w.from) / w.width)
	for w.grows && i >= mostSubWindows {
		w.join()
		i = int(max(0, instant-w.from) / w.width)
	}
	if !w.grows {
		i = min(i, subWindows-1)
	}
	for len(w.slices) <= i {
		w.slices = append(w.slices, new(slice))
	}
	return w.slices[i]
}

// join joins the slices in pairs.
func (w *window) join() {
	n := (len(w.slices) + 1) / 2
	for i := range n {
		s := w.slices[2*i]
		if 2*i+1 < len(w.slices) {
			s.absorb(w.slices[2*i+1], w.store)
		}
		w.slices[i] = s
	}
	w.slices = w.slices[:n]
	w.width *= 2
}

// absorb adds another slice to s.
func (s *slice) absorb(other *slice, store *store) {
	s.latency.absorb(&other.latency, store)
	s.service.absorb(&other.service, store)
}

// addEnded counts a record that ended in the window.
func (w *window) addEnded(r record) {
	if w.firstSent < 0 || r.sent < w.firstSent {
		w.firstSent = r.sent
	}
	if r.outcome == aborted {
		return
	}
	w.lastEnd = max(w.lastEnd, r.end)
	switch r.outcome {
	case completed:
		w.complete(r)
	default:
		w.counts.Errors++
		if r.outcome == timedOut {
			w.counts.TimedOut++
		}
		if w.counts.FirstError == "" || r.end < w.failedAt {
			w.counts.FirstError, w.failedAt = r.more.failure.Error(), r.end
		}
	}
}

func (w *window) complete(r record) {
	w.counts.Requests++
	w.responses += int(r.responses)
	s := w.at(r.end)
	if r.ready >= 0 {
		w.delay.Record(r.sent - r.ready)
	}
	if !w.open {
		s.latency.record(r.end-r.sent, w.store)
		return
	}
	if r.sent-r.ready > lateAfter {
		w.counts.Late++
	}
	s.latency.record(r.end-r.ready, w.store)
	s.service.record(r.end-r.sent, w.store)
}

// soFar returns the figures up to an instant of an open window.
func (w *window) soFar(at time.Duration, batch int) measure.Window {
	m := w.counts
	m.Start, m.Duration = w.from, at-w.from
	m.Inferences = m.Requests * batch
	m.Sub = w.settled()
	return m
}

// addInFlight counts the time in flight of a record within the window, whenever it ended.
func (w *window) addInFlight(r record) {
	if w.to >= 0 {
		w.leave(r)
	}
	if r.outcome == aborted {
		w.aborted = append(w.aborted, r.sent)
		return
	}
	from, to := max(r.sent, w.from), r.end
	if w.to >= 0 {
		to = min(to, w.to)
	}
	w.inFlight += max(0, to-from)
}

// leave counts a request that was due before the window's end and ended after it, or did not end
// before the run did.
func (w *window) leave(r record) {
	due := r.sent
	if w.open {
		due = r.ready
	}
	if due >= w.to || r.end < w.to {
		return
	}
	w.unfinished++
	if w.oldest < 0 || due < w.oldest {
		w.oldest = due
	}
}

// close makes the measure.Window and returns the recorders. waiting has the sending instants of the
// requests still in flight.
func (w *window) close(batch int, waiting []time.Duration) measure.Window {
	for _, sent := range waiting {
		w.inFlight += max(0, w.to-max(sent, w.from))
	}
	w.at(w.to - 1) // makes slices in which nothing ended
	m := w.counts
	m.Start, m.Duration = w.from, w.to-w.from
	m.Inferences = m.Requests * batch
	m.InFlight = w.inFlight.Seconds() / m.Duration.Seconds()
	if w.responses != m.Requests {
		m.Responses = w.responses
	}
	m.SendDelay = w.delay.Histogram()
	w.store.put(w.delay)
	m.Sub = w.subWindows()
	return m
}

// closeExactly is close for a window that begins with its first request.
func (w *window) closeExactly(batch int) measure.Window {
	m := w.close(batch, w.aborted)
	idle := min(max(0, w.firstSent-w.from), m.Sub[0].Duration/2) // the load took a moment to start
	m.Start, m.Duration = m.Start+idle, m.Duration-idle
	m.InFlight *= float64(m.Duration+idle) / float64(m.Duration)
	m.Sub[0].Duration -= idle
	return m
}

// subWindows makes the sub-windows from the slices. The last slice lasts until the end of the
// window. A short one is joined to its predecessor.
func (w *window) subWindows() []measure.SubWindow {
	last := len(w.slices) - 1
	if rest := w.to - w.from - time.Duration(last)*w.width; last > 0 && rest < w.width/2 {
		w.slices[last-1].absorb(w.slices[last], w.store)
		last--
	}
	sub := w.settled()[:last+1]
	sub[last].Duration = w.to - w.from - time.Duration(last)*w.width
	return sub
}

// settled makes sub-windows of all slices as they are.
func (w *window) settled() []measure.SubWindow {
	sub := make([]measure.SubWindow, len(w.slices))
	for i, s := range w.slices {
		s.latency.settle(w.store)
		s.service.settle(w.store)
		sub[i] = measure.SubWindow{Requests: s.latency.joined.Count(), Duration: w.width,
			Latency: s.latency.joined, Service: s.service.joined, Sum: s.latency.sum}
	}
	return sub
}
