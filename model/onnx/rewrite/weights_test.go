package rewrite

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTranspose(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]float32{1, 4, 2, 5, 3, 6}, transpose([]float32{1, 2, 3, 4, 5, 6}, 2, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
