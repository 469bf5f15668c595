package spec

import (
	"strings"
	"testing"
)

// If there are endless mistakes, the first ones are reported.
func TestManyMistakes(t *testing.T) {
	t.Parallel()
	_, err := ParseProfile("p.yaml", []byte("model: m.onnx\n"+strings.Repeat("wrong: 1\n", 5000)))
	lines := strings.Split(err.Error(), "\n")
	if len(err.Error()) > 4000 || !strings.HasPrefix(lines[len(lines)-1], "and ") || !strings.HasSuffix(lines[len(lines)-1], " more") {
		t.Errorf("%d bytes that end with %q", len(err.Error()), lines[len(lines)-1])
	}
}
