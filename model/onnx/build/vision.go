package build

import (
	"fmt"
	"math"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// ResNet makes an image classifier like ResNet-18 (He et al. 2015: four stages of two basic
// blocks). It has a quarter of its width, and takes small images: input FLOAT[batch, 3, 96, 96] →
// logits FLOAT[batch, 100]. An image takes about 80 million multiplications.
func ResNet() *onnx.Model {
	g := NewGraph("resnet")
	x := g.Input("input", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), onnx.Fixed(96), onnx.Fixed(96))
	x = g.Node("Relu", in(normalised(g, "stem", x, convolution{in: 3, out: 16, kernel: 3, stride: 1})))
	x = g.Node("MaxPool", in(x), IntsAttribute("kernel_shape", 3, 3), IntsAttribute("strides", 2, 2), IntsAttribute("pads", 1, 1, 1, 1))
	width := int64(16)
	for stage, next := range []int64{16, 32, 64, 128} {
		for block := range 2 {
			stride := int64(1)
			if stage > 0 && block == 0 {
				stride = 2
			}
			x = basicBlock(g, fmt.Sprintf("stage%d.block%d", stage, block), x, width, next, stride)
			width = next
		}
	}
	head(g, x, width, 100)
	return g.Model()
}

// basicBlock adds two convolutions beside a shortcut. If the shape changes, the shortcut is a
// convolution too.
func basicBlock(g *Graph, name, x string, width, next, stride int64) string {
	y := g.Node("Relu", in(normalised(g, name+".conv0", x, convolution{in: width, out: next, kernel: 3, stride: stride})))
	y = normalised(g, name+".conv1", y, convolution{in: next, out: next, kernel: 3, stride: 1})
	shortcut := x
	if width != next || stride != 1 {
		shortcut = normalised(g, name+".shortcut", x, convolution{in: width, out: next, kernel: 1, stride: stride})
	}
	return g.Node("Relu", in(g.Node("Add", in(y, shortcut))))
}

// MobileNet makes an image classifier like MobileNetV2 (Sandler et al. 2018: inverted residuals
// with depthwise convolutions and relu6), with fewer and narrower stages: input FLOAT[batch, 3, 96,
// 96] → logits FLOAT[batch, 100].
func MobileNet() *onnx.Model {
	g := NewGraph("mobilenet")
	x := g.Input("input", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), onnx.Fixed(96), onnx.Fixed(96))
	r := relu6{g, g.Floats("relu6.min", []float32{0}), g.Floats("relu6.max", []float32{6})}
	x = r.apply(normalised(g, "stem", x, convolution{in: 3, out: 16, kernel: 3, stride: 2}))
	width := int64(16)
	for stage, s := range []struct{ width, blocks, stride int64 }{{16, 1, 1}, {24, 2, 2}, {32, 3, 2}, {64, 3, 2}, {96, 2, 1}} {
		for block := range s.blocks {
			stride := int64(1)
			if block == 0 {
				stride = s.stride
			}
			x = invertedResidual(r, fmt.Sprintf("stage%d.block%d", stage, block), x, width, s.width, stride)
			width = s.width
		}
	}
	x = r.apply(normalised(g, "last", x, convolution{in: width, out: 256, kernel: 1, stride: 1}))
	head(g, x, 256, 100)
	return g.Model()
}

// relu6 clips to [0, 6].
type relu6 struct {
	*Graph
	min, max string
}

func (r relu6) apply(x string) string { return r.Node("Clip", in(x, r.min, r.max)) }

// invertedResidual widens by four, convolves each channel separately, and narrows again. If the
// shape stays, it has a shortcut.
func invertedResidual(r relu6, name, x string, width, next, stride int64) string {
	const expansion = 4
	wide := expansion * width
	y := r.apply(normalised(r.Graph, name+".expand", x, convolution{in: width, out: wide, kernel: 1, stride: 1}))
	y = r.apply(normalised(r.Graph, name+".depthwise", y, convolution{in: 1, out: wide, kernel: 3, stride: stride, group: wide}))
	y = normalised(r.Graph, name+".project", y, convolution{in: wide, out: next, kernel: 1, stride: 1})
	if width != next || stride != 1 {
		return y
	}
	return r.Node("Add", in(x, y))
}

// convolution describes a convolution that keeps the size, divided by the stride.
type convolution struct {
	in, out        int64 // channels; in counts those of one group
	kernel, stride int64
	group          int64 // 0 means 1
}

// normalised adds a convolution and a batch normalisation that is not the identity. Weights are
// scaled by the number of inputs of an output (He et al. 2015, "Delving deep into rectifiers"), so
// that activations keep their size through all layers.
func normalised(g *Graph, name, x string, c convolution) string {
	shape := []int64{c.out, c.in, c.kernel, c.kernel}
	into := c.in * c.kernel * c.kernel
	w := g.Floats(name+".weight", centred(normal(name+".weight", 0, math.Sqrt(2/float64(into)), shape...), int(into)), shape...)
	pad := c.kernel / 2
	x = g.Node("Conv", in(x, w), IntsAttribute("kernel_shape", c.kernel, c.kernel), IntsAttribute("strides", c.stride, c.stride),
		IntsAttribute("pads", pad, pad, pad, pad), IntAttribute("group", max(c.group, 1)))
	channels := func(part string, mean, deviation float64) string {
		return g.Floats(name+part, normal(name+part, mean, deviation, c.out), c.out)
	}
	variance := normal(name+".variance", 1, 0.1, c.out)
	for i := range variance {
		variance[i] = max(variance[i], 0.5) // normal numbers can be negative
	}
	return g.Node("BatchNormalization", in(x, channels(".scale", 1, 0.1), channels(".shift", 0, 0.03), channels(".mean", 0, 0.03),
		g.Floats(name+".variance", variance, c.out)))
}

// centred shifts the weights of each output to the mean 0. inputs is the number of consecutive
// weights of an output. Rectified activations have positive means, which all images share. Without
// the shift, this common part grows from layer to layer until every image has the same logits.
func centred(weights []float32, inputs int) []float32 {
	for start := 0; start < len(weights); start += inputs {
		row := weights[start : start+inputs]
		var sum float64
		for _, w := range row {
			sum += float64(w)
		}
		for i := range row {
			row[i] -= float32(sum / float64(inputs))
		}
	}
	return weights
}

// head averages the image and maps its channels to classes, FLOAT[batch, classes], with the Gemm
// that PyTorch exports.
func head(g *Graph, x string, channels, classes int64) {
	x = g.Node("Flatten", in(g.Node("GlobalAveragePool", in(x))), IntAttribute("axis", 1))
	w := g.Floats("classifier.weight", centred(random("classifier.weight", classes, channels), int(channels)), classes, channels)
	b := g.Floats("classifier.bias", normal("classifier.bias", 0, 0.01, classes), classes)
	g.addNode("Gemm", in(x, w, b), in("logits"), []*onnxpb.AttributeProto{IntAttribute("transB", 1)})
	g.Output("logits", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(classes))
}
