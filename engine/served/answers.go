package served

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tuner/engine/cache"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/statistics"
)

// answers are the cached outputs of a model. They are never changed, so that responses refer to
// them without a copy.
type answers struct {
	*cache.Share[[]request.Tensor]
	log      *slog.Logger
	tooLarge sync.Once // logs the first answer that is
}

// Cache has the answers of all models.
type Cache = cache.Cache[[]request.Tensor]

// OpenAnswers gives the model a place for its cached answers, if its configuration asks for one. c is
// nil for a server without a cache.
func (m *Model) OpenAnswers(c *Cache, log *slog.Logger) {
	if c != nil && m.Config.GetResponseCache().GetEnable() {
		m.answers = &answers{Share: c.Open(), log: log}
	}
}

// CloseAnswers gives up the place for cached answers. The model is no longer served.
func (m *Model) CloseAnswers() {
	if m.answers != nil {
		m.answers.Close()
	}
}

// lookUp is the search for a request's answer.
type lookUp struct {
	key  cache.Key
	took time.Duration
}

// find looks for the answer of a prepared request. It returns true if there is one, or if there is
// no memory for it: then the job has its outcome. It counts as Triton does: the request has success
// and queue durations, and no inference.
func (p *Pending) find() bool {
	j := &p.job
	m := j.model
	p.lookUp = &lookUp{key: m.key(&j.prepared)}
	begin := time.Now()
	outputs, found := m.answers.Get(p.lookUp.key)
	end := time.Now()
	p.lookUp.took = end.Sub(begin)
	if !found {
		return false
	}
	j.request.Trace.Queue(begin)
	j.request.Trace.Finish(end)
	if account := j.request.Memory; account.Take(request.DataBytes(outputs)) {
		j.response = &Response{Model: m.Name, Version: m.Version, ID: j.request.ID, Outputs: outputs, account: account}
		m.Stats.Found(end.Sub(j.started), begin.Sub(j.started), p.lookUp.took)
	} else {
		j.err = fault.Full(account)
		m.Stats.Failed(statistics.FailureOther, end.Sub(j.started))
	}
	return true
}

// key makes the key of a request from all that its answer depends on. The model needs no place in
// it, since each has its own share of the cache.
func (m *Model) key(p *request.Prepared) cache.Key {
	h := cache.NewHash()
	for i := range p.Inputs {
		in := &p.Inputs[i]
		h.Text(in.Name) // an optional input may be missing
		h.Number(int64(in.DataType))
		h.Numbers(in.Shape)
		h.Bytes(in.Data)
	}
	for i := range m.Signature.Outputs {
		wanted := int64(0)
		if p.Outputs == nil || p.Outputs[i] {
			wanted = 1
		}
		h.Number(wanted)
	}
	return h.Key()
}

// keep stores the answer of a request that was executed. As in Triton, a request that finds the
// answer of another one by now counts neither as hit nor as miss. Triton logs each answer that is too large.
func (p *Pending) keep() {
	j := &p.job
	begin := time.Now()
	size := int64(0)
	for i := range j.response.Outputs {
		size += tensorBytes(&j.response.Outputs[i])
	}
	outcome, evicted := j.model.answers.Put(p.lookUp.key, size, func() []request.Tensor { return copied(j.response.Outputs) })
	j.request.Memory.Discard(int(evicted))
	if outcome == cache.TooLarge {
		j.model.answers.tooLarge.Do(func() {
			j.model.answers.log.Warn(fmt.Sprintf("Failed to insert key [%x] into response cache: Requested byte_size: %d is greater than total cache size: %d",
				p.lookUp.key, size+cache.Overhead, j.model.answers.Max()), "model", j.model.Name, "version", j.model.Version)
		})
	}
	if outcome != cache.Present {
		j.model.Stats.Missed(p.lookUp.took + time.Since(begin))
	}
}

// tensorBytes returns the memory of a copy of an output. The name is the signature's.
func tensorBytes(t *request.Tensor) int64 {
	const tensor, dimension = 80, 8
	return tensor + dimension*int64(len(t.Shape)) + int64(len(t.Data))
}

func copied(outputs []request.Tensor) []request.Tensor {
	out := slices.Clone(outputs)
	for i := range out {
		out[i].Shape, out[i].Data = slices.Clone(out[i].Shape), slices.Clone(out[i].Data)
	}
	return out
}
