package search_test

import (
	"slices"
	"testing"
	"time"

	"tuner/search"
)

func TestValues(t *testing.T) {
	t.Parallel()
	check := func(got, want search.Value) {
		if got != want {
			t.Errorf("value is %q, want %q", got, want)
		}
	}
	check(search.IntValue(8), "8")
	check(search.BoolValue(true), "true")
	check(search.DurationValue(2*time.Millisecond), "2000us")
	check(search.IntsValue([]int{4, 8}), "[4,8]")
	check(search.IntsValue(nil), "[]")
	if d, err := search.Value("100us").Duration(); err != nil || d != 100*time.Microsecond {
		t.Errorf("100us is %v, %v", d, err)
	}
	if b, err := search.Value("false").Bool(); err != nil || b {
		t.Errorf("false is %t, %v", b, err)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]search.Scope{
		"precision": search.ScopeArtifact, "memory_arena": search.ScopeEngine, "session.intra_op.x": search.ScopeEngine,
		"instance_count": search.ScopePool, "max_queue_delay": search.ScopeBatcher,
	} {
		if got, known := search.KnobScope(name); !known || got != want {
			t.Errorf("scope of %s is %v, %t; want %v", name, got, known, want)
		}
	}
	if scope, known := search.KnobScope("response_cache"); known {
		t.Errorf("an unknown knob has the scope %v", scope)
	}
}

func FuzzInts(f *testing.F) {
	for _, seed := range []string{"[]", "[1]", "[4,8]", "[-1, 2]", "[1,", "[,]", "1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ns, err := search.Value(text).Ints()
		if err != nil {
			return
		}
		again, err := search.IntsValue(ns).Ints()
		if err != nil || !slices.Equal(ns, again) {
			t.Errorf("%q is %v, which is printed as %s and read as %v, %v", text, ns, search.IntsValue(ns), again, err)
		}
	})
}
