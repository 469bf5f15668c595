package warmup

import (
	"strings"
	"testing"

	"tuner/engine/request"
	"tuner/model/modelconfig"
)

// A file has one row, which each row of a sample gets. A longer file is used as far as one row goes.
func TestFilesHaveOneRow(t *testing.T) {
	t.Parallel()
	const text = "\x03\x00\x00\x00233"
	files := map[string]string{"row": "abcdefgh", "long": "abcdefghij", "short": "abc", "text": text}
	read := func(file string, limit int64) ([]byte, error) { return []byte(files[file]), nil }
	for _, c := range []struct{ dataType, dims, file, want, wrong string }{
		{"TYPE_INT32", "2", "row", strings.Repeat("abcdefgh", 3), ""},
		{"TYPE_INT32", "2", "long", strings.Repeat("abcdefgh", 3), ""},
		{"TYPE_INT32", "2", "short", "", "warmup setting expects 8 bytes, but the data provided from short only has 3 bytes"},
		{"TYPE_STRING", "1", "text", strings.Repeat(text, 3), ""},
	} {
		config, err := modelconfig.Parse("config.pbtxt", []byte(`name: "m" max_batch_size: 4
			input { name: "x" data_type: `+c.dataType+` dims: [ `+c.dims+` ] }
			output { name: "y" data_type: `+c.dataType+` dims: [ `+c.dims+` ] }
			model_warmup { name: "w" batch_size: 3 inputs { key: "x" value { data_type: `+c.dataType+
			` dims: [ `+c.dims+` ] input_data_file: "`+c.file+`" } } }`))
		if err != nil {
			t.Fatal(err)
		}
		samples, err := New("m", read, request.NewSignature(config), Joining{}, config.GetModelWarmup())
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", c.file, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if in := samples[0].batch.Inputs[0]; string(in.Parts[0]) != c.want || in.Shape[0] != 3 {
			t.Errorf("%s: %q of shape %v, want %q", c.file, in.Parts[0], in.Shape, c.want)
		}
	}
}
