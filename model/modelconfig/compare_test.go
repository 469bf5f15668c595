package modelconfig

import "testing"

// Only what a scheduler can change while it runs is batching. The slots of sequences are not.
func TestSameButBatching(t *testing.T) {
	t.Parallel()
	const warmup = ` model_warmup { name: "w" batch_size: 1 }`
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"max_batch_size: 4", "max_batch_size: 4", true},
		{"max_batch_size: 4", "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 100 }", true},
		{"max_batch_size: 4", "max_batch_size: 0", false}, // shapes have another meaning
		{"max_batch_size: 4", "max_batch_size: 4 instance_group { count: 2 }", false},
		{"max_batch_size: 4" + warmup, "max_batch_size: 4 dynamic_batching { }" + warmup, true},
		{"max_batch_size: 4" + warmup, "max_batch_size: 8" + warmup, false},
		{"max_batch_size: 4 sequence_batching { direct { } }", "max_batch_size: 4 sequence_batching { direct { } }", true},
		{"max_batch_size: 4 sequence_batching { direct { } }", "max_batch_size: 8 sequence_batching { direct { } }", false},
		{"max_batch_size: 4 sequence_batching { oldest { } }", "max_batch_size: 8 sequence_batching { oldest { } }", false},
		{"max_batch_size: 4 sequence_batching { }", "max_batch_size: 4 dynamic_batching { }", false},
	} {
		a, err := Parse("a", []byte(tc.a))
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse("b", []byte(tc.b))
		if err != nil {
			t.Fatal(err)
		}
		if got := SameButBatching(a, b); got != tc.want {
			t.Errorf("%s and %s: %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}
