package peers

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

//go:embed quantize.py
var quantizeScript string

// quantizeTime is the longest time of onnxruntime.quantization.
const quantizeTime = 5 * time.Minute

// Quantize has onnxruntime.quantization make the int8 variant of a model file.
func (p *Peers) Quantize(ctx context.Context, from, to string) error {
	ctx, cancel := context.WithTimeout(ctx, quantizeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Python, "-", from, to)
	cmd.Stdin = strings.NewReader(quantizeScript)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot quantize %s with %s: %w; its output:\n%s", from, p.Python, err, text)
	}
	return nil
}
