package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"tuner/engine/api"
)

// A check accepts the right answer, and notices each way of being wrong.
func TestChecks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	s := &site{known: []sentence{{make([]int64, sequence), make([]float32, dimensions)}}}
	for _, model := range []string{simple, text, minilm} {
		q := s.ask(model, r)
		right := answerOf(q)
		if err := q.check(right); err != nil {
			t.Errorf("%s: the right answer: %v", model, err)
		}
		for name, spoil := range map[string]func(*api.Tensor){
			"data":     func(t *api.Tensor) { t.Data = append([]byte(nil), t.Data...); t.Data[3] ^= 0x7f },
			"datatype": func(t *api.Tensor) { t.Datatype = "UINT8" },
			"shape":    func(t *api.Tensor) { t.Shape = []int64{99} },
		} {
			wrong := answerOf(q)
			spoil(&wrong[0])
			if q.check(wrong) == nil {
				t.Errorf("%s: wrong %s was accepted", model, name)
			}
		}
		if q.check(right[1:]) == nil {
			t.Errorf("%s: a missing output was accepted", model)
		}
	}
}

// answerOf computes what the model answers, by other means than the checks.
func answerOf(q question) []api.Tensor {
	in := q.request.Inputs
	switch q.request.Model {
	case text:
		out := in[0]
		out.Name = "OUTPUT0"
		return []api.Tensor{out}
	case minilm:
		return []api.Tensor{{Name: "embedding", Datatype: "FP32", Shape: []int64{in[0].Shape[0], dimensions}, Data: make([]byte, 4*dimensions*in[0].Shape[0])}}
	}
	a, b := toJSON(in[0]).([]int32), toJSON(in[1]).([]int32)
	sum, difference := make([]int32, len(a)), make([]int32, len(a))
	for i := range a {
		sum[i], difference[i] = a[i]+b[i], a[i]-b[i]
	}
	tensor := func(name string, values []int32) api.Tensor {
		text, _ := json.Marshal(values)    // numbers
		data, _ := fromJSON("INT32", text) // just written
		return api.Tensor{Name: name, Datatype: "INT32", Shape: in[0].Shape, Data: data}
	}
	return []api.Tensor{tensor("OUTPUT0", sum), tensor("OUTPUT1", difference)}
}

// Only the volatile model may refuse, only for its absence, and only while it may be absent.
func TestOnceCounts(t *testing.T) {
	t.Parallel()
	gone := &api.StatusError{Status: 404, Text: "Request for unknown model: 'volatile' has no available versions"}
	for name, tt := range map[string]struct {
		model  string
		absent bool
		err    error
		want   counts
	}{
		"right":            {simple, false, nil, counts{asked: 1, checked: 1}},
		"absent":           {volatile, true, gone, counts{asked: 1, absent: 1}},
		"present":          {volatile, false, gone, counts{asked: 1, lost: 1}},
		"another model":    {simple, true, gone, counts{asked: 1, lost: 1}},
		"another error":    {volatile, true, &api.StatusError{Status: 500, Text: "broken"}, counts{asked: 1, lost: 1}},
		"no answer at all": {volatile, true, io.EOF, counts{asked: 1, lost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &site{tally: &tally{}}
			if tt.absent {
				s.phase.next()
			}
			q := askSimple(tt.model, rand.New(rand.NewPCG(1, 1)))
			s.once(t.Context(), tt.model, q, func(context.Context, question) ([]api.Tensor, error) { return answerOf(q), tt.err })
			if got := s.tally.now(); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if err := s.tally.verdict(io.Discard); (err != nil) != (tt.want.lost > 0) {
				t.Errorf("verdict %v", err)
			}
		})
	}
}

// What grows steadily is reported; what swings, or grew at the start alone, is not.
func TestGrowth(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value func(i int) float64
		grows bool
	}{
		"steady":        {func(i int) float64 { return float64(i) }, true},
		"flat":          {func(i int) float64 { return 20 + 10*float64(i%2) }, false},
		"at the start":  {func(i int) float64 { return float64(min(i, 30)) }, false},
		"within bounds": {func(i int) float64 { return 1000 + float64(i)/2 }, false}, // 10 % of 1000 are allowed
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatch(1, "", &tally{}, io.Discard)
			for i := range 90 {
				w.series["descriptors"] = append(w.series["descriptors"], tt.value(i))
			}
			if err := w.verdict(); (err != nil) != tt.grows || tt.grows && !strings.Contains(err.Error(), "descriptors grew") {
				t.Errorf("verdict %v, want growth %v", err, tt.grows)
			}
		})
	}
}

func TestRepositoryNeedsModels(t *testing.T) {
	t.Parallel()
	if err := writeRepository(t.TempDir(), "nowhere"); err == nil {
		t.Error("no models, but no error")
	}
	if err := run(t.Context(), []string{"-models", "nowhere"}, io.Discard, io.Discard); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}
