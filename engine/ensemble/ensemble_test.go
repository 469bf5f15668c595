package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/ensemble"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

func parse(t testing.TB, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// step writes a step from "model in>tensor,… tensor<out,…".
func step(model, in, out string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "step [ { model_name: %q model_version: -1", model)
	for _, one := range []struct{ field, list string }{{"input_map", in}, {"output_map", out}} {
		for pair := range strings.FieldsSeq(one.list) {
			name, to, _ := strings.Cut(pair, "=")
			fmt.Fprintf(&b, " %s { key: %q value: %q }", one.field, name, to)
		}
	}
	return b.String() + " } ]\n"
}

func config(inputs, outputs string, steps ...string) string {
	var b strings.Builder
	b.WriteString("name: \"e\" platform: \"ensemble\" max_batch_size: 8\n")
	for name := range strings.FieldsSeq(inputs) {
		fmt.Fprintf(&b, "input [ { name: %q data_type: TYPE_INT32 dims: [ 16 ] } ]\n", name)
	}
	for name := range strings.FieldsSeq(outputs) {
		fmt.Fprintf(&b, "output [ { name: %q data_type: TYPE_INT32 dims: [ 16 ] } ]\n", name)
	}
	return b.String() + "ensemble_scheduling {\n" + strings.Join(steps, "") + "}"
}

// The texts are those that a real Triton logs.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"must specify 'step' for ensemble 'e'":                                                                           config("A", "B"),
		"must specify 'model_name' in step 0 of ensemble 'e'":                                                            config("A", "B", step("", "X=A", "Y=B")),
		"must specify 'input_map' in step 0 of ensemble 'e'":                                                             config("A", "B", step("m", "", "Y=B")),
		"must specify 'output_map' in step 1 of ensemble 'e'":                                                            config("A", "B", step("m", "X=A", "Y=B"), step("m", "X=A", "")),
		"ensemble tensor 'B' can appear in an output map only once for ensemble 'e' step 1":                              config("A", "B", step("m", "X=A", "Y=B"), step("m", "X=A", "Y=B")),
		"ensemble input 'A' for ensemble e' is not used":                                                                 config("A C", "B", step("m", "X=C", "Y=B")),
		"ensemble input 'A' for ensemble 'e' is written by step 0 too":                                                   config("A", "B", step("m", "X=A", "Y=A Z=B")),
		"ensemble output 'D' for ensemble e' is not used":                                                                config("A", "D", step("m", "X=A", "Y=B")),
		"output 'B' for ensemble 'e' is not written: at least one of its depending tensors, 'd', is not connected":       config("A", "B", step("m", "X=A W=d", "Y=c"), step("m", "X=c", "Y=B V=d")),
		"output 'B' for ensemble 'e' is not written: at least one of its depending tensors, 'nowhere', is not connected": config("A", "B", step("m", "X=A W=nowhere", "Y=B")),
		"ensemble tensor 'c' is unused in ensemble 'e'":                                                                  config("A", "B", step("m", "X=A", "Y=B Z=c")),
	} {
		if _, err := ensemble.New(parse(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// Steps that no wanted output needs do not run. The outputs of a step are free once all who read
// them have run.
func TestNeed(t *testing.T) {
	t.Parallel()
	g, err := ensemble.New(parse(t, config("A", "B C", step("m", "X=A", "Y=x"), step("m", "X=x", "Y=B"), step("m", "X=x W=A", "Y=C"))))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m"}, g.Models()); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		wanted []bool
		steps  []bool
		first  [][]int // for each step that is done, in order: those that are ready then
		done   []int
		free   [][]int
	}{
		{nil, []bool{true, true, true}, [][]int{{0}, {1, 2}, nil, nil}, []int{0, 1, 2}, [][]int{nil, nil, {0}}},
		{[]bool{true, false}, []bool{true, true, false}, [][]int{{0}, {1}, nil}, []int{0, 1}, [][]int{nil, {0}}},
		{[]bool{false, true}, []bool{true, false, true}, [][]int{{0}, {2}, nil}, []int{0, 2}, [][]int{nil, {0}}},
	} {
		need := g.Need(tc.wanted)
		if !slices.Equal(need.Steps, tc.steps) {
			t.Errorf("%v: steps %v, want %v", tc.wanted, need.Steps, tc.steps)
		}
		run, ready := need.Begin()
		got, free := [][]int{ready}, [][]int{}
		for _, i := range tc.done {
			ready, released := run.Done(i)
			got, free = append(got, ready), append(free, released)
		}
		if diff := cmp.Diff(tc.first, got); diff != "" {
			t.Errorf("%v: ready\n%s", tc.wanted, diff)
		}
		if diff := cmp.Diff(tc.free, free); diff != "" {
			t.Errorf("%v: free\n%s", tc.wanted, diff)
		}
	}
}

func TestReshape(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want      []int64
		batches   bool
		shape     []int64
		isBatched bool
		result    []int64
	}{
		{[]int64{16}, true, []int64{3, 16}, true, []int64{3, 16}},
		{[]int64{16}, true, []int64{16}, false, []int64{1, 16}},    // the batch dimension is added
		{[]int64{16}, true, []int64{3, 16}, false, []int64{3, 16}}, // it is there already
		{[]int64{-1, 16}, false, []int64{3, 16}, true, []int64{3, 16}},
		{[]int64{16}, false, []int64{1, 16}, true, []int64{16}},    // it is dropped
		{[]int64{16}, false, []int64{2, 16}, true, []int64{2, 16}}, // and left for the check
		{[]int64{16}, false, []int64{16}, false, []int64{16}},
		{nil, false, nil, true, nil},
	} {
		if got := ensemble.Reshape(tc.want, tc.batches, tc.shape, tc.isBatched); !slices.Equal(got, tc.result) {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// Each model comes after those that it depends on. Those of a circle, and those above it, are in no
// level.
func TestPropertyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 5))
		n := 1 + random.IntN(8)
		steps := map[string][]string{}
		var names []string
		for i := range n {
			name := fmt.Sprint("m", i)
			names = append(names, name)
			for range random.IntN(3) {
				steps[name] = append(steps[name], fmt.Sprint("m", random.IntN(n)))
			}
		}
		levels, circular := ensemble.Order(names, func(name string) []string { return steps[name] })
		level := map[string]int{}
		for k, list := range levels {
			for _, name := range list {
				level[name] = k
			}
		}
		for _, name := range names {
			_, ordered := level[name]
			if bad := reachesCircle(name, steps); ordered == bad || (circular[name] != nil) != bad {
				t.Fatalf("seed %d: %s of %v: ordered %v, circular %v, want a circle %v", seed, name, steps, ordered, circular[name], bad)
			}
			for _, below := range steps[name] {
				if ordered && level[below] >= level[name] {
					t.Fatalf("seed %d: %s comes before %s", seed, name, below)
				}
			}
		}
	}
}

