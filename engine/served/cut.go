package served

import (
	"slices"

	"tuner/engine/ragged"
	"tuner/engine/request"
	"tuner/engine/scheduler"
)

// cut divides an output of a batch among its requests.
type cut struct {
	slicer request.Slicer
	parts  []request.Tensor // of an output that is scattered by the shapes of an input, in place of slicer
}

// newCut begins with the first request of a batch.
func newCut(t *request.Tensor, items []scheduler.Item[*job], rows int) (cut, error) {
	m := items[0].Value.model
	if m.Ragged != nil && m.Ragged.Scatters(t.Name) {
		parts, err := m.Ragged.Parts(t, len(items), shapesOf(items))
		return cut{parts: parts}, err
	}
	slicer, err := request.NewSlicer(t, rows, m.Signature.MaxBatch > 0)
	return cut{slicer: slicer}, err
}

// next returns the part of request k, which is the next one and has some rows. Its shape is still
// that of the whole output, unless the output is scattered.
func (c *cut) next(whole *request.Tensor, k, rows int) (request.Tensor, error) {
	if c.parts != nil {
		return c.parts[k], nil
	}
	t := *whole
	var err error
	t.Data, err = c.slicer.Next(rows)
	return t, err
}

// shapesOf returns the shapes of inputs in the requests of a batch.
func shapesOf(items []scheduler.Item[*job]) ragged.Shapes {
	return func(k int, input string) []int64 {
		return shapeOf(&items[k].Value.prepared, input)
	}
}

// shapeOf returns the shape of an input of a request, which is there: it is not optional.
func shapeOf(p *request.Prepared, input string) []int64 {
	return p.Inputs[slices.IndexFunc(p.Inputs, func(in request.Tensor) bool { return in.Name == input })].Shape
}
