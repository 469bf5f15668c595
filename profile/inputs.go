package profile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"tuner/engine/api"
	"tuner/model/dataset"
	"tuner/model/mix"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/runner/payload"
	"tuner/search"
	"tuner/spec"
)

// mostDrawn bounds the number of requests that are drawn from the user's rows, or of a mix.
const mostDrawn = 1024

// Requests makes the requests of a campaign, with the profile's client batch. Their values are rows
// that the user gave, or random ones that the model accepts. Shapes of random values come from the
// profile, or from the configuration if it fixes them. Of a mix, each request is of one kind, and
// the kinds come in random order. An input with an open shape is an InputError.
func Requests(p spec.Profile, s Subject) (runner.Requests, error) {
	return Padded(p, s, search.NoPadding)
}

// Padded makes the requests of a campaign under a value of the knob padding.
func Padded(p spec.Profile, s Subject, padding search.Value) (runner.Requests, error) {
	m, err := newMaker(p, s)
	if err != nil {
		return nil, err
	}
	if err := m.pad(p, padding); err != nil {
		return nil, err
	}
	n := payload.Variety
	if s.Rows != nil {
		n = max(payload.Variety, min(s.Rows.Rows, mostDrawn))
	}
	if s.Mix != nil {
		n = mostDrawn
	}
	if s.Rows != nil || s.Mix != nil {
		n = max(1, min(n, payload.MostMemory/max(1, m.rowBytes()*p.Load.BatchSize)))
	}
	return m.requests(n, p.Load.BatchSize), nil
}

// batches makes the requests of a batch size and a kind for service trials, with about
// payload.Variety rows in total.
func batches(p spec.Profile, s Subject, size, kind int) (runner.Batches, error) {
	m, err := newMaker(p, s)
	if err != nil {
		return runner.Batches{}, err
	}
	requests := make(runner.Requests, max(1, payload.Variety/size))
	for i := range requests {
		requests[i] = m.request(kind, size, m.seed+uint64(i))
	}
	return runner.Batches{Size: size, Requests: requests}, nil
}

// Rehearsed is a request that shows whether a model can be served.
type Rehearsed struct {
	Request api.InferRequest
	Rows    int    // in the request
	What    string // for people: "a request of ids [128]"
}

// Rehearsal returns a request as the campaign sends it, and one of two rows if the default
// configuration batches. Of a mix it returns the smallest and the largest request.
func Rehearsal(p spec.Profile, s Subject) ([]Rehearsed, error) {
	m, err := newMaker(p, s)
	if err != nil {
		return nil, err
	}
	var list []Rehearsed
	add := func(kind, rows int) {
		r := m.request(kind, rows, p.Search.Seed)
		var shapes []string
		for _, t := range r.Inputs {
			shapes = append(shapes, fmt.Sprintf("%s %v", t.Name, t.Shape))
		}
		list = append(list, Rehearsed{r, rows, "a request of " + strings.Join(shapes, ", ")})
	}
	add(0, p.Load.BatchSize)
	if last := len(s.Mix) - 1; last > 0 {
		add(last, p.Load.BatchSize)
	}
	if s.Config.GetMaxBatchSize() > 1 && p.Load.BatchSize == 1 {
		add(0, 2)
	}
	return list, nil
}

// largest makes the request of a footprint under a padding: the largest one of the size.
func largest(p spec.Profile, s Subject, size int, padding search.Value) (runner.Batches, error) {
	m, err := newMaker(p, s)
	if err == nil {
		err = m.pad(p, padding)
	}
	if err != nil {
		return runner.Batches{}, err
	}
	return runner.Batches{Size: size, Requests: runner.Requests{m.request(len(s.Mix)-1, size, p.Search.Seed)}}, nil
}

// maker makes requests of a subject. Random values differ between requests; rows are drawn with
// replacement.
type maker struct {
	subject Subject
	derived [][]inputs.Input // by kind; a single one without a mix
	parts   []dataset.Dataset
	padded  []map[string][]int64 // shapes of each kind after padding; nil: as they are
	values  map[string]int64     // with which inputs are padded
	seed    uint64
	random  *rand.Rand // of the rows
}

func newMaker(p spec.Profile, s Subject) (*maker, error) {
	if len(s.Config.GetBatchInput()) > 0 { // a stage of a pipeline may have it: its requests come from the pipeline
		return nil, &InputError{fmt.Errorf("model %q uses batch_input, and a campaign cannot make requests whose inputs the server computes of a batch; measure it with 'tuner perf' on a running server", s.Name)}
	}
	m := &maker{subject: s, seed: p.Search.Seed, random: rand.New(rand.NewPCG(p.Search.Seed, 1))}
	shapes := []map[string][]int64{s.InputOptions(p).Shape}
	if s.Mix != nil {
		shapes = nil
		for _, k := range s.Mix {
			shapes = append(shapes, k.Shapes)
		}
	}
	for _, shape := range shapes {
		derived, err := inputs.Derive(s.Model, inputs.Options{Shape: shape})
		if err != nil {
			return nil, &InputError{err}
		}
		for i, in := range derived {
			if v, has := s.Values[in.Name]; has && v.Type == in.Type {
				derived[i].Distribution, derived[i].Range, derived[i].Reason = v.Distribution, v.Range, v.Reason
			}
		}
		m.derived = append(m.derived, derived)
		if s.Rows != nil {
			m.parts = append(m.parts, s.Rows.part(shape))
		}
	}
	return m, nil
}

