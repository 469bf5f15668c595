package runner

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/measure/arrivals"
)

// duo launches engines with two models, each with the service times of a lab.
type duo struct {
	encoder, ranker *lab
	loads           []string // models and configurations, in order
}

func (d *duo) Launch(ctx context.Context, s Server) (Engine, error) {
	if _, err := d.ranker.Launch(ctx, s); err != nil {
		return nil, err
	}
	return d.encoder.Launch(ctx, s)
}

func (d *duo) dial(a api.Announcement) (api.Client, error) {
	return duoClient{client{e: d.encoder.at(a)}, client{e: d.ranker.at(a)}, d}, nil
}

func (d *duo) wire(a api.Announcement, r Requests, size int64) (Connections, error) {
	if r[0].Model == "ranker" {
		return d.ranker.wire(a, r, size)
	}
	return d.encoder.wire(a, r, size)
}

// duoClient controls an engine with two models.
type duoClient struct {
	client
	ranker client
	d      *duo
}

func (c duoClient) LoadModel(ctx context.Context, model, config string, files ...api.File) error {
	c.d.loads = append(c.d.loads, model+" "+config)
	if model == "ranker" {
		return c.ranker.LoadModel(ctx, model, config, files...)
	}
	return c.client.LoadModel(ctx, model, config, files...)
}

func (c duoClient) Statistics(ctx context.Context, model string) (api.Statistics, error) {
	encoder, err := c.client.Statistics(ctx, model)
	ranker, other := c.ranker.Statistics(ctx, model)
	if err = errors.Join(err, other); err != nil {
		return api.Statistics{}, err
	}
	encoder.ModelStats[0].Name, ranker.ModelStats[0].Name = "encoder", "ranker"
	return api.Statistics{ModelStats: append(ranker.ModelStats, encoder.ModelStats...)}, nil
}

// newDuo makes engines with two models that work, and a runner for them.
func newDuo(t *testing.T) (*duo, *Runner) {
	t.Helper()
	d := &duo{encoder: &lab{service: 20 * ms, loadTakes: 100 * ms}, ranker: &lab{service: 25 * ms, loadTakes: 100 * ms}}
	r := New(Options{Launcher: d, Dial: d.dial, Wire: d.wire, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Epoch: time.Now()})
	t.Cleanup(func() { r.Close(context.Background()) })
	return d, r
}

// both returns a job with four clients on the encoder, and one on the ranker. Their loops are closed,
// since an open one waits for the system's clock.
func both() Job {
	part := func(model string, l measure.Load) Job {
		return Job{Model: model, Config: "1", Instances: 1, Requests: Requests{{Model: model}}, Load: l}
	}
	return Job{Pool: "a", Windows: 2, Window: time.Second, Load: measure.Load{Scale: 1.5},
		Parts: []Job{part("encoder", measure.Load{Concurrency: 4, BatchSize: 1}), part("ranker", measure.Load{Concurrency: 1, BatchSize: 1})}}
}

// The windows of two models have the same edges, and the figures of their own model.
func TestModelsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, r := newDuo(t)
		m, err := r.Measure(t.Context(), both())
		if err != nil || m.Failure != nil || len(m.Windows) != 4 || m.Launch != 1 || m.Scale != 1.5 {
			t.Fatalf("%+v, %v", m, err)
		}
		for i, w := range m.Windows {
			// 4 clients × 50 requests/s, and one client × 40 requests/s.
			name, requests := "encoder", 200
			if i%2 == 1 {
				name, requests = "ranker", 40
			}
			same := m.Windows[i-i%2]
			if w.Model != name || w.Start != same.Start || w.Duration != same.Duration || w.Requests < requests-4 || w.Requests > requests+4 ||
				w.Server.Requests < requests-4 || w.Server.Requests > requests+4 {
				t.Errorf("window %d of %q: [%v, +%v], %d requests, the server says %d", i, w.Model, w.Start, w.Duration, w.Requests, w.Server.Requests)
			}
		}
		// a change of one model loads that one alone
		changed := both()
		changed.Parts[1].Config = "2"
		if m, err = r.Measure(t.Context(), changed); err != nil || m.Failure != nil || m.Launch != 1 {
			t.Fatalf("%+v, %v", m, err)
		}
		if want := []string{"encoder 1", "ranker 1", "ranker 2"}; !slices.Equal(d.loads, want) {
			t.Errorf("loaded %v, want %v", d.loads, want)
		}
	})
}

