package environment

import (
	"testing"

	"tuner/ort/hugepages"
)

// Only models with many weights on the CPU have them in huge pages.
func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bytes int64
		gpus  int
		want  string
	}{
		{16 << 20, 0, "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"},
		{16<<20 - 1, 0, ""},
		{1 << 30, 1, ""},
	} {
		if got := Of(test.bytes, test.gpus)[hugepages.Variable]; got != test.want {
			t.Errorf("%d bytes, %d GPUs: %q, want %q", test.bytes, test.gpus, got, test.want)
		}
	}
}
