package profile_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/hostinfo"
	"tuner/model/mix"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// openMix opens a model of x[batch,length] and y[batch,length,2] with a mix.
func openMix(t *testing.T, inputs string) (spec.Profile, profile.Subject, error) {
	t.Helper()
	return openLoad(t, "client_batch_size: 3, inputs: {"+inputs+"}")
}

// openLoad is openMix with the whole section load.
func openLoad(t *testing.T, load string) (spec.Profile, profile.Subject, error) {
	t.Helper()
	dir := t.TempDir()
	g := build.NewGraph("lengths")
	x := g.Input("x", onnx.Int64, onnx.Symbol("batch"), onnx.Symbol("length"))
	y := g.Input("y", onnx.Float, onnx.Symbol("batch"), onnx.Symbol("length"), onnx.Fixed(2))
	g.OutputAs("z", g.Node("Identity", []string{x}), onnx.Int64, onnx.Symbol("batch"), onnx.Symbol("length"))
	g.OutputAs("w", g.Node("Identity", []string{y}), onnx.Float, onnx.Symbol("batch"), onnx.Symbol("length"), onnx.Fixed(2))
	if err := errors.Join(g.Model().Write(filepath.Join(dir, "m.onnx"), 0), os.WriteFile(filepath.Join(dir, "h.csv"), []byte("value,weight\n4,1\n8,3\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "bad.csv"), []byte("4,1\n8,-3\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\noutput: out\nload: {"+load+"}"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := profile.OpenSubject(p, profile.Place{})
	return p, s, err
}

// All forms of a mix become the same kinds, with the shapes of all inputs.
func TestFormsOfAMix(t *testing.T) {
	t.Parallel()
	of := func(n int64) map[string][]int64 { return map[string][]int64{"x": {n}, "y": {n, 2}} }
	want := mix.Mix{{Share: 0.25, Shapes: of(4)}, {Share: 0.75, Shapes: of(8)}}
	for _, text := range []string{
		"mix: [{weight: 3, shape: {x: [8]}}, {weight: 1, shape: {x: [4]}}]",
		"mix: [{weight: 3, shape: {x: [8]}}, {weight: 1, shape: {y: [4, 2]}}]",
		"mix: {dimension: length, values: {8: 0.75, 4: 0.25, 2: 0}}",
		"mix: {dimension: length, histogram: h.csv}",
	} {
		_, s, err := openMix(t, text)
		if diff := cmp.Diff(want, s.Mix); diff != "" || err != nil {
			t.Errorf("%s (-want +got), %v:\n%s", text, err, diff)
		}
	}
}

// Requests have the kinds in their shares: of 1021, a quarter is 255.25. Each request has rows of
// one kind.
func TestRequestsOfAMix(t *testing.T) {
	t.Parallel()
	p, s, err := openMix(t, "mix: {dimension: length, values: {4: 1, 8: 3}}")
	if err != nil {
		t.Fatal(err)
	}
	requests, err := profile.Requests(p, s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := profile.Requests(p, s)
	if err != nil {
		t.Fatal(err)
	}
	counts, turns := map[int64]int{}, 0
	for i, r := range requests {
		x, y := r.Inputs[0], r.Inputs[1]
		counts[x.Shape[1]]++
		if x.Shape[0] != 3 || y.Shape[1] != x.Shape[1] || len(y.Data) != int(3*y.Shape[1]*2*4) {
			t.Fatalf("request %d has the shapes %v and %v", i, x.Shape, y.Shape)
		}
		if i > 0 && requests[i-1].Inputs[0].Shape[1] != x.Shape[1] {
			turns++
		}
	}
	if diff := cmp.Diff(map[int64]int{4: 255, 8: 766}, counts); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if expected := 2 * 0.25 * 0.75 * 1021; math.Abs(float64(turns)-expected) > 80 { // random order: deviation 20
		t.Errorf("the kind changes %d times, want about %.0f", turns, expected)
	}
	if diff := cmp.Diff(requests, again); diff != "" {
		t.Error("the same seed gives other requests")
	}
}

func TestMistakesInMixes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"mix: [{weight: 1, shape: {x: [8]}}, {weight: 1, shape: {q: [4]}}]":    `load.inputs.mix[1]: cannot derive the inputs of`,
		"mix: [{weight: 1, shape: {x: [8, 1]}}, {weight: 1, shape: {x: [4]}}]": "load.inputs.mix[0]: ",
		"mix: [{weight: 1, shape: {y: [8, 3]}}, {weight: 1, shape: {x: [4]}}]": "differs from its fixed dimension 2",
		"mix: [{weight: 1, shape: {x: [8], y: [9, 2]}}]":                       `gives "length" the size 9, but another input gives it 8`,
		"mix: {dimension: width, values: {4: 1, 8: 1}}":                        `dimension: no input has a dimension "width"; the inputs have ["length"]`,
		"mix: {dimension: length, values: {4: 1}}":                             "all its shapes are equal",
		"mix: {dimension: length, histogram: none.csv}":                        "cannot open the histogram",
		"mix: {dimension: length, histogram: bad.csv}":                         `line 2: "-3" is not a weight`,
	} {
		_, _, err := openMix(t, text)
		var input *profile.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", text, err, want)
		}
	}
}

// Padded requests have the padded shapes, with the given value behind the row's own.
func TestPaddedRequests(t *testing.T) {
	t.Parallel()
	p, s, err := openMix(t, "mix: {dimension: length, values: {3: 1, 8: 3}}, pad: {x: 7}}}\nspace: {padding: [4, longest, [8, 16]]} #")
	if err != nil {
		t.Fatal(err)
	}
	want := map[search.Value][]int64{"4": {4, 8}, "longest": {8}, "[8,16]": {8}}
	for value, sizes := range want {
		var got []int64
		for _, k := range s.Padded[value] {
			got = append(got, k.Shapes["x"][0])
		}
		if diff := cmp.Diff(sizes, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
	requests, err := profile.Padded(p, s, "4")
	if err != nil {
		t.Fatal(err)
	}
	short := 0
	for _, r := range requests {
		x, y := r.Inputs[0], r.Inputs[1]
		if x.Shape[1] != y.Shape[1] || x.Shape[1]%4 != 0 {
			t.Fatalf("the shapes are %v and %v", x.Shape, y.Shape)
		}
		if x.Shape[1] == 4 {
			short++
			if last := x.Data[3*8]; last != 7 {
				t.Fatalf("the padding is %d, want 7", last)
			}
		}
	}
	if short == 0 {
		t.Error("there are no short requests")
	}
}

func TestMistakesInPaddings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"shape: {x: [3]}}}\nspace: {padding: 4} #":                                             "space.padding: all requests have one shape, so there is nothing to pad",
		"mix: {dimension: length, values: {3: 1, 8: 3}}}}\nspace: {padding: [[4]]} #":          "space.padding: the size 8 exceeds all of [4]: input ",
		"mix: {dimension: length, values: {3: 1, 8: 3}}, pad: {x: 1}":                          "load.inputs.pad: nothing is padded",
		"mix: {dimension: length, values: {3: 1, 8: 3}}, pad: {q: 1}}}\nspace: {padding: 4} #": `load.inputs.pad: the model has no input "q"`,
	} {
		_, _, err := openMix(t, text)
		var input *profile.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", text, err, want)
		}
	}
}