// pad makes the requests padded ones.
func (m *maker) pad(p spec.Profile, padding search.Value) error {
	if padding == search.NoPadding || m.subject.Mix == nil {
		return nil
	}
	how, err := mix.ParsePadding(string(padding))
	if err == nil {
		m.padded, err = how.Shapes(m.subject.Mix)
	}
	m.values = p.Inputs.Pad
	if err != nil {
		return &InputError{err}
	}
	return nil
}

// rowBytes returns the mean size of a row, in bytes.
func (m *maker) rowBytes() int {
	if m.subject.Rows != nil {
		return m.subject.Rows.Bytes() / m.subject.Rows.Rows
	}
	total := 0.0
	for i, list := range m.derived {
		for _, in := range list {
			n, _ := onnx.Elements(in.Dims) // Derive limits the size
			total += m.subject.Mix[i].Share * float64(n*max(in.Type.Size(), 1))
		}
	}
	return int(total)
}

// requests makes n requests, or for a mix a number near it (mix.Cycle).
func (m *maker) requests(n, batch int) runner.Requests {
	if m.subject.Mix == nil {
		requests := make(runner.Requests, n)
		for i := range requests {
			requests[i] = m.request(0, batch, m.seed+uint64(i))
		}
		return requests
	}
	kinds := m.subject.Mix.Deal(mix.Cycle(n), m.seed)
	requests := make(runner.Requests, len(kinds))
	for i, kind := range kinds {
		requests[i] = m.request(kind, batch, m.seed+uint64(i))
	}
	return requests
}

// request makes a request of a kind; any number below 1 without a mix.
func (m *maker) request(kind, batch int, seed uint64) api.InferRequest {
	kind = max(kind, 0)
	var values map[string]inputs.Tensor
	if m.parts != nil {
		values = m.parts[kind].Draw(batch, m.random)
	} else {
		values = inputs.Generate(m.derived[kind], batch, seed)
	}
	if m.padded != nil {
		for name, dims := range m.padded[kind] {
			t := values[name]
			values[name] = payload.Pad(t, slices.Concat(t.Shape[:len(t.Shape)-len(dims)], dims), m.values[name])
		}
	}
	return payload.Fill(m.subject.Name, m.subject.Config, m.derived[kind], values)
}

// Rows are the user's rows from which requests are drawn.
type Rows struct {
	dataset.Dataset
	Record journal.RequestRows // what a journal has of them
}

// ReadRows reads the rows of a profile's requests: nil if the profile names none. The error is an
// InputError.
func ReadRows(p spec.Profile, m *onnx.Model) (*Rows, error) {
	if p.Inputs.Data == "" {
		return nil, nil
	}
	rows, err := dataset.Read(p.Inputs.Data, m)
	if err != nil {
		return nil, &InputError{fmt.Errorf("%s: load.inputs.data: %w", p.Path, err)}
	}
	return newRows(rows), nil
}

func newRows(d dataset.Dataset) *Rows {
	return &Rows{d, journal.RequestRows{Name: d.Name, SHA256: d.Digest(), Rows: d.Rows, Shapes: d.Shapes()}}
}

// part returns the rows of a shape.
func (r *Rows) part(shape map[string][]int64) dataset.Dataset {
	for _, part := range r.Parts {
		if maps.EqualFunc(part.Shapes(), shape, slices.Equal) {
			return part
		}
	}
	return r.Dataset
}

// record returns what a journal has of the rows; nil without rows.
func (r *Rows) record() *journal.RequestRows {
	if r == nil {
		return nil
	}
	return &r.Record
}

// InputOptions returns the shapes of a subject's inputs in a request.
func (s Subject) InputOptions(p spec.Profile) inputs.Options {
	p.Inputs.Shape = s.shapes(p)
	return inputs.Options{Shape: campaign.RequestShapes(p, s.Config)}
}

// shapes returns the shapes of inputs that the user's rows or else the profile set, without the
// batch dimension. Of a mix it returns those of the most requests.
func (s Subject) shapes(p spec.Profile) map[string][]int64 {
	if s.Mix != nil {
		return s.Mix[s.Mix.Usual()].Shapes
	}
	if s.Rows == nil {
		return p.Inputs.Shape
	}
	return s.Rows.Record.Shapes
}

// DataDigest identifies the user's rows: their sha256, in hexadecimal; "" without rows.
func (s Subject) DataDigest() string {
	if s.Rows == nil {
		return ""
	}
	return s.Rows.Record.SHA256
}

// MixDigest identifies the kinds of the requests: their sha256, in hexadecimal; "" for one shape.
func (s Subject) MixDigest() string {
	if s.Mix == nil {
		return ""
	}
	return s.Mix.Digest()
}
