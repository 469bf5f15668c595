package scaling

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"tuner/capacity"
	"tuner/internal/golden"
)

func plan(s capacity.Scaler) capacity.Plan {
	p := capacity.Plan{Best: capacity.Fleet{
		Configuration: "config_1", Scaling: capacity.Scaling{Scaler: s, Min: 2, Max: 14, Target: 312.5, Down: 120, Window: 60, Startup: 30},
	}}
	if s == capacity.HPA {
		p.Best.Scaling.Tolerance = 0.03
	}
	if s == capacity.Fixed {
		p.Best.Scaling = capacity.Scaling{Scaler: s, Min: 3, Max: 3}
	}
	return p
}

// A cluster gets the committed files. `make -C lab deployment` has Kubernetes' own code read
// exports.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, s := range capacity.Scalers() {
		var b bytes.Buffer
		if err := Write(&b, plan(s), Target{Name: "minilm", Prometheus: DefaultPrometheus}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", string(s)+".yaml"), b.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	if Write(failing{}, plan(capacity.HPA), Target{Name: "minilm"}) == nil {
		t.Error("a lost output is no error")
	}
}