// In turns, each window of one model has one of the other, and the load keeps its scale.
func TestModelsTogetherInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := newDuo(t)
		other := both()
		other.Pool, other.Load.Scale = "b", 2
		measured, err := r.Block(t.Context(), []Job{both(), other}, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range measured {
			if m.Failure != nil || len(m.Windows) != 6 || m.Scale != 1.5+0.5*float64(i) || !slices.Equal(m.Models(), []string{"encoder", "ranker"}) {
				t.Errorf("seat %d: %+v", i, m)
			}
		}
	})
}

// One model's Enough ends the windows of both.
func TestModelsTogetherAreCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := newDuo(t)
		j := both()
		j.Parts[1].Enough = func(soFar measure.Window) bool { return soFar.Requests < 30 }
		if m, err := r.Measure(t.Context(), j); err != nil || !m.Cut || len(m.Windows) != 2 || m.Windows[0].Duration != 400*ms {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// The failure of a model in company names it. The windows of the other do not count.
func TestModelThatFailsInCompany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(l *lab)
		stage measure.Stage
		text  string
	}{
		"refuses requests": {func(l *lab) { l.send = func(*engine, int) error { return errors.New("no memory") } }, measure.StageErrors, "no memory"},
		"does not load":    {func(l *lab) { l.loadError = errors.New("no such operator") }, measure.StageLoad, "no such operator"},
		"hangs":            {func(l *lab) { l.service = time.Hour }, measure.StageHang, "no request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, r := newDuo(t)
				c.spoil(d.ranker)
				m, err := r.Measure(t.Context(), both())
				if err != nil || m.Failure == nil || len(m.Windows) != 0 {
					t.Fatalf("%+v, %v", m, err)
				}
				if f := m.Failure; f.Model != "ranker" || f.Stage != c.stage || !strings.HasPrefix(f.Reason, `model "ranker": `) || !strings.Contains(f.Reason, c.text) {
					t.Errorf("%+v", *f)
				}
			})
		})
	}
}

func TestModelsThatCannotBeTogether(t *testing.T) {
	t.Parallel()
	curve := func(seconds time.Duration) arrivals.Pattern {
		return arrivals.Pattern{Kind: arrivals.CurveKind, Curve: []arrivals.Point{{Factor: 1}, {At: seconds * time.Second, Factor: 2}}}
	}
	for want, change := range map[string]func(j *Job){
		`two models under the name "encoder"`:            func(j *Job) { j.Parts[1].Model = "encoder" },
		`model "ranker": cannot make a load without`:     func(j *Job) { j.Parts[1].Requests = nil },
		`model "ranker": cannot measure at`:              func(j *Job) { j.Parts[1].Load = measure.Load{} },
		"cannot measure a service job of several models": func(j *Job) { j.ServiceCurve = []Batches{{Size: 1, Requests: j.Parts[0].Requests}} },
		"must be a multiple of each": func(j *Job) {
			j.Parts[0].Load, j.Parts[1].Load = measure.Load{RequestRate: 5, BatchSize: 1}, measure.Load{RequestRate: 40, BatchSize: 1}
			j.Parts[0].Arrivals, j.Parts[1].Arrivals = curve(7), curve(10)
		},
	} {
		_, r := newDuo(t)
		j := both()
		change(&j)
		if _, err := r.Measure(t.Context(), j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
