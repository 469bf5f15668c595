package sessionoption_test

import (
	"slices"
	"testing"

	"tuner/ort/sessionoption"
)

// TestRows checks that each row is complete, and that the names in it exist.
func TestRows(t *testing.T) {
	t.Parallel()
	names, fields := map[string]bool{}, map[string]bool{}
	for _, o := range sessionoption.All() {
		if names[o.Name] || o.Name == "" || o.About == "" || o.Default == "" {
			t.Errorf("%q: a name is missing, or not its own", o.Name)
		}
		names[o.Name] = true
		places := 0
		for _, field := range append([]string{o.Field()}, o.Entries...) {
			if field == "" {
				continue
			}
			if fields[field] {
				t.Errorf("%s: another option has the field %s", o.Name, field)
			}
			fields[field], places = true, places+1
		}
		if places == 0 || places > 1 && len(o.Entries) != places {
			t.Errorf("%s: it needs one place in config.pbtxt, and has %d", o.Name, places)
		}
		if (len(o.Entries) == 0 && !o.OfInstances) != (o.Entry != "") || o.Entry != "" && !sessionoption.IsEntry(o.Entry) {
			t.Errorf("%s: ONNX Runtime's session entry is %q", o.Name, o.Entry)
		}
		checkValues(t, o)
	}
}

// checkValues checks that codes can be decoded, and that values in a row belong to the option.
func checkValues(t *testing.T, o sessionoption.Option) {
	t.Helper()
	for _, value := range o.Values() {
		if back, known := o.Decode(o.Code(value)); !known || back != value {
			t.Errorf("%s: the code %q of %s reads as %q", o.Name, o.Code(value), value, back)
		}
	}
	if o.Kind == sessionoption.Threads {
		return
	}
	for _, value := range append([]string{o.Default}, o.Swept...) {
		if !slices.Contains(o.Values(), value) {
			t.Errorf("%s: %q is not among its values %v", o.Name, value, o.Values())
		}
	}
	if need := o.Needs; need.Option != "" && !slices.Contains(sessionoption.Of(need.Option).Values(), need.Value) {
		t.Errorf("%s: it needs %s %s, which there is not", o.Name, need.Option, need.Value)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	var none sessionoption.Settings
	if got := none.Value(sessionoption.GraphOptimization); got != "all" {
		t.Errorf("the default is %q", got)
	}
	two := none.With(sessionoption.IntraOpThreads, "2")
	if two.Whole(sessionoption.IntraOpThreads) != 2 || none.Whole(sessionoption.IntraOpThreads) != 0 {
		t.Errorf("With gave %v, and left %v", two, none)
	}
	if back := two.With(sessionoption.IntraOpThreads, "0"); len(back) != 0 || len(two) != 1 {
		t.Errorf("a default is kept: %v of %v", back, two)
	}
	if on := none.With(sessionoption.MemoryArena, sessionoption.On); len(on) != 1 {
		t.Errorf("a switch that is set to its default is lost: %v", on)
	}
	needs := sessionoption.Of(sessionoption.InterOpThreads).Needs
	if none.Meets(needs) || !none.With(sessionoption.ExecutionMode, sessionoption.Parallel).Meets(needs) {
		t.Error("inter-op threads count with parallel execution only")
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                  string
		isKnob, triton, opens bool
	}{
		{"memory_arena", true, true, false},
		{"allow_spinning", true, false, false},
		{"session.intra_op.allow_spinning", true, false, false},
		{"session.use_device_allocator_for_initializers", true, true, false},
		{"session.enable_profiling", true, false, true},
		{"session.optimized_model_external_initializers_file_name", true, false, true},
		{"session.a_new_path", true, false, true},
		{"session.use_external_initializer_file_buffers_directly", true, false, false},
		{"file", false, false, false},
	} {
		got := []bool{sessionoption.IsKnob(test.name), sessionoption.OfTriton(test.name), sessionoption.NamesFile(test.name)}
		if want := []bool{test.isKnob, test.triton, test.opens}; !slices.Equal(got, want) {
			t.Errorf("%s: knob, of Triton, names a file: %v, want %v", test.name, got, want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, want string }{
		{sessionoption.IntraOpThreads, "1", "1 thread"},
		{sessionoption.InterOpThreads, "2", "inter-op 2 threads"},
		{sessionoption.GraphOptimization, "basic", "graph basic"},
		{sessionoption.ExecutionMode, "parallel", "parallel"},
		{sessionoption.AllowSpinning, "false", "no spinning"},
		{sessionoption.MemoryArena, "true", "arena"},
	} {
		if got := sessionoption.Of(test.name).Text(test.value); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.name, test.value, got, test.want)
		}
	}
}
