package hugepages

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestAreas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, maps string
		want       []area
	}{
		{"nothing", "", nil},
		{"memory without a file, and the heap",
			"7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n55d000000000-55d000021000 rw-p 00000000 00:00 0          [heap]\n",
			[]area{{0x7f0000000000, 0x7f0000400000}, {0x55d000000000, 0x55d000021000}}},
		{"files, shared memory, code and reserves",
			"7f0000000000-7f0000400000 rw-p 00001000 fe:00 1234 /usr/lib/lib with blank.so\n" +
				"7f1000000000-7f1000400000 rw-s 00000000 00:01 12 /dev/zero (deleted)\n" +
				"7f2000000000-7f2000400000 rwxp 00000000 00:00 0 \n" +
				"7f3000000000-7f3000400000 ---p 00000000 00:00 0 \n", nil},
		{"what has a name", "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\nc000000000-c000400000 rw-p 00000000 00:00 0 [anon: Go: heap]\n", nil},
	} {
		got, err := areas(strings.NewReader(test.maps))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %x, %v; want %x", test.name, got, err, test.want)
		}
	}
	for _, wrong := range []string{"7f00-7f01 rw-p\n", "x-7f01 rw-p 0 0:0 0\n", "7f02-7f01 rw-p 0 0:0 0\n"} {
		if got, err := areas(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q: %x, and no error", wrong, got)
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want area }{
		{area{0x200000, 0x600000}, area{0x200000, 0x600000}},
		{area{0x200001, 0x5fffff}, area{0x400000, 0x400000}},
		{area{0x201000, 0x3ff000}, area{0x400000, 0x200000}}, // none: the end is before the begin
	} {
		if got := test.in.within(0x200000); got != test.want {
			t.Errorf("%x: %x, want %x", test.in, got, test.want)
		}
	}
}

func TestIsFull(t *testing.T) {
	t.Parallel()
	// 256 of 512 small pages are 50 %. Only the lowest bit counts.
	if !isFull(slices.Concat(bytes.Repeat([]byte{1}, 256), bytes.Repeat([]byte{2}, 256))) {
		t.Error("256 of 512 are not enough")
	}
	if isFull(slices.Concat(bytes.Repeat([]byte{1}, 255), bytes.Repeat([]byte{2}, 257))) {
		t.Error("255 of 512 are enough")
	}
}

func FuzzAreas(f *testing.F) {
	f.Add("7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n")
	f.Add("55d000000000-55d000021000 rw-p 00000000 00:00 0          [heap]\n")
	f.Add("7f0000000000-7f0000400000 rw-p 00001000 fe:00 1234 /usr/lib/lib.so\n")
	f.Fuzz(func(t *testing.T, maps string) {
		got, err := areas(strings.NewReader(maps))
		for _, a := range got {
			if a.begin > a.end {
				t.Errorf("%q: %x, %v", maps, a, err)
			}
		}
	})
}