// reachesCircle reports whether a walk from name can go on for ever.
func reachesCircle(name string, steps map[string][]string) bool {
	at := map[string]bool{name: true}
	for range 20 { // longer than any way without a circle
		next := map[string]bool{}
		for from := range at {
			for _, to := range steps[from] {
				next[to] = true
			}
		}
		at = next
	}
	return len(at) > 0
}

// library is a server of models and ensembles for a Catalog.
type library struct {
	steps  map[string][]string
	broken map[string]error

	after func(name string) // called after each load; nil: nothing

	mu     sync.Mutex
	loaded []string
}

func (l *library) Config(name string) *modelconfig.Config {
	steps, found := l.steps[name]
	if !found {
		return nil
	}
	c := &modelconfig.Config{}
	if len(steps) > 0 {
		e := &configpb.ModelEnsembling{}
		for _, step := range steps {
			e.Step = append(e.Step, &configpb.ModelEnsembling_Step{ModelName: step})
		}
		c.SchedulingChoice = &configpb.ModelConfig_EnsembleScheduling{EnsembleScheduling: e}
	}
	return c
}

func (l *library) Step(_, model string) (string, []string) {
	if _, found := l.steps[model]; !found {
		return "", []string{model}
	}
	return model, nil
}

func (l *library) Serves(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.loaded, name)
}

func (l *library) Load(_ context.Context, name string, _, _ bool) (changed bool, err error) {
	if err := l.broken[name]; err != nil {
		return false, err
	}
	l.mu.Lock()
	l.loaded = append(l.loaded, name)
	l.mu.Unlock()
	if l.after != nil {
		l.after(name)
	}
	return true, nil
}

func (l *library) Drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded = slices.DeleteFunc(l.loaded, func(n string) bool { return n == name })
}

func (l *library) Failed(string, error) {}

