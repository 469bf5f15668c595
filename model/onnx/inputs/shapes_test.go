package inputs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseShapes(t *testing.T) {
	t.Parallel()
	got, err := ParseShapes([]string{"ids:32", "image: 3, 224,224", "a:b:1"})
	want := map[string][]int64{"ids": {32}, "image": {3, 224, 224}, "a:b": {1}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	for _, text := range []string{"", "ids", ":1", "ids:", "ids:0", "ids:-1", "ids:a", "ids:1,,2"} {
		if got, err := ParseShapes([]string{text}); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
