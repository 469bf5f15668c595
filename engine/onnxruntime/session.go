package onnxruntime

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/ort"
)

// session is one instance of a model. Several may run one session of ONNX Runtime, whose Run may be
// called concurrently. With one intra-op thread it computes on the caller's thread. With more, all
// callers share the session's threads.
type session struct {
	session    *ort.Session
	plan       *ort.Plan     // for the outputs and the constants of the last batch; nil until the first
	outputs    []string      // of the plan
	replaced   []string      // the constants that the plan's runs replace
	users      *atomic.Int64 // instances that have the session open; nil: no other instance may use it
	io         modelconfig.ModelIO
	types      map[string]ort.ElementType // of the inputs and the constants that a run may replace
	kinds      map[string]engine.DataType // of the outputs
	processors *processors
	lane       *ort.Lane // for long runs; nil until the first
	isLong     bool      // the last run was long
	closed     atomic.Bool
}

// longRun is the length of a run from which on a lane pays. Go's monitor interrupts a run that it has
// noticed some 50 times in a few milliseconds. A lane needs two switches of threads instead, 60 to 220 µs
// here (lab/docs/engine.md). MiniLM, 7 ms for one row, gains 1 to 13 % by lanes, and a network of 0.9 ms
// loses 3 to 16 %. Between these nothing was measured.
const longRun = time.Millisecond

func newSession(s *ort.Session, p *processors, isShared bool) (*session, error) {
	inputs, errIn := tensors(s.Inputs())
	outputs, errOut := tensors(s.Outputs())
	constants, errConst := tensors(s.Constants())
	if err := errors.Join(errIn, errOut, errConst); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	out := &session{session: s, io: modelconfig.ModelIO{Inputs: inputs, Outputs: outputs, Constants: constants}, processors: p,
		kinds: map[string]engine.DataType{}, types: map[string]ort.ElementType{}}
	for _, info := range slices.Concat(s.Inputs(), s.Constants()) {
		out.types[info.Name] = info.Type
	}
	for _, t := range outputs {
		out.kinds[t.Name] = t.DataType
	}
	if isShared {
		out.users = new(atomic.Int64)
		out.users.Add(1)
	}
	return out, nil
}

// Share returns a further instance on the same session; nil if it is not shared. The caller must not
// have closed this one.
func (s *session) Share() engine.Session {
	if s.users == nil {
		return nil
	}
	s.users.Add(1)
	return &session{session: s.session, users: s.users, io: s.io, types: s.types, kinds: s.kinds, processors: s.processors}
}

// IO returns the model's inputs and outputs as ONNX Runtime has inferred them.
func (s *session) IO() modelconfig.ModelIO { return s.io }

// Close frees the instance's buffers, and the session with its last instance.
func (s *session) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.plan != nil {
		s.plan.Close()
	}
	if s.lane != nil {
		s.lane.Close()
	}
	if s.users != nil && s.users.Add(-1) > 0 {
		return nil
	}
	return s.session.Close()
}

// Execute copies the batch once, into memory that ONNX Runtime reads in place, and runs it. The
// outputs stay in ONNX Runtime's memory until they are freed. A run is never abandoned, since it
// uses the requests' memory.
func (s *session) Execute(b *engine.Batch) (engine.Result, error) {
	if err := s.prepare(b.Outputs, s.constantsIn(b)); err != nil {
		return engine.Result{}, backendError(err)
	}
	for i := range len(s.io.Inputs) + len(s.replaced) {
		name := s.inputName(i)
		in := slices.IndexFunc(b.Inputs, func(in engine.BatchInput) bool { return in.Name == name })
		if in < 0 {
			s.plan.Discard()
			return engine.Result{}, fault.Errorf(fault.Internal, "the batch lacks input '%s'", name)
		}
		if err := s.gather(i, &b.Inputs[in]); err != nil {
			s.plan.Discard()
			return engine.Result{}, backendError(err)
		}
	}
	result := engine.Result{Gathered: time.Now()}
	values, err := s.run()
	if err != nil {
		return engine.Result{}, backendError(err)
	}
	result.Computed = time.Now()
	s.isLong = result.Computed.Sub(result.Gathered) >= longRun
	result.Free = func() {
		for i := range values {
			values[i].Close()
		}
	}
	if result.Outputs, err = s.wireTensors(values); err != nil {
		result.Free()
		return engine.Result{}, backendError(err)
	}
	return result, nil
}

// run makes the plan's run, on the lane if the last one was long. Where no thread can be made for a lane,
// the caller's makes all runs.
func (s *session) run() ([]ort.Tensor, error) {
	if s.isLong && s.lane == nil {
		s.lane, _ = ort.NewLane()
	}
	if s.isLong && s.lane != nil {
		return s.plan.RunOn(s.lane)
	}
	s.processors.enter()
	defer s.processors.leave()
	return s.plan.Run()
}

// constantsIn lists the constants that a batch replaces.
func (s *session) constantsIn(b *engine.Batch) []string {
	if len(b.Inputs) == len(s.io.Inputs) {
		return nil // since no input may be missing
	}
	var names []string
	for _, c := range s.io.Constants {
		if slices.ContainsFunc(b.Inputs, func(in engine.BatchInput) bool { return in.Name == c.Name }) {
			names = append(names, c.Name)
		}
	}
	return names
}

// inputName returns the name of the plan's input i.
func (s *session) inputName(i int) string {
	if i < len(s.io.Inputs) {
		return s.io.Inputs[i].Name
	}
	return s.replaced[i-len(s.io.Inputs)]
}

// prepare makes the plan for the given outputs and constants, unless the current plan has them.
func (s *session) prepare(outputs, constants []string) error {
	if s.plan != nil && slices.Equal(s.outputs, outputs) && slices.Equal(s.replaced, constants) {
		return nil
	}
	plan, err := s.session.NewPlan(outputs, constants...)
	if err != nil {
		return err
	}
	if s.plan != nil {
		s.plan.Close()
	}
	s.plan, s.outputs, s.replaced = plan, slices.Clone(outputs), constants
	return nil
}

// gather passes the data of input i to the plan.
func (s *session) gather(i int, in *engine.BatchInput) error {
	if s.types[in.Name] != ort.String {
		return s.plan.Gather(i, in.Shape, in.Parts)
	}
	return s.plan.GatherStrings(i, in.Shape, in.Parts)
}

// wireTensors returns the outputs in wire form. Only strings are copied.
func (s *session) wireTensors(values []ort.Tensor) ([]engine.Tensor, error) {
	out := make([]engine.Tensor, len(values))
	for i := range values {
		v := &values[i]
		out[i] = engine.Tensor{Name: s.outputs[i], DataType: s.kinds[s.outputs[i]], Shape: v.Shape(), Data: v.Bytes()}
		if v.Type() == ort.String {
			var err error
			if out[i].Data, err = v.Strings(); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
