package datatype_test

import (
	"testing"

	"tuner/engine/grpcapi/datatype"
	"tuner/model/modelconfig/configpb"
)

// Each type is found by its name, and nothing else is.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for number := range configpb.DataType_name {
		of := configpb.DataType(number)
		if got := datatype.Of([]byte(datatype.Name(of))); got != of {
			t.Errorf("%v has the name %q, which is that of %v", of, datatype.Name(of), got)
		}
	}
	for _, name := range []string{"", "<invalid>", "TYPE_FP32", "fp32"} {
		if got := datatype.Of([]byte(name)); got != configpb.DataType_TYPE_INVALID {
			t.Errorf("%q is the name of %v", name, got)
		}
	}
}
