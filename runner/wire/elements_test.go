package wire

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
)

// Values of every datatype that JSON carries survive the round trip. The texts are computed by
// hand.
func TestJSONOfElements(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ datatype, data, text string }{
		{"BOOL", "\x00\x01", "[false,true]"},
		{"INT8", "\xff\x7f", "[-1,127]"},
		{"UINT8", "\xff", "[255]"},
		{"INT16", "\x00\x80", "[-32768]"},
		{"UINT16", "\x00\x80", "[32768]"},
		{"INT32", "\xfe\xff\xff\xff", "[-2]"},
		{"UINT32", "\xfe\xff\xff\xff", "[4294967294]"},
		{"INT64", "\x00\x00\x00\x00\x00\x00\x00\x80", "[-9223372036854775808]"},
		{"UINT64", "\xff\xff\xff\xff\xff\xff\xff\xff", "[18446744073709551615]"},
		{"FP32", "\xcd\xcc\xcc\x3d\x00\x00\x00\x40", "[0.1,2]"}, // 0x3dcccccd is the nearest to 0.1
		{"FP64", "\x9a\x99\x99\x99\x99\x99\xb9\x3f", "[0.1]"},   // 0x3fb999999999999a
		{"BYTES", "\x02\x00\x00\x00a\"\x00\x00\x00\x00", `["a\"",""]`},
		{"INT32", "", "[]"},
	} {
		tensor := api.Tensor{Name: "x", Datatype: test.datatype, Data: []byte(test.data)}
		text, err := jsonData(tensor)
		if err != nil || string(text) != test.text {
			t.Errorf("%s: %s, %v, expected %s", test.datatype, text, err, test.text)
		}
		data, err := parseData(tensor, text)
		if err != nil || string(data) != test.data {
			t.Errorf("%s: %q, %v, expected %q", test.datatype, data, err, test.data)
		}
	}
}