func TestLoad(t *testing.T) {
	t.Parallel()
	l := &library{
		steps: map[string][]string{
			"p": nil, "q": nil, "bad": nil, "e": {"p", "q"}, "outer": {"e", "p"}, "lacks": {"p", "nowhere", "else"}, "on bad": {"bad"}, "on lacks": {"lacks"},
			"a": {"b"}, "b": {"a"},
		},
		broken: map[string]error{"bad": errors.New("load failed for model 'bad': it is broken\n")},
	}
	var c ensemble.Catalog
	failed := c.Load(t.Context(), ensemble.Request{Names: []string{"outer", "lacks", "on bad", "on lacks", "a"}}, 2, l)
	want := map[string]string{
		"bad":      "load failed for model 'bad': it is broken\n",
		"lacks":    "ensemble lacks contains models that are not available or ambiguous: else, nowhere",
		"on lacks": "ensemble 'on lacks' depends on 'lacks' which is not valid. Model 'lacks' failed with error: ensemble lacks contains models that are not available or ambiguous: else, nowhere",
		"on bad":   "ensemble 'on bad' depends on 'bad' which has no loaded version. Model 'bad' loading failed with error: it is broken",
		"a":        "circular dependency between ensembles: a -> ... -> b -> a",
		"b":        "circular dependency between ensembles: b -> ... -> a -> b",
	}
	got := map[string]string{}
	for name, err := range failed {
		got[name] = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	before := func(a, b string) {
		if i, j := slices.Index(l.loaded, a), slices.Index(l.loaded, b); i < 0 || j < 0 || i > j {
			t.Errorf("%s is not loaded before %s: %v", a, b, l.loaded)
		}
	}
	before("p", "e")
	before("q", "e")
	before("e", "outer")
}

// A model that is unloaded when its ensemble has just been loaded takes the ensemble along, although the
// catalog does not know yet that the two belong together.
func TestUnloadDuringALoad(t *testing.T) {
	t.Parallel()
	var c ensemble.Catalog
	l := &library{steps: map[string][]string{"p": nil, "q": nil, "e": {"p", "q"}, "other": {"p"}}}
	l.after = func(name string) {
		if name == "e" {
			l.Drop("q")
			c.Unloaded("q", l)
		}
	}
	if failed := c.Load(t.Context(), ensemble.Request{Names: []string{"e", "other"}}, 1, l); len(failed) > 0 {
		t.Fatal(failed)
	}
	if slices.Sort(l.loaded); !slices.Equal(l.loaded, []string{"other", "p"}) {
		t.Errorf("%q serve, want all but the model and its ensemble", l.loaded)
	}
}

// A change loads each ensemble above it once, after all that it consists of, however many ways lead to it.
func TestEachIsLoadedOnce(t *testing.T) {
	t.Parallel()
	const n = 40 // 2^39 ways lead from the model to the last ensemble
	l := &library{steps: map[string][]string{"m": nil}}
	below := []string{"m"}
	for i := range n {
		name := fmt.Sprintf("e%02d", i)
		l.steps[name] = below
		below = append(slices.Clone(below), name)
	}
	var c ensemble.Catalog
	if failed := c.Load(t.Context(), ensemble.Request{Names: below}, 2, l); len(failed) > 0 {
		t.Fatal(failed)
	}
	l.loaded = nil
	if failed := c.Load(t.Context(), ensemble.Request{Names: []string{"m"}}, 2, l); len(failed) > 0 {
		t.Fatal(failed)
	}
	if diff := cmp.Diff(below, l.loaded); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
}

// Any configuration that New takes has an order in which all steps run, and no step runs twice.
func FuzzNew(f *testing.F) {
	f.Add(config("A", "B C", step("m", "X=A", "Y=x"), step("m", "X=x", "Y=B"), step("m", "X=x W=A", "Y=C")))
	f.Add(config("A", "B", step("m", "X=A W=d", "Y=c"), step("m", "X=c", "Y=B V=d")))
	f.Add(config("A", "A", step("m", "X=A", "Y=A")))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := modelconfig.Parse("config.pbtxt", []byte(text))
		if err != nil {
			return
		}
		g, err := ensemble.New(c)
		if err != nil {
			return
		}
		need := g.Need(nil)
		run, ready := need.Begin()
		ran := make([]bool, len(g.Steps))
		for len(ready) > 0 {
			i := ready[0]
			if ran[i] {
				t.Fatalf("step %d runs twice", i)
			}
			ran[i] = true
			next, _ := run.Done(i)
			ready = append(ready[1:], next...)
		}
		if !slices.Equal(ran, need.Steps) {
			t.Errorf("ran %v, needed %v", ran, need.Steps)
		}
	})
}
