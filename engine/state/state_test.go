package state_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/request"
	"tuner/engine/sequence"
	"tuner/engine/state"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

const controls = `control_input [
	{ name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 3, 4 ] } },
	{ name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ true, false ] } },
	{ name: "READY" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } },
	{ name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: %s } } ]`

func parse(t *testing.T, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(`name: "m" `+text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// files has the initial state "seven".
func files(name string, _ int64) ([]byte, error) {
	if name != "seven" {
		return nil, errors.New("no such file")
	}
	return []byte("\x07\x00\x00\x00more"), nil
}

func newSpec(t *testing.T, slots int, text string) *state.Spec {
	t.Helper()
	s, err := state.New(parse(t, text), slots, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func id(n uint64) sequence.ID { return sequence.ID{Number: n} }

// Rows that start, go on, end and are vacant. Each control has its own pair of values. A vacant row
// has the false ones, and no identity. A control of 32 bits has the low ones of 64.
func TestControls(t *testing.T) {
	t.Parallel()
	rows := []state.Row{
		{Slot: 0, ID: id(1), Vacant: true},
		{Slot: 1, ID: id(1<<32 + 1), Start: true},
		{Slot: 2, ID: sequence.ID{Text: "ab"}},
		{Slot: 3, ID: id(3), Start: true, End: true},
	}
	bytes := func(parts ...string) [][]byte {
		var out [][]byte
		for _, p := range parts {
			out = append(out, []byte(p))
		}
		return out
	}
	want := []state.Input{
		{"START", configpb.DataType_TYPE_INT32, []int64{4, 1}, bytes("\x03\x00\x00\x00", "\x04\x00\x00\x00", "\x03\x00\x00\x00", "\x04\x00\x00\x00")},
		{"END", configpb.DataType_TYPE_BOOL, []int64{4, 1}, bytes("\x01", "\x01", "\x01", "\x00")},
		{"READY", configpb.DataType_TYPE_FP32, []int64{4, 1}, bytes("\x00\x00\x00\x00", "\x00\x00\x80\x3f", "\x00\x00\x80\x3f", "\x00\x00\x80\x3f")},
		{"ID", configpb.DataType_TYPE_UINT32, []int64{4, 1}, bytes("\x00\x00\x00\x00", "\x01\x00\x00\x00", "\x00\x00\x00\x00", "\x03\x00\x00\x00")},
	}
	s := newSpec(t, 4, `max_batch_size: 4 sequence_batching { `+strings.ReplaceAll(controls, "%s", "TYPE_UINT32")+`}`)
	check(t, "inputs", want, s.NewSlots(4).Inputs(rows))
	s = newSpec(t, 4, `max_batch_size: 4 sequence_batching { `+strings.ReplaceAll(controls, "%s", "TYPE_STRING")+`}`)
	got := s.NewSlots(4).Inputs(rows)[3].Parts
	check(t, "texts", bytes("\x00\x00\x00\x00", "\x00\x00\x00\x00", "\x02\x00\x00\x00ab", "\x00\x00\x00\x00"), got)
	if !s.Adds("READY") || s.Adds("INPUT") {
		t.Error("the added inputs are not START, END, READY and ID")
	}
}

func TestIdentityTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		dataType string
		id       sequence.ID
		want     string
	}{
		{"TYPE_STRING", sequence.ID{Text: "a"}, ""},
		{"TYPE_INT64", id(1), ""},
		{"TYPE_INT64", sequence.ID{}, ""}, // has an error of its own
		{"TYPE_STRING", id(1), "sequence batching control 'ID' data-type is 'UINT64', but model 'm' expects 'BYTES'"},
		{"TYPE_INT32", sequence.ID{Text: "1"}, "sequence batching control 'ID' data-type is 'BYTES', but model 'm' expects 'INT32'"},
	} {
		s := newSpec(t, 1, `sequence_batching { `+strings.ReplaceAll(controls, "%s", tc.dataType)+`}`)
		got := ""
		if err := s.CheckID("m", tc.id); err != nil {
			got = err.Error()
		}
		check(t, tc.dataType, tc.want, got)
	}
}

// Each slot has its own state. It begins as configured at each start. Each request leaves one for the
// next. Vacant rows have that of the first row that is not, and leave none.
func TestStates(t *testing.T) {
	t.Parallel()
	s := newSpec(t, 3, `max_batch_size: 3 sequence_batching {
		state { input_name: "a" output_name: "a2" data_type: TYPE_INT32 dims: [ 1 ] initial_state { name: "file" data_type: TYPE_INT32 dims: [ 1 ] data_file: "seven" } }
		state { input_name: "b" output_name: "b2" data_type: TYPE_UINT8 dims: [ -1, 2 ] } }`).NewSlots(3)
	check(t, "outputs", []string{"a2", "b2"}, s.Outputs())
	seven, two := []byte{7, 0, 0, 0}, []byte{0, 0}
	expect := func(what string, rows []state.Row, a, b [][]byte, shape ...int64) {
		t.Helper()
		check(t, what, []state.Input{
			{"a", configpb.DataType_TYPE_INT32, []int64{int64(len(rows)), 1}, a},
			{"b", configpb.DataType_TYPE_UINT8, append([]int64{int64(len(rows))}, shape...), b},
		}, s.Inputs(rows))
	}
	first := []state.Row{{Slot: 0, ID: id(1), Start: true}, {Slot: 1, Vacant: true}, {Slot: 2, ID: id(2), Start: true}}
	expect("at the start", first, [][]byte{seven, seven, seven}, [][]byte{two, two, two}, 1, 2)
	for i, r := range first {
		if err := s.Update(r, []request.Tensor{{Shape: []int64{1}, Data: []byte{byte(i), 9, 9, 9}}, {Shape: []int64{2, 2}, Data: []byte{byte(i), 1, 2, 3}}}); err != nil {
			t.Fatal(err)
		}
	}
	expect("then", []state.Row{{Slot: 1, Vacant: true}, {Slot: 2, ID: id(2)}, {Slot: 0, ID: id(1)}},
		[][]byte{{2, 9, 9, 9}, {2, 9, 9, 9}, {0, 9, 9, 9}}, [][]byte{{2, 1, 2, 3}, {2, 1, 2, 3}, {0, 1, 2, 3}}, 2, 2)
	expect("at the next start", []state.Row{{Slot: 2, ID: id(5), Start: true}}, [][]byte{seven}, [][]byte{two}, 1, 2)
}

// States of any size have their part of 1 GiB, and keep the last value that fits. Where one does not, the
// others stay too.
func TestStatesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSpec(t, 1<<28, `sequence_batching { state { input_name: "n" output_name: "n2" data_type: TYPE_UINT8 dims: [ 1 ] }
		state { input_name: "a" output_name: "a2" data_type: TYPE_UINT8 dims: [ -1 ] } }`).NewSlots(1)
	update := func(n byte, data string) error {
		return s.Update(state.Row{}, []request.Tensor{{Shape: []int64{1}, Data: []byte{n}}, {Shape: []int64{int64(len(data))}, Data: []byte(data)}})
	}
	s.Inputs([]state.Row{{Start: true}})
	if err := update(1, "four"); err != nil { // 2^30 / 2^28
		t.Error(err)
	}
	if err := update(2, "fives"); err == nil || !strings.Contains(err.Error(), "state 'a2' has grown to 5 bytes") {
		t.Errorf("a state of five bytes: %v", err)
	}
	left := s.Inputs([]state.Row{{}})
	check(t, "the states", "\x01four", string(left[0].Parts[0])+string(left[1].Parts[0]))
}

func TestBadStates(t *testing.T) {
	t.Parallel()
	const good = `input_name: "a" output_name: "b" data_type: TYPE_INT32 dims: [ 2, -1 ] `
	for _, tc := range []struct{ state, want string }{
		{good + `initial_state {} initial_state {}`, "must contain exactly one or zero element. Found '2' elements."},
		{good + `initial_state { name: "x" data_type: TYPE_FP32 dims: [ 2, 1 ] zero_data: true }`, "The data type used for 'initial_state' field of state 'a' does not match the state data type."},
		{good + `initial_state { data_type: TYPE_INT32 dims: [ 2, 1 ] zero_data: true }`, "Field 'name' must be set when using initial_state for state input 'a'."},
		{good + `initial_state { name: "x" data_type: TYPE_INT32 dims: [ 2 ] zero_data: true }`, "doesn't match the size of 'state' dimensions for state input 'a'. 1 != 2"},
		{good + `initial_state { name: "x" data_type: TYPE_INT32 dims: [ 2, -1 ] zero_data: true }`, "'initial_state' field for state input name 'a' contains variable dimensions."},
		{good + `initial_state { name: "x" data_type: TYPE_INT32 dims: [ 3, 1 ] zero_data: true }`, "'initial_state' dim for input name 'a' doesn't match 'state' dim description. 3 != 2"},
		{good + `initial_state { name: "x" data_type: TYPE_INT32 dims: [ 2, 1 ] }`, "initial_state setting expects state'a' to have state_data set"},
		{good + `initial_state { name: "x" data_type: TYPE_INT32 dims: [ 2, 9 ] data_file: "seven" }`, "initial_state setting expects 72 bytes, but the data provided from sevenonly has 8 bytes."},
		{good + `initial_state { name: "x" data_type: TYPE_INT32 dims: [ 2, 1 ] data_file: "eight" }`, "no such file"},
		{good + `initial_state { name: "x" data_type: TYPE_INT32 dims: [ 2, 4611686018427387904 ] zero_data: true }`, "the initial value of state 'a' has more than 1073741824 bytes"},
		{good + `} state { ` + good, "has an input or output that another state has"},
	} {
		_, err := state.New(parse(t, `sequence_batching { state { `+tc.state+` } }`), 1, files)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n got %v\nwant %s", tc.state, err, tc.want)
		}
	}
}