// A journal has the kinds, and is resumed with no others.
func TestJournalsHaveMixes(t *testing.T) {
	t.Parallel()
	p, s, err := openMix(t, "mix: {dimension: length, values: {4: 1, 8: 3}}")
	if err != nil {
		t.Fatal(err)
	}
	setup := profile.Setup{Profile: p, Subject: s}
	log, err := profile.OpenLog(setup, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := campaign.Read(p.Output)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&journal.RequestMix{SHA256: s.Mix.Digest(), Kinds: s.Mix}, c.Header.Mix); diff != "" {
		t.Errorf("the journal's mix (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(c.Profile.Inputs.Shape); got != "map[x:[8] y:[8 2]]" {
		t.Errorf("the usual shapes are %s", got)
	}
	other := p
	other.Inputs.Mix.Values = []mix.Size{{Size: 4, Weight: 1}, {Size: 8, Weight: 4}}
	kinds, err := mix.New([]mix.Kind{{Share: 1, Shapes: s.Mix[0].Shapes}, {Share: 4, Shapes: s.Mix[1].Shapes}})
	if err != nil {
		t.Fatal(err)
	}
	setup.Profile, setup.Subject.Mix = other, kinds
	if _, err := profile.OpenLog(setup, time.Now()); err == nil || !strings.Contains(err.Error(), "mix of the requests: 25 % x [4]") {
		t.Errorf("another mix resumes the campaign: %v", err)
	}
}

// A trace with sizes becomes the mix of these, and each instant gets a request of its size.
func TestMixOfATrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// 3,000 requests: every fifth has 8 elements, one has 2, the others 4
	trace := "timestamp,size\n"
	size := func(i int) int64 {
		switch {
		case i == 1234:
			return 2
		case i%5 == 0:
			return 8
		}
		return 4
	}
	for i := range 3000 {
		trace += fmt.Sprintf("%d,%d\n", i, size(i))
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "t.csv"), []byte(trace), 0o600), os.WriteFile(filepath.Join(dir, "none.csv"), []byte("timestamp\n0\n1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	load := func(file string) string {
		return "arrivals: {trace: " + filepath.Join(dir, file) + "}, inputs: {mix: {dimension: length, sizes: trace}}"
	}
	p, s, err := openLoad(t, load("t.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Mix) != 3 || s.Mix[0].Share != 1./3000 || s.Mix[2].Share != 0.2 {
		t.Errorf("the mix is %v", s.Mix)
	}
	requests, err := profile.Requests(p, s)
	if err != nil {
		t.Fatal(err)
	}
	order := s.Order(p, len(requests))
	if len(order) != 3000 {
		t.Fatalf("%d instants", len(order))
	}
	for i, r := range order {
		want := size(i)
		if want == 2 { // 1 of 3,000 is too rare for one of 1,021 requests: the next larger one is sent
			want = 4
		}
		if got := requests[r].Inputs[0].Shape[1]; got != want {
			t.Fatalf("the request at instant %d has %d elements, want %d", i, got, want)
		}
	}
	facts := profile.FactsOf(s, hostinfo.Host{})
	if kinds := facts.Trace.Kinds; len(kinds) != 3000 || kinds[1234] != 0 || kinds[5] != 2 || kinds[6] != 1 {
		t.Errorf("the search knows %d kinds", len(kinds))
	}
	if _, _, err = openLoad(t, load("none.csv")); err == nil || !strings.Contains(err.Error(), `load.inputs.mix: sizes: the trace of load.arrivals has no column "size"; `) {
		t.Errorf("without sizes: %v", err)
	}
}
