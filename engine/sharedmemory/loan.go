package sharedmemory

import (
	"tuner/engine/budget"
	"tuner/engine/buffers"
	"tuner/engine/fault"
	"tuner/engine/request"
)

// Loan has the parts of regions that a request uses. Until it is returned, these regions stay
// registered. The zero value is ready, and it may be used again after Return. It is not for concurrent
// use.
type Loan struct {
	regions *Regions
	account *budget.Account
	charged int       // to the account, for the copies
	copies  []*[]byte // of inputs
	spans   []span    // of inputs
	outputs []output
}

// output is the place of an output.
type output struct {
	name string
	span span
}

// Input returns a copy of a part of a region, which is valid until Return. Its memory is charged to the
// account.
func (l *Loan) Input(r *Regions, account *budget.Account, name []byte, offset, size uint64) ([]byte, error) {
	from, err := r.open(name, offset, size)
	if err != nil {
		return nil, err
	}
	l.spans = append(l.spans, from)
	n := r.copies.Capacity(int(size)) // at most maxMapped
	if !account.Take(n) {
		return nil, fault.Full(account)
	}
	l.regions, l.account, l.charged = r, account, l.charged+n
	data := r.copies.Get(int(size))
	l.copies = append(l.copies, data)
	return *data, from.read(*data)
}

// Output notes the place of an output.
func (l *Loan) Output(r *Regions, tensor string, name []byte, offset, size uint64) error {
	to, err := r.open(name, offset, size)
	if err == nil {
		l.outputs = append(l.outputs, output{tensor, to})
	}
	return err
}

// Takes reports whether an output has a place in a region, so that the answer does not have its data.
func (l *Loan) Takes(tensor string) bool { return l.find(tensor) != nil }

// HasOutputs reports whether any output has one.
func (l *Loan) HasOutputs() bool { return len(l.outputs) > 0 }

func (l *Loan) find(tensor string) *output {
	for i := range l.outputs {
		if l.outputs[i].name == tensor {
			return &l.outputs[i]
		}
	}
	return nil
}

// Deliver copies the outputs of a request to the places that they have, whose sizes are its rooms.
func (l *Loan) Deliver(r *request.Request, outputs []request.Tensor) error {
	if err := r.CheckRooms(outputs); err != nil { // answers of a cache or an ensemble were not checked
		return err
	}
	for i := range outputs {
		to := l.find(outputs[i].Name)
		if to == nil {
			continue
		}
		if err := to.span.write(outputs[i].Data); err != nil {
			return err
		}
	}
	return nil
}

// Return gives back everything. The copies must not be used any more.
func (l *Loan) Return() {
	for _, from := range l.spans {
		from.close()
	}
	for i := range l.outputs {
		l.outputs[i].span.close()
	}
	garbage := 0
	for _, data := range l.copies {
		if cap(*data) > buffers.Largest {
			garbage += cap(*data)
		}
		l.regions.copies.Put(data)
	}
	account := l.account
	account.Give(l.charged)
	clear(l.spans)
	clear(l.outputs)
	clear(l.copies)
	*l = Loan{spans: l.spans[:0], outputs: l.outputs[:0], copies: l.copies[:0]}
	if garbage > 0 {
		account.Discard(garbage)
	}
}
