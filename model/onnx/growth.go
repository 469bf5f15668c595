package onnx

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/model/onnx/onnxpb"
)

// The memory limit of a file's messages (nodes, attributes, tensors …): 64 MiB, or 32 times the
// file. Small attributes, as in graphs without weights, take about 16 times their bytes. An empty
// node takes 100 times its two bytes.
const (
	freeGrowth  = 64 << 20
	maxGrowth   = 32
	messageSize = 256 // approximate bytes of a message in memory
	maxNesting  = 10000
)

// checkGrowth counts a model's messages before they are decoded. The decoder reports malformed
// files.
func checkGrowth(data []byte) error {
	c := counter{most: (freeGrowth + maxGrowth*int64(len(data))) / messageSize}
	c.count(data, (&onnxpb.ModelProto{}).ProtoReflect().Descriptor(), maxNesting)
	if c.messages <= c.most {
		return nil
	}
	return fmt.Errorf("its %d bytes hold more than %d nodes, attributes and other parts, which would take more than %d times the file's size in memory; no exporter writes such a file",
		len(data), c.most, maxGrowth)
}

type counter struct{ messages, most int64 }

// count counts the messages inside a message, until there are too many.
func (c *counter) count(data []byte, md protoreflect.MessageDescriptor, depth int) {
	for len(data) > 0 && depth > 0 && c.messages <= c.most {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, wire, data[n:])
		if size < 0 {
			return
		}
		if inner := messageOf(md, number); inner != nil && wire == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(data[n:]) // its length is known to be valid
			c.messages++
			c.count(content, inner, depth-1)
		}
		data = data[n+size:]
	}
}

// messageOf returns the type of a field that holds messages, and nil for other fields.
func messageOf(md protoreflect.MessageDescriptor, number protowire.Number) protoreflect.MessageDescriptor {
	if fd := md.Fields().ByNumber(number); fd != nil {
		return fd.Message()
	}
	return nil
}