func TestJSONOutputs(t *testing.T) {
	t.Parallel()
	check := func(body string, jsonLength int64, want []api.Tensor, wantErr string) {
		t.Helper()
		got, err := decodeHTTP([]byte(body), jsonLength)
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("error %v, expected %q", err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	const mixed = `{"outputs":[{"name":"a","datatype":"INT8","shape":[2,1],"data":[[1],[2]]},{"name":"b","datatype":"INT8","shape":[1],"parameters":{"binary_data_size":1}}]}`
	check(mixed+"\x07", int64(len(mixed)), []api.Tensor{
		{Name: "a", Datatype: "INT8", Shape: []int64{2, 1}, Data: []byte{1, 2}}, {Name: "b", Datatype: "INT8", Shape: []int64{1}, Data: []byte{7}},
	}, "")
	check(mixed, -1, nil, `output "b" has 1 bytes, 0 are left`)
	check(mixed, 1<<40, nil, "bytes of JSON in a body")
	check(`{"outputs":[{"name":"a","datatype":"INT8","data":[300]}]}`, -1, nil, "300 is not a value of INT8")
	check(`{"outputs":[{"name":"a","datatype":"INT8","data":["x"]}]}`, -1, nil, "x is not a value of INT8")
	check(`{"outputs":[{"name":"a","datatype":"INT8"}]}`, -1, nil, `data of output "a"`)
	check(`{"outputs":[{"name":"a","datatype":"BYTES","data":{"b":"c"}}]}`, -1, nil, "{ is not a value of BYTES")
	check(`nonsense`, -1, nil, "cannot read an inference's answer")
}

func TestCompare(t *testing.T) {
	t.Parallel()
	fp32 := func(name, data string) api.Tensor {
		return api.Tensor{Name: name, Datatype: "FP32", Shape: []int64{int64(len(data) / 4)}, Data: []byte(data)}
	}
	check := func(want, got api.Tensor, text string) {
		t.Helper()
		err := compare([]api.Tensor{want}, []api.Tensor{fp32("other", ""), got})
		var mismatch *MismatchError
		if text == "" && err == nil {
			return
		}
		if !errors.As(err, &mismatch) || err.Error() != text {
			t.Errorf("error %v, expected %q", err, text)
		}
	}
	two := fp32("y", "\x00\x00\x80\x3f\x00\x00\x00\x40") // 1, 2
	check(two, two, "")
	check(two, fp32("y", "\x00\x00\x80\x3f\x00\x00\x40\x40"), `output "y" differs at element 1: it is 3, want 2`)
	check(two, fp32("y", "\x00\x00\x80\x3f"), `output "y" is FP32 [1] of 4 bytes, want FP32 [2] of 8 bytes`)
	check(fp32("y", "\x00\x00\x80"), fp32("y", "\x00\x00\x81"), `output "y" is FP32 [0] of 3 bytes, want FP32 [0] of 3 bytes`)
	strings := func(data string) api.Tensor {
		return api.Tensor{Name: "y", Datatype: "BYTES", Shape: []int64{2}, Data: []byte(data)}
	}
	one := strings("\x01\x00\x00\x00a\x02\x00\x00\x00bc")
	check(one, strings("\x01\x00\x00\x00a\x02\x00\x00\x00bd"), `output "y" differs at element 1: it is "bd", want "bc"`)
	check(one, strings("\x03\x00\x00\x00a"), `output "y" is BYTES [2] of 5 bytes, want BYTES [2] of 11 bytes`)
	check(one, fp32("y", "abcd"), `output "y" is FP32 [1] of 4 bytes, want BYTES [2] of 11 bytes`)
	check(two, fp32("z", ""), `output "y" is missing, want FP32 [2] of 8 bytes`)
}

// Outputs are compared over the wire, in both forms. A wrong output leaves the connection usable.
func TestExpectedOutputs(t *testing.T) {
	t.Parallel()
	text := `{"outputs":[{"name":"y","datatype":"INT8","shape":[1],"data":[5]}]}`
	raw := `{"outputs":[{"name":"y","datatype":"INT8","shape":[1],"parameters":{"binary_data_size":1}}]}`
	o := scripted(t, httpAnswer(text, ""), httpAnswer(raw, "\x05"), httpAnswer(raw, "\x06"), httpAnswer(raw, "\x05"))
	c := dial(t, o)
	p := prepare(t, o, int32Request, Format{}, api.Tensor{Name: "y", Datatype: "INT8", Shape: []int64{1}, Data: []byte{5}})
	for i, want := range []string{"", "", `output "y" differs at element 0: it is 6, want 5`, ""} {
		err := ask(c, p)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("request %d: error %v, expected %q", i, err, want)
		}
	}
}

// httpAnswer returns an answer of JSON and tensors in binary form.
func httpAnswer(text, tensors string) string {
	head := "HTTP/1.1 200 OK\r\n"
	if tensors != "" {
		head += api.HeaderLength + ": " + strconv.Itoa(len(text)) + "\r\n"
	}
	return head + "Content-Length: " + strconv.Itoa(len(text)+len(tensors)) + "\r\n\r\n" + text + tensors
}

// JSON that is written from the values of an answer has the same values.
func FuzzDecodeHTTP(f *testing.F) {
	for _, text := range []string{
		`{"outputs":[{"name":"a","datatype":"INT8","shape":[2,1],"data":[[1],[2]]},{"name":"b","datatype":"FP32","parameters":{"binary_data_size":4}}]}`,
		// from a real Triton
		`{"outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[1,2],"data":[-6.999999777858658e-21,0.10000000149011612]}]}`,
		`{"outputs":[{"name":"a","datatype":"BYTES","data":["\u00e9",""]},{"name":"c","datatype":"BOOL","data":[true]}]}`,
	} {
		f.Add([]byte(text+"\x00\x00\x80\x3f"), int64(len(text)))
		f.Add([]byte(text), int64(-1))
	}
	f.Fuzz(func(t *testing.T, body []byte, jsonLength int64) {
		outputs, err := decodeHTTP(body, jsonLength)
		if err != nil {
			return
		}
		for _, o := range outputs {
			first, err := jsonData(o)
			if err != nil {
				continue // JSON has no form for it
			}
			if o.Data, err = parseData(o, first); err != nil {
				t.Fatalf("%s cannot be read: %v", first, err)
			}
			if again, err := jsonData(o); err != nil || string(again) != string(first) {
				t.Errorf("%s became %s, %v", first, again, err)
			}
		}
	})
}
