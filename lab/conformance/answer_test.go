package conformance

import "testing"

func TestNormalize(t *testing.T) {
	t.Parallel()
	same := func(a, b string) {
		t.Helper()
		if x, y := normalize([]byte(a)), normalize([]byte(b)); x != y {
			t.Errorf("%s and %s are different: %s, %s", a, b, x, y)
		}
	}
	differ := func(a, b string) {
		t.Helper()
		if x, y := normalize([]byte(a)), normalize([]byte(b)); x == y {
			t.Errorf("%s and %s are the same: %s", a, b, x)
		}
	}
	same(`{"a":1,"b":[1.0,2e1]}`, `{ "b":[1,20.0], "a":1e0 }`)
	same(`{"model_stats":[{"queue":{"ns":17}}]}`, `{"model_stats":[{"queue":{"ns":"4711"}}]}`) // gRPC's JSON has 64-bit numbers as text
	same(`{"platform":"p","inputs":[{"name":"b"},{"name":"a"}]}`, `{"platform":"p","inputs":[{"name":"a"},{"name":"b"}]}`)
	same(`{"error":"got ['b','a'] of [1,2]"}`, `{"error":"got ['a','b'] of [1,2]"}`)
	differ(`{"error":"got ['b']"}`, `{"error":"got ['a']"}`)
	differ(`{"data":["got ['b','a']"]}`, `{"data":["got ['a','b']"]}`) // a tensor, not an error text
	differ(`{"data":["a\n"]}`, `{"data":["a"]}`)
	differ(`{"model_stats":[{"ns":0}]}`, `{"model_stats":[{"ns":1}]}`)
	differ(`{"parameters":{"ns":1}}`, `{"parameters":{"ns":2}}`)
	differ(`{"outputs":[{"name":"b"},{"name":"a"}]}`, `{"outputs":[{"name":"a"},{"name":"b"}]}`) // of an inference
	differ(`[18446744073709551615]`, `[18446744073709551614]`)
	differ(`[NaN]`, `[Infinity]`)
	differ(`1`, `1 2`)
}
