package quantization

import (
	"fmt"
	"math"
)

// smallestNormal is the smallest normal float32, 2^-126.
const smallestNormal = 0x1p-126

// checkFinite refuses NaN and infinite weights, and counts denormal ones.
func checkFinite(name string, values []float32) (denormal int, err error) {
	for i, v := range values {
		switch a := math.Abs(float64(v)); {
		case math.IsNaN(a) || math.IsInf(a, 0):
			return 0, fmt.Errorf("its weight %q holds %v (element %d of %d); export the model again from a sound checkpoint", name, v, i, len(values))
		case a > 0 && a < smallestNormal:
			denormal++
		}
	}
	return denormal, nil
}

// quantizeSymmetric converts weights into integers between -limit and limit: q = round(v/scale),
// ties to even, with one scale = max|v|/limit per channel. Element i belongs to channel
// channelOf(i). A channel gets the scale 1 and zeros if it has only zeros, or if its scale would be
// denormal.
//
// The arithmetic has 32 bits, except the division for the scale. It is that of
// onnxruntime.quantization's compute_scale_zp and quantize_nparray for symmetric int8, so both
// agree bit by bit.
func quantizeSymmetric(values []float32, limit int8, channels int, channelOf func(int) int) (quantized []byte, scales []float32) {
	scales = make([]float32, channels)
	for i, v := range values {
		c := channelOf(i)
		scales[c] = max(scales[c], float32(math.Abs(float64(v))))
	}
	for c, largest := range scales {
		scale := float64(largest) / float64(limit)
		if scale < smallestNormal {
			scale = 1
		}
		scales[c] = float32(scale)
	}
	quantized = make([]byte, len(values))
	for i, v := range values {
		rounded := math.RoundToEven(float64(v / scales[channelOf(i)]))
		quantized[i] = byte(int8(min(max(rounded, -float64(limit)), float64(limit))))
	}
	return quantized, scales
}
