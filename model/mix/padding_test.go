package mix

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Kinds of 16, 60 and 256 tokens, beside an input that never differs, under each padding.
func TestPadded(t *testing.T) {
	t.Parallel()
	of := func(share float64, n int64) Kind {
		return Kind{share, map[string][]int64{"ids": {n}, "pixels": {3, n, 2}, "sr": {1}}}
	}
	m := must(t, of(0.5, 16), of(0.25, 60), of(0.25, 256))
	for text, want := range map[string]Mix{
		"none":     m,
		"32":       {of(0.5, 32), of(0.25, 64), of(0.25, 256)},
		"64":       {of(0.75, 64), of(0.25, 256)},
		"longest":  {of(1, 256)},
		"[256,64]": {of(0.75, 64), of(0.25, 256)},
	} {
		p, err := ParsePadding(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Padded(m)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got), %v:\n%s", text, err, diff)
		}
	}
	p := Padding{Buckets: []int64{32, 128}}
	if _, err := p.Padded(m); err == nil || !strings.Contains(err.Error(), "the size 256 exceeds all of [32 128]: input ids has the shape [256]") &&
		!strings.Contains(err.Error(), "input pixels") {
		t.Errorf("a size beyond all buckets: %v", err)
	}
}

func TestDescribePadding(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"none": "", "32": "padded to multiples of 32", "[64,16]": "padded to 16, 64", "longest": "padded to the longest", "?": "padding ?"} {
		if got := DescribePadding(text); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}

func TestParsePadding(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "0", "-1", "x", "[]", "[0]", "[1,x]", "1.5"} {
		if p, err := ParsePadding(text); err == nil {
			t.Errorf("%q: got %+v", text, p)
		}
	}
}

// FuzzParsePadding checks that a padding never makes a size smaller.
func FuzzParsePadding(f *testing.F) {
	for _, text := range []string{"none", "longest", "32", "[32, 128]"} {
		f.Add(text, int64(17))
	}
	f.Fuzz(func(t *testing.T, text string, n int64) {
		p, err := ParsePadding(text)
		if err != nil || n < 1 || n > 1<<40 || p.Multiple > 1<<40 {
			return
		}
		if got, err := p.size(n, n); err == nil && got < n {
			t.Errorf("%q makes %d of %d", text, got, n)
		}
	})
}
